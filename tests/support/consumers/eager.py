"""Our classic consumers for tests, eager by default, with short timers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coordinator.client.classic.consumer import CoordinatorConsumer
from coordinator.client.settings import CoordinatorConsumerConfig
from kernel.broker.broker import Broker
from kernel.waiting import until
from tests.support.consumers.consuming import Owned, Running, running

QUICK = {
    "session.timeout.ms": "30000",  # outlives a busy machine's pauses
    "heartbeat.interval.ms": "100",
    "auto.offset.reset": "earliest",
    "fetch.max.wait.ms": "100",
}


def eager(bootstrap: str, group: str = "g", settings: Mapping[str, str] | None = None) -> Running:
    """One of our consumers, not started."""
    given = {**QUICK, "bootstrap.servers": bootstrap, "group.id": group, **(settings or {})}
    return running(CoordinatorConsumer, CoordinatorConsumerConfig, given)


def bootstrap_of(*brokers: Broker) -> str:
    return ",".join(f"{broker.address.host}:{broker.address.port}" for broker in brokers)


def generation_of(member: Running) -> int:
    """The generation in which it was last assigned partitions; -1 before that."""
    return max((event["generation"] for event in member.tracer.of("partitions_assigned")), default=-1)


def joining(member: Running) -> bool:
    """Whether its JoinGroup is being sent or parked: the last event of its rebalance is the join phase."""
    events = [event for event in member.tracer.events if event["kind"] in ("phase_entered", "rebalance_ended")]
    return bool(events) and events[-1].get("phase") == "join"


def rebalancing(member: Running) -> bool:
    """Whether it is in a rebalance: its listener may not have been notified yet."""
    return len(member.tracer.of("rebalance_started")) > len(member.tracer.of("rebalance_ended"))


async def settled(members: Sequence[Running], partitions: Owned, *, timeout_s: float = 60) -> None:
    """Wait until the members own all of `partitions`, each a fair share, in one generation, and all have been notified.

    A cooperative group has then settled: partitions that move have no owner for one generation.
    """

    def done() -> bool:
        shares = [len(member.owned) for member in members]
        return (
            sum(shares) == len(partitions)
            and max(shares) - min(shares) <= 1
            and frozenset().union(*(member.owned for member in members)) == partitions
            and len({generation_of(member) for member in members}) == 1
            and not any(map(rebalancing, members))
        )

    def seen() -> str:
        return f"{[(generation_of(member), sorted(member.owned)) for member in members]} to settle"

    await until(done, timeout_s, lambda: f"the group to settle: {seen()}")
