"""One broker for the whole contract suite, and a way to make consumers of the design under test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from comparison.consumers import CONSUMERS, ConsumerRequest
from coordinator.service.mount import mount
from kernel.zookeeper.embedded import EmbeddedZooKeeper
from tests.support.brokers.live import broker_thread
from tests.support.brokers.topics import topics_of
from tests.support.consumers.consuming import Running
from tests.support.trace.tracers import ListTracer

_CLASSIC = {
    "session.timeout.ms": "10000",
    "heartbeat.interval.ms": "100",
    "auto.commit.interval.ms": "60000",
    "auto.offset.reset": "earliest",
    "fetch.max.wait.ms": "100",
    "metadata.max.age.ms": "300",
    "retry.backoff.ms": "50",
}
#: Short timers, but sessions that outlive a busy machine's pauses, under each design's names; records from the start.
QUICK = {
    "zookeeper": {
        "zookeeper.session.timeout.ms": "15000",
        "rebalance.backoff.ms": "200",
        "auto.commit.interval.ms": "60000",
        "auto.offset.reset": "smallest",
        "refresh.leader.backoff.ms": "100",
    },
    "server": {
        "zookeeper.session.timeout.ms": "15000",
        "auto.commit.interval.ms": "60000",
        "auto.offset.reset": "earliest",
        "fetch.max.wait.ms": "100",
        "retry.backoff.ms": "50",
    },
    "eager": _CLASSIC,
    "static": _CLASSIC,  # others wait for the end of its session when this member leaves
    "cooperative": _CLASSIC,
    "delayed": {**_CLASSIC, "scheduled.rebalance.max.delay.ms": "400"},
    "consumer": {
        name: value for name, value in _CLASSIC.items() if name not in ("session.timeout.ms", "heartbeat.interval.ms")
    },
}
#: The timers of the consumer design's members.
_BROKER = {
    "group.consumer.min.session.timeout.ms": "10000",
    "group.consumer.session.timeout.ms": "10000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
}

_numbers = itertools.count()


class Bench:
    """What a contract test uses: a cluster, a topic and a group that no other test has, and the design's consumers."""

    def __init__(self, design: str, zookeeper: str, bootstrap: str) -> None:
        number = next(_numbers)
        self.design = design
        self.zookeeper = zookeeper
        self.bootstrap = bootstrap
        self.topic = f"topic-{number}"
        self.group = f"group-{number}"
        self._members = itertools.count(1)

    def consumer(self, *, zookeeper: str | None = None, bootstrap: str | None = None, **settings: str) -> Running:
        """A consumer that is not started; settings have the design's names, with underscores for dots."""
        process = f"{self.group}-m{next(self._members)}"
        tracer = ListTracer(process=process)
        request = ConsumerRequest(
            process=process,
            group=self.group,
            client_id=process,
            zookeeper=zookeeper or self.zookeeper,
            bootstrap=bootstrap or self.bootstrap,
            instance=process,
            settings={**QUICK[self.design], **{name.replace("_", "."): value for name, value in settings.items()}},
        )
        return Running(CONSUMERS[self.design].consumer(request, tracer), tracer)

    async def create(self, partitions: int, *, topic: str = "") -> None:
        async with topics_of(self.bootstrap) as topics:
            await topics.create({topic or self.topic: partitions})


@pytest.fixture(scope="module")
def cluster(zookeeper: EmbeddedZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """(ZooKeeper's connect string, bootstrap servers)."""
    chroot = f"{zookeeper.connect_string}/contract"
    with broker_thread(chroot, tmp_path_factory.mktemp("contract"), settings=_BROKER, mount=(mount,)) as bootstrap:
        yield chroot, bootstrap


@pytest.fixture(params=sorted(CONSUMERS))
def bench(request: pytest.FixtureRequest, cluster: tuple[str, str]) -> Bench:
    return Bench(request.param, *cluster)
