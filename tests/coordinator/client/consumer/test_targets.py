"""Names of the topic ids that the group assigned."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

from coordinator.client.consumer.targets import Targets
from kernel.values import TopicPartition

A, B, A2 = UUID(int=1), UUID(int=2), UUID(int=3)


def targets(**names: UUID) -> tuple[Targets, dict[str, UUID]]:
    client: Any = SimpleNamespace(metadata=SimpleNamespace(topic_ids=names))
    return Targets(client), names


def test_known_part_is_named_and_the_rest_waits_for_metadata() -> None:
    target, metadata = targets(a=A)
    target.take({A: (0, 1), B: (0,)})
    assert target.known() == {TopicPartition("a", 0), TopicPartition("a", 1)}
    assert target.unknown == {B}
    metadata["b"] = B
    assert target.known() == {TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)}
    assert (target.unknown, target.ids) == (frozenset(), {"a": A, "b": B})


def test_deleted_topic_keeps_its_name_while_it_is_assigned() -> None:
    target, metadata = targets(a=A)
    target.take({A: (0,)})
    assert target.known()
    metadata.clear()
    assert target.known() == {TopicPartition("a", 0)}
    assert target.ids == {"a": A}


def test_topic_that_was_created_again_has_the_id_of_the_target() -> None:
    target, metadata = targets(a=A)
    target.take({A: (0,)})
    target.known()
    metadata["a"] = A2
    target.take({A2: (0,)})
    assert target.known() == {TopicPartition("a", 0)}
    assert target.ids == {"a": A2}
