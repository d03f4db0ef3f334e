"""Which designs a check is about, by scenario."""

from __future__ import annotations

import pytest

from kernel.designs import CLASSIC, COORDINATED, DESIGN_NAMES
from tests.comparison.pipeline.figures.judged import designs_of

ALL = set(DESIGN_NAMES)
STOPPING = {"zookeeper", "server", "eager", "static"}
INCREMENTAL = {"cooperative", "delayed", "consumer"}
HEARTBEATS = {"eager", "static", "cooperative", "delayed", "consumer"}


@pytest.mark.parametrize(
    ("check", "scenario", "designs"),
    [
        ("no record lost", "rolling-restart", ALL),
        ("no stale write", "scale-out", ALL - {"zookeeper"}),
        ("no offset moved back", "subscription-change", ALL - {"zookeeper"}),
        ("never owned by two members", "rolling-restart", ALL - {"zookeeper"}),
        ("kept partitions never stop", "rolling-restart", INCREMENTAL),
        ("kept partitions never stop", "protocol-migration", set()),  # its first incarnations are eager
        ("kept partitions never stop", "pause", set()),
        ("kept partitions never stop", "unsubscribe", INCREMENTAL),
        ("kept partitions never stop", "scale-out-under-lag", set()),
        # A member may give up what one that is dead already is to have, and get it back when that one is removed.
        ("kept partitions never stop", "flapping-member", set()),
        ("delay honoured", "crash", {"delayed"}),
        ("generation kept", "coordinator-failover", ALL - {"zookeeper"}),
        ("no commit lost", "coordinator-failover", ALL - {"zookeeper"}),
        ("waits for the slow member", "slow-member", {"eager", "static"}),
        ("delivers while it waits", "slow-member", {"cooperative", "delayed"}),
        ("waits for nobody", "slow-member", {"consumer"}),
        ("two members deliver", "split-brain", {"zookeeper", "consumer"}),
        ("two members deliver", "split-brain-ensemble", {"zookeeper"}),
        ("two members deliver", "asymmetric-cut", {"zookeeper", "consumer"}),
        ("counts", "join", ALL),
        ("counts", "rolling-restart", {"server", "eager", "static", "cooperative", "consumer"}),
        ("counts", "scale-out", set()),
        ("counts", "idle-members", ALL),
        ("counts", "mixed-subscriptions", set()),
        ("no member owns two", "idle-members", ALL),
        ("idle member stops the others", "idle-members", STOPPING),
        ("idle member stops nobody", "idle-members", INCREMENTAL),
        ("only subscribers own", "mixed-subscriptions", ALL),
        ("only subscribers own", "join", set()),
        ("offsets carried over", "offset-migration", {"eager"}),
        ("gives up", "rebalance-failed", {"zookeeper"}),
        ("outlasts the session", "rebalance-failed", {"zookeeper"}),
        ("nobody gives up", "rebalance-failed", set(COORDINATED)),
        ("no rebalance", "zk-leader-kill", ALL),
        ("no rebalance", "quorum-loss", ALL),
        ("goes on delivering", "zk-leader-kill", ALL - {"server"}),
        ("goes on delivering", "quorum-loss", ALL - {"server"}),
        ("stands still", "quorum-loss", {"server"}),
        ("everybody rebalances", "session-expiry", {"zookeeper"}),
        ("expiry noticed", "session-expiry-all", {"server"}),
        ("owner znodes deleted", "ghost-owner", {"zookeeper"}),
        ("storm", "flapping-member", ALL - {"static"}),
        ("no storm", "flapping-member", {"static"}),
        ("outlives the silence", "asymmetric-cut", {"zookeeper", "server"}),
        ("replaced", "asymmetric-cut", HEARTBEATS),
        ("outlasts the delay", "slow-link", ALL),
        ("new partitions read", "add-partitions", ALL),
        ("new partitions read", "join", set()),
        ("noticed at once", "partition-increase", ALL - set(CLASSIC)),
        ("noticed in time", "add-partitions", set(CLASSIC)),
        ("unnoticed for minutes", "add-partitions", set()),
        ("unnoticed for minutes", "unnoticed-partitions", set(CLASSIC)),
    ],
)
def test_checks_apply_to_designs_by_scenario(check: str, scenario: str, designs: set[str]) -> None:
    assert designs_of(check, scenario) == designs
