"""Steps in the life of topics: one is created, grows, or is deleted, under a running group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.scenarios.run.changes import StepPerformer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from comparison.scenarios.plan.topic_vocabulary import CreateTopic, DeleteTopic
    from comparison.scenarios.plan.vocabulary import AddPartitions
    from kernel.values import TopicPartition

CREATED, DELETED = "topic-created", "topic-deleted"
#: A coordinator of KIP-848 searches for topics once in ten seconds (REGEX_BATCH_REFRESH_MIN_INTERVAL_MS), 4.1.1.
SEARCH_S = 10.0


class TopicSteps(StepPerformer):
    """Performs the steps that change a topic; the group notices by itself."""

    async def add_partitions(self, step: AddPartitions) -> None:
        topic = self._testbed.request.parameters.topic_names[0]
        before = self._size_of(topic)
        after = step.partitions_after(before)
        await self._grow("partition-increase", topic, before, after, lambda: self._testbed.grow_topic(topic, after))

    async def create_topic(self, step: CreateTopic) -> None:
        topic, after = step.name, step.partitions
        if self._members.subscriptions.include(self._members.present_places, topic):
            await self._grow(CREATED, topic, 0, after, lambda: self._testbed.create_topic(topic, after))
            return
        self._testbed.tracer.emit("topic_wanted", topic=topic, wanted=0)
        detail = {"topic": topic}
        await self._changes.make(
            CREATED,
            lambda: self._testbed.create_topic(topic, after, used=False),
            members=self._members.present,
            detail=detail,
        )

    async def delete_topic(self, step: DeleteTopic) -> None:
        topic = step.name

        async def shrink() -> None:
            self._members.view.shrink(tp for tp in self._members.view.partitions if tp.topic == topic)
            self._testbed.tracer.emit("topic_wanted", topic=topic, wanted=0)
            await self._testbed.delete_topic(topic)

        detail = {"topic": topic, "before": self._size_of(topic), "after": 0}
        await self._changes.make(DELETED, shrink, members=self._members.present, detail=detail)

    async def _grow(
        self, change: str, topic: str, before: int, after: int, make: Callable[[], Awaitable[list[TopicPartition]]]
    ) -> None:
        """Make a topic as large as that, and wait until the group has shared its new partitions out."""

        async def grow() -> None:
            self._members.view.grow(await make())
            self._testbed.tracer.emit("topic_wanted", topic=topic, wanted=after)
            age_s = self._configuration.metadata_age_ms / 1000
            await self._members.until_settled(self._changes.takeover_s + age_s + SEARCH_S)

        detail = {"topic": topic, "before": before, "after": after}
        await self._changes.make(change, grow, members=self._members.present, detail=detail)

    def _size_of(self, topic: str) -> int:
        return sum(tp.topic == topic for tp in self._testbed.partitions)
