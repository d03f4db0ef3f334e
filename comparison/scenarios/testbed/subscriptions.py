"""What the members at each place subscribe to: topics by name, or a pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.java_regex import compiled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.scenarios.plan.request import RunRequest


class Subscriptions:
    """By place, from the scenario's at the start to what steps have changed."""

    def __init__(self, request: RunRequest) -> None:
        self._request = request
        self._topics: dict[str, tuple[str, ...]] = {}
        self._patterns: dict[str, str] = {}

    def begin(self, place: str, number: int) -> None:
        """The place of this number has the scenario's subscription."""
        names, scenario = self._request.parameters.topic_names, self._request.scenario
        numbers = scenario.first_topics.get(number, tuple(range(len(names))))
        self._topics[place] = tuple(names[number] for number in numbers)
        self._patterns[place] = scenario.pattern

    def change(self, place: str, topics: Sequence[str] = (), pattern: str = "") -> None:
        """Subscribe to other topics, or by another pattern; with neither, to what it was."""
        if topics or pattern:
            self._topics[place], self._patterns[place] = tuple(topics), pattern

    def includes(self, place: str, topic: str) -> bool:
        """Whether members there want a topic, if it exists."""
        pattern = self._patterns[place]
        return compiled(pattern).fullmatch(topic) is not None if pattern else topic in self._topics[place]

    def names(self, place: str) -> frozenset[str] | None:
        """The topics; None: by a pattern."""
        return None if self._patterns[place] else frozenset(self._topics[place])

    def of(self, place: str) -> dict[str, object]:
        """As a member's process reads it."""
        streams = self._request.parameters.streams
        pattern = self._patterns[place]
        return {"topics": dict.fromkeys(self._topics[place], streams), "pattern": pattern, "streams": streams}
