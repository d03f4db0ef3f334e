"""The topics that match a pattern: remembered, watched, and compared at each delivery."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kernel.errors import RebalanceFailed
from kernel.waiting import until
from tests.support.consumers.wildcards import add_topic
from tests.support.trace.tracers import ListTracer
from tests.support.zookeeper.sessions import opened
from zkconsumer.watching.topics import MatchingTopics
from zkconsumer.watching.watcher import Watcher
from zkconsumer.znodes.filters import TopicFilter


class Following:
    """A member's matching topics, now and at each change."""

    def __init__(self, watcher: Watcher, tracer: ListTracer, topic_filter: TopicFilter) -> None:
        self.tracer = tracer
        self.changes: list[tuple[str, ...]] = []
        self.fails = False
        found = MatchingTopics.of(topic_filter, watcher, self._changed, exclude_internal=True)
        assert found is not None
        self.topics = found

    async def _changed(self, _: str) -> None:
        self.changes.append(await self.topics.matching_now())
        if self.fails:
            raise RebalanceFailed("4 attempts")

    async def wait(self, *expected: tuple[str, ...]) -> None:
        await until(lambda: len(self.changes) >= len(expected), 60, lambda: f"{expected}, found {self.changes}")
        assert self.changes == list(expected)


@asynccontextmanager
async def following(connect_string: str, pattern: str) -> AsyncIterator[Following]:
    tracer = ListTracer()

    async def renewed() -> None:
        pass

    async with opened(connect_string, tracer) as session:
        watcher = Watcher(session, renewed)
        watcher.begin()
        delivering = asyncio.create_task(watcher.deliver())
        try:
            yield Following(watcher, tracer, TopicFilter.white(pattern))
        finally:
            delivering.cancel()


async def test_member_without_a_pattern_follows_no_topics(chroot):
    async with opened(chroot) as session:

        async def never(_: str) -> None:
            raise AssertionError

        watcher = Watcher(session, lambda: never(""))
        assert MatchingTopics.of(None, watcher, never, exclude_internal=True) is None


async def test_only_a_change_of_the_matching_topics_is_reported(chroot):
    async with opened(chroot) as other, following(chroot, "t.*") as ours:
        await add_topic(other, "t1", 1)
        await ours.topics.remember()
        await ours.topics.listen()
        await add_topic(other, "other", 1)
        await add_topic(other, "t2", 1)
        await ours.wait(("t1", "t2"))
        await other.delete("/brokers/topics/t1")
        await ours.wait(("t1", "t2"), ("t2",))


async def test_topic_created_before_the_member_listens_is_found_by_the_check_afterwards(chroot):
    async with opened(chroot) as other, following(chroot, "t.*") as ours:
        await ours.topics.remember()
        await add_topic(other, "t1", 1)
        await ours.topics.listen()
        assert ours.changes == [("t1",)]


async def test_missing_folder_of_topics_matches_nothing_and_is_created_by_listening(chroot):
    async with opened(chroot) as other, following(chroot, "t.*") as ours:
        await ours.topics.remember()
        assert await ours.topics.matching_now() == ()
        await ours.topics.listen()
        assert (await other.get("/brokers/topics"))[0] == b""
        await add_topic(other, "t1", 1)
        await ours.wait(("t1",))


async def test_failed_rebalance_does_not_stop_the_next_change(chroot, caplog):
    async with opened(chroot) as other, following(chroot, "t.*") as ours:
        await ours.topics.remember()
        await ours.topics.listen()
        ours.fails = True
        await add_topic(other, "t1", 1)
        await ours.wait(("t1",))
        await until(lambda: "could not handle a change" in caplog.text, 60, "the failure to be logged")
        await add_topic(other, "t2", 1)
        await ours.wait(("t1",), ("t1", "t2"))


async def test_renewed_session_is_listened_in_only_after_listening_began(chroot):
    async with opened(chroot), following(chroot, "t.*") as ours:
        await ours.topics.renewed()
        assert not ours.tracer.of("zk_op")
        await ours.topics.listen()
        number = len(ours.tracer.of("zk_op"))
        await ours.topics.renewed()
        again = [each["op"] for each in ours.tracer.of("zk_op")[number:]]
        assert again == ["exists", "getChildren"]
