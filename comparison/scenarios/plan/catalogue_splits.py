"""The scenarios on an ensemble of three ZooKeeper servers, besides `split-brain`: views and owners that differ."""

from __future__ import annotations

from types import MappingProxyType

from comparison.scenarios.plan.parameters import Parameters
from comparison.scenarios.plan.scenario import Scenario
from comparison.scenarios.plan.vocabulary import Form, FreezeOwner, Heal, Inject, JoinBehind, Steady

#: How far the follower lags: longer than it takes members to rebalance, and another one to join, on a busy machine.
_LAG_MS = 1500
#: A member waits for several answers that take the lag, and kazoo gives a server up after two thirds of its session
#: timeout. With the default of 4 tries, a rebalance could end before a dead member's session.
_PATIENT = MappingProxyType({"zookeeper.session.timeout.ms": "6000", "rebalance.max.retries": "8"})

SPLITS = (
    Scenario(
        name="stale-view",
        symptom="Two members divided the partitions by different lists of members, and claimed the same ones.",
        look_for=(
            "zookeeper: the member whose ZooKeeper server lags decides by an old list; its claims conflict with those "
            "of members that know more, so its attempt fails and costs a backoff while partitions have no owner",
            "it never becomes a second owner: claims are writes, and go through the leader",
            "zookeeper with -c fix.sync.before.reads=true: it knows who has joined and its attempt succeeds, but each "
            "attempt waits for the lag twice; other members' attempts still fail, as in any join, on partitions not "
            "yet released",
            "the other designs: the coordinating broker's server lags; one decides, so nobody disagrees",
        ),
        steps=(
            Form(),
            Steady(),
            Inject("delay", "follower->ensemble", {"by_ms": _LAG_MS, "ways": "in"}),
            JoinBehind(),
            Heal(),
        ),
        defaults=Parameters(partitions=6, time_limit_s=120),  # each claim and release waits for the lag
        settings=_PATIENT,
        budget_s=25,
        zookeeper_servers=3,
        members_min=2,
        brokers_min=2,
        references=("ZOOKEEPER programmer's guide, consistency guarantees",),
    ),
    Scenario(
        name="zombie-commit",
        symptom="A consumer that had been replaced during a long pause came back, and its commit was accepted.",
        look_for=(
            "zookeeper: no write of the old session is accepted after its expiry; the client opens a new session by "
            "itself, and the pending offset is written in the new session: nothing binds an offset to the owner",
            "zookeeper with -c fix.commit.fence=session or epoch: refused",
            "the other designs: refused by generation or member id",
        ),
        steps=(Form(), Steady(), FreezeOwner()),
        defaults=Parameters(time_limit_s=60),
        budget_s=20,
        zookeeper_servers=3,
        members_min=2,
        brokers_min=2,
        needs_steady_load=True,
        references=("KIP-62", "KAFKA-2431"),
    ),
)
