"""What a request says of the places at which members run, before any does."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from comparison.scenarios.plan.request import RunRequest


def first_topics(request: RunRequest, place: int) -> tuple[str, ...]:
    """The topics that the first process at a place subscribes to."""
    names = request.parameters.topic_names
    numbers = request.scenario.first_topics.get(place, tuple(range(len(names))))
    return tuple(names[number] for number in numbers)


def chosen_victim(request: RunRequest, places: Sequence[str], random: Random) -> str:
    """The place to cut off in a split-brain run, where a member is by then; '' in any other."""
    if not request.split_brain:
        return ""
    present = -(-request.parameters.members // request.scenario.members_per_process)
    return places[present] if request.joins_behind else random.choice(places[:present])
