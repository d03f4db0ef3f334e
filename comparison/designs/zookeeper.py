"""`zookeeper`: Kafka 0.8.2's high-level consumer. The steps R1 to R12 are those of docs/state-machines.md."""

from __future__ import annotations

from comparison.designs.profile import END, FIRST_CONNECTION, Point, Profile, phase
from kernel.trace.events import Role


def _operation(step: str) -> Point:
    """After the first operation of a step."""
    return Point(step, Role.MEMBER, "zk_op", "step", step)


PROFILE = Profile(
    equal_timers={
        "zookeeper.session.timeout.ms": "3000",
        **FIRST_CONNECTION,
        "rebalance.backoff.ms": "1000",
        "rebalance.max.retries": "4",
        "auto.commit.interval.ms": "1000",
        "auto.offset.reset": "smallest",
    },
    # ConsumerConfig.scala, except auto.offset.reset: with its `largest` a run would count the records before a member's
    # first position as lost.
    kafka_defaults={
        "zookeeper.session.timeout.ms": "6000",
        "rebalance.backoff.ms": "2000",
        "rebalance.max.retries": "4",
        "auto.commit.interval.ms": "60000",
        "auto.offset.reset": "smallest",
    },
    points=(
        phase("detect"),
        *map(_operation, ("R1", "R2", "R3")),
        phase("stop"),
        _operation("R4"),
        phase("release"),
        _operation("R5"),
        phase("join"),
        _operation("R6"),
        phase("decide"),
        _operation("R8"),
        phase("claim"),
        _operation("R11"),
        phase("resume"),
        END,
    ),
    purposes={
        "register": "registers itself: an ephemeral node with its subscription",
        "subscribe": "registers its watches: the members of its group, the partitions of its topics",
        "delivery": "is notified of a change, and first registers the watch again",
        "R1": "reads the brokers (getCluster)",
        "R2": "reads its own registration: which topics, how many streams",
        "R3": "reads the brokers again, and stops here if there are none",
        "R3a": "no broker: watches /brokers/ids",
        "R4": "stops its fetchers, clears its streams, commits",
        "R5": "releases everything it owns",
        "R6": "reads the group: its own registration, the topics, every member, and the members once more",
        "R7": "each member computes the assignment by itself",
        "R8": "reads the committed offsets of its partitions",
        "R11": "claims its partitions, one after the other",
        "R12": "starts its fetchers",
        "leader-finder": "the leader finder reads the brokers, then asks one of them who leads",
        "commit": "commits",
        "auto-commit": "commits by its timer",
    },
)
