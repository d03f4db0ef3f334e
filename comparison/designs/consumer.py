"""`consumer`: Kafka 4.0 (KIP-848). How long its sessions last is a setting of the brokers."""

from __future__ import annotations

from comparison.designs.profile import END, STATES, Profile, phase, state

PROFILE = Profile(
    equal_timers={
        "max.poll.interval.ms": "10000",
        "auto.commit.interval.ms": "1000",
        "auto.offset.reset": "earliest",
    },
    # ConsumerConfig.java; GroupCoordinatorConfig.java for the brokers' timers.
    kafka_defaults={
        "max.poll.interval.ms": "300000",
        "auto.commit.interval.ms": "5000",
        "auto.offset.reset": "earliest",
    },
    points=(*map(phase, ("join", "stop", "resume")), END, state("reconciling", "Reconciling"), STATES[-1]),
    purposes={
        "commit": "commits, and keeps what it owns meanwhile",
        "join": "takes over the target that a heartbeat has brought; it waits for nobody",
        "stop": "stops the partitions that it must give up, and commits them",
        "resume": "starts its new partitions from the committed offsets, and says so with its next heartbeat",
        "backoff": "waits before it retries",
    },
)
