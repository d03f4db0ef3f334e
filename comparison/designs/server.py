"""`server`: the coordinator that was designed in 2012 and never released."""

from __future__ import annotations

from comparison.designs.profile import END, FIRST_CONNECTION, STATES, Profile, phase

PROFILE = Profile(
    equal_timers={
        "zookeeper.session.timeout.ms": "3000",
        **FIRST_CONNECTION,
        "command.wait.ms": "1000",
        "auto.commit.interval.ms": "1000",
        "auto.offset.reset": "earliest",
    },
    # ZooKeeper timers as in 0.8.2, the rest as in the first release with a coordinator.
    kafka_defaults={
        "zookeeper.session.timeout.ms": "6000",
        "command.wait.ms": "3000",
        "auto.commit.interval.ms": "5000",
        "auto.offset.reset": "earliest",
    },
    points=(*map(phase, ("stop", "join", "resume")), END, *STATES),
    purposes={
        "register": "registers itself: an ephemeral node with its subscription",
        "stop": "stops all partitions, and commits them",
        "join": "acknowledges with its next request; the response waits until all have stopped",
        "resume": "starts its partitions from the offsets in the command",
        "backoff": "waits before it retries",
    },
)
