"""The designs of the classic protocol: what differs between them follows from their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.designs.profile import DELAY, END, STATES, STRATEGY, Profile, phase

if TYPE_CHECKING:
    from kernel.designs import Design

_EQUAL_TIMERS = {
    "session.timeout.ms": "3000",
    "heartbeat.interval.ms": "1000",
    "max.poll.interval.ms": "10000",
    "auto.commit.interval.ms": "1000",
    "auto.offset.reset": "earliest",
    STRATEGY: "range",
}
#: 0.10.1 to 2.x: ConsumerConfig.java, the classic protocol with a heartbeat of its own. KIP-345 (2.3) and KIP-429
#: (2.4) came before the session timeout of 45 s (3.0, KIP-735), so static and cooperative have the same timers.
_KAFKA_DEFAULTS = {
    "session.timeout.ms": "10000",
    "heartbeat.interval.ms": "3000",
    "max.poll.interval.ms": "300000",
    "auto.commit.interval.ms": "5000",
    "auto.offset.reset": "earliest",
    STRATEGY: "range",
}
_PURPOSES = {
    "commit": "commits, and keeps what it owns meanwhile",
    "stop": "stops the partitions that it must revoke, and commits them",
    "join": "joins the next generation; the response waits until all members have joined",
    "decide": "leads the group: computes everyone's assignment",
    "claim": "asks for its assignment; the response waits for the leader",
    "resume": "starts its new partitions from the committed offsets",
    "backoff": "waits before it retries",
}
_POINTS = (*map(phase, ("stop", "join", "decide", "claim", "resume")), END, *STATES)


def profile(design: Design) -> Profile:
    strategy = {STRATEGY: design.strategy} if design.strategy else {}
    # One session timeout: Connect's five minutes would be all that a run shows.
    delay = {DELAY: "3000"} if design.delays_reassignment else {}
    # Connect 2.3 (KIP-415), DistributedConfig.java: rebalance.timeout.ms is its max.poll.interval.ms.
    of_connect = {"max.poll.interval.ms": "60000", DELAY: "300000"} if design.delays_reassignment else {}
    return Profile(
        equal_timers={**_EQUAL_TIMERS, **delay, **strategy},
        kafka_defaults={**_KAFKA_DEFAULTS, **of_connect, **strategy},
        points=_POINTS[1:] if design.incremental else _POINTS,  # who stops only what moves has no point for it
        purposes=_PURPOSES | ({} if design.incremental else {"stop": "stops all partitions, and commits them"}),
    )
