"""Steps in the life of topics: one is created, grows, is deleted, or is created again, under a running group."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from comparison.scenarios.run.changes import StepPerformer
from comparison.scenarios.run.draining import drain

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from comparison.scenarios.plan.topic_vocabulary import CreateTopic, DeleteTopic, RecreateTopic
    from comparison.scenarios.plan.vocabulary import AddPartitions
    from kernel.values import TopicPartition

CREATED, DELETED, RECREATED = "topic-created", "topic-deleted", "topic-recreated"
#: A coordinator of KIP-848 searches for topics once in ten seconds (REGEX_BATCH_REFRESH_MIN_INTERVAL_MS), 4.1.1.
SEARCH_S = 10.0


class TopicSteps(StepPerformer):
    """Performs the steps that change a topic; the group notices by itself."""

    async def add_partitions(self, step: AddPartitions) -> None:
        topic = self._testbed.request.parameters.topic_names[0]
        before = self._size_of(topic)
        after = step.partitions_after(before)
        detail: dict[str, object] = {"topic": topic, "before": before, "after": after}
        if not step.wait:
            self._changes.begin("partition-increase", members=self._members.present, detail=detail)
            await self._have_grown(topic, after, self._testbed.grow_topic(topic, after))
            return
        await self._grow("partition-increase", after, lambda: self._testbed.grow_topic(topic, after), detail)

    async def create_topic(self, step: CreateTopic) -> None:
        topic, after = step.name, step.partitions
        if self._members.subscriptions.include(self._members.present_places, topic):
            grown = {"topic": topic, "before": 0, "after": after}
            await self._grow(CREATED, after, lambda: self._testbed.create_topic(topic, after), grown)
            return
        self._testbed.tracer.emit("topic_wanted", topic=topic, wanted=0)
        await self._changes.make(
            CREATED,
            lambda: self._testbed.create_topic(topic, after, used=False),
            members=self._members.present,
            detail={"topic": topic},
        )

    async def delete_topic(self, step: DeleteTopic) -> None:
        topic = step.name
        detail = {"topic": topic, "before": self._size_of(topic), "after": 0}
        await self._changes.make(DELETED, lambda: self._delete(topic), members=self._members.present, detail=detail)

    async def recreate_topic(self, step: RecreateTopic) -> None:
        topic = self._testbed.request.parameters.topic_names[0]
        partitions = self._size_of(topic)

        async def make() -> list[TopicPartition]:
            await drain(self._members, await self._testbed.load.leave_out(topic))
            await self._delete(topic)
            await asyncio.sleep(step.away_ms / 1000)
            return await self._testbed.create_topic(topic, partitions)

        await self._grow(RECREATED, partitions, make, {"topic": topic})

    async def _delete(self, topic: str) -> None:
        self._members.view.shrink(tp for tp in self._members.view.partitions if tp.topic == topic)
        self._testbed.tracer.emit("topic_wanted", topic=topic, wanted=0)
        await self._testbed.delete_topic(topic)

    async def _grow(
        self,
        change: str,
        after: int,
        make: Callable[[], Awaitable[list[TopicPartition]]],
        detail: Mapping[str, object],
    ) -> None:
        """Make a topic as large as that, and wait until the group has shared its new partitions out."""

        async def grow() -> None:
            await self._have_grown(str(detail["topic"]), after, make())
            age_s = self._configuration.metadata_age_ms / 1000
            await self._members.until_settled(self._changes.takeover_s + age_s + SEARCH_S)

        await self._changes.make(change, grow, members=self._members.present, detail=detail)

    async def _have_grown(self, topic: str, after: int, growing: Awaitable[list[TopicPartition]]) -> None:
        self._members.view.grow(await growing)
        self._testbed.tracer.emit("topic_wanted", topic=topic, wanted=after)

    def _size_of(self, topic: str) -> int:
        return sum(tp.topic == topic for tp in self._testbed.partitions)
