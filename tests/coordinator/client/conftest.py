"""One broker for all live tests of a module; each test has its own topics and group."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from coordinator.service.mount import mount
from kernel.zookeeper.embedded import EmbeddedZooKeeper
from tests.support.brokers.live import broker_thread
from tests.support.brokers.topics import Topics, topics_of
from tests.support.consumers.consuming import Running
from tests.support.consumers.eager import eager

#: Metadata is refreshed every 200 ms; a member that must not notice a change by itself gets another value.
QUICK = {"metadata.max.age.ms": "200", "retry.backoff.ms": "50", "allow.auto.create.topics": "false"}

_numbers = itertools.count()


class Place:
    """A group and names for topics that no other test has."""

    def __init__(self, bootstrap: str, topics: Topics, stack: AsyncExitStack) -> None:
        self._number = next(_numbers)
        self._bootstrap = bootstrap
        self._stack = stack
        self.topics = topics

    def topic(self, name: str) -> str:
        return f"{name}-{self._number}"

    def member(self, **settings: str) -> Running:
        """A member that is not started, and is closed at the end; settings with underscores for dots."""
        given = {**QUICK, **{name.replace("_", "."): value for name, value in settings.items()}}
        member = eager(self._bootstrap, f"group-{self._number}", given)
        self._stack.push_async_callback(member.close)
        return member


class Places:
    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    @asynccontextmanager
    async def place(self) -> AsyncIterator[Place]:
        async with topics_of(self.bootstrap) as topics, AsyncExitStack() as stack:
            yield Place(self.bootstrap, topics, stack)


@pytest.fixture(autouse=True)
def leaving_takes_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A close on a busy machine still gets the answers to its last requests, which tests assert."""
    monkeypatch.setattr("coordinator.client.member_runner.LEAVE_TIMEOUT_MS", 30_000)


@pytest.fixture(scope="module")
def places(zookeeper: EmbeddedZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    data_dir = tmp_path_factory.mktemp("subscriptions")  # a name that no other module has
    chroot = f"{zookeeper.connect_string}/{data_dir.name}"
    with broker_thread(chroot, data_dir, mount=(mount,)) as bootstrap:
        yield Places(bootstrap)
