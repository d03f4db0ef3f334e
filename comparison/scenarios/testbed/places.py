"""What a request says of the places at which members run, and what these subscribe to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.java_regex import compiled

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from comparison.scenarios.plan.request import RunRequest


def chosen_victim(request: RunRequest, places: Sequence[str], random: Random) -> str:
    """The place to cut off in a split-brain run, where a member is by then; '' in any other."""
    if not request.split_brain:
        return ""
    present = -(-request.parameters.members // request.scenario.members_per_process)
    return places[present] if request.joins_behind else random.choice(places[:present])


class Subscriptions:
    """What the members at each place subscribe to, by name or by a pattern: first as the scenario says."""

    def __init__(self, request: RunRequest, places: Sequence[str]) -> None:
        self._request = request
        self._topics: dict[str, tuple[str, ...]] = {}
        self._patterns: dict[str, str] = {}
        for number, place in enumerate(places, start=1):
            self.begin(place, number)

    def begin(self, place: str, number: int) -> None:
        """The place of this number has the scenario's subscription."""
        names, scenario = self._request.parameters.topic_names, self._request.scenario
        numbers = scenario.first_topics.get(number, tuple(range(len(names))))
        self._topics[place] = tuple(names[each] for each in numbers)
        self._patterns[place] = scenario.pattern

    def change(self, place: str, topics: Sequence[str] = (), pattern: str = "") -> None:
        """Subscribe to other topics, or by another pattern; with neither, to what it was."""
        if topics or pattern:
            self._topics[place], self._patterns[place] = tuple(topics), pattern

    def include(self, places: Sequence[str], topic: str) -> bool:
        """Whether members at one of the places want a topic, if it exists."""
        patterns = {self._patterns[place] for place in places} - {""}
        named = any(topic in self._topics[place] for place in places if not self._patterns[place])
        return named or any(compiled(pattern).fullmatch(topic) for pattern in patterns)

    def names(self, place: str) -> frozenset[str] | None:
        """The topics; None: by a pattern."""
        return None if self._patterns[place] else frozenset(self._topics[place])

    def of(self, place: str) -> dict[str, object]:
        """As a member's process reads it."""
        streams = self._request.parameters.streams
        pattern = self._patterns[place]
        return {"topics": dict.fromkeys(self._topics[place], streams), "pattern": pattern, "streams": streams}
