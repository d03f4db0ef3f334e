"""Steps about the life of topics, and about members that subscribe by a pattern.

As in `comparison.scenarios.plan.vocabulary`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from comparison.scenarios.plan.step import Step, pattern_problem
from kernel.suggestions import unknown
from kernel.topic_names import topic_name_problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from comparison.scenarios.plan.step import Sizes


@dataclass(frozen=True, slots=True)
class CreateTopic(Step):
    """Create a topic while the group runs. If the members' pattern matches it, the producer uses it at once."""

    name: str
    partitions: int = 8

    waits_for_metadata: ClassVar[bool] = True
    disturbs: ClassVar[bool] = True

    def names_after(self, before: frozenset[str]) -> frozenset[str]:
        return before | {self.name}

    def complaints(self, before: Sizes) -> Iterator[str]:
        if problem := topic_name_problem(self.name):
            yield f"name {self.name!r}: {problem}"
        if self.name in before.names:
            yield f"name {self.name!r}: there is such a topic by then"


@dataclass(frozen=True, slots=True)
class DeleteTopic(Step):
    """Delete a topic with all its records, to which the producer has stopped writing."""

    name: str

    waits_for_metadata: ClassVar[bool] = True
    disturbs: ClassVar[bool] = True

    def names_after(self, before: frozenset[str]) -> frozenset[str]:
        return before - {self.name}

    def complaints(self, before: Sizes) -> Iterator[str]:
        if self.name not in before.names:
            yield unknown("topic", self.name, sorted(before.names))


@dataclass(frozen=True, slots=True)
class RecreateTopic(Step):
    """Delete the first topic, once the group has committed all of its records, and create it again under its name.

    The new topic's log begins at offset 0; the serial numbers of its records go on. There is no topic for `away_ms`
    milliseconds: if that is less than metadata.max.age.ms, classic members may never hear of it.
    """

    away_ms: int = 3000

    waits_for_metadata: ClassVar[bool] = True
    disturbs: ClassVar[bool] = True

    def sentence(self) -> str:
        return (
            "Delete the first topic, once the group has committed all of its records, and create it again under its "
            f"name {self.away_ms / 1000:g} s later."
        )


@dataclass(frozen=True, slots=True)
class SubscribePattern(Step):
    """Let all members, one after the other, subscribe to topics by another pattern.

    Who matches it depends on the design, as with `rebalance-lab consume --regex`. In zookeeper a running member cannot
    change its subscription, so its process is shut down and started again.
    """

    pattern: str

    changes_subscriptions: ClassVar[bool] = True
    waits_for_metadata: ClassVar[bool] = True
    disturbs: ClassVar[bool] = True

    def complaints_in(self, design: str) -> Iterator[str]:
        yield from pattern_problem(design, self.pattern)
