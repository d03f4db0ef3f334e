"""`assign --format json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from comparison.assigning.rehearsal import FIGURES
from comparison.assigning.strategies import owners_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from comparison.assigning.group import Group, Plan
    from comparison.assigning.rehearsal import Moment, Rehearsal
    from comparison.assigning.strategies import Owned
    from kernel.values import TopicPartition


def as_json(plan: Plan, found: Sequence[Rehearsal]) -> dict[str, Any]:
    """Everything that the tables show and more."""
    return {
        **_group(plan.group),
        "steps": [step.text for step in plan.steps],
        "strategies": {
            each.strategy: {
                "failed": each.failed or None,
                "moments": [_moment(each.strategy, moment) for moment in each.moments],
            }
            for each in found
        },
    }


def _group(group: Group) -> dict[str, Any]:
    members = [
        {"member": m.name, "instance": m.instance_id, "streams": m.streams, "topics": m.topics} for m in group.members
    ]
    return {"topics": dict(group.sizes), "members": members}


def _moment(strategy: str, moment: Moment) -> dict[str, Any]:
    owners = owners_of(moment.group, strategy)
    return {
        "step": moment.step or None,
        **_group(moment.group),
        "owned": {owner: by_topic(moment.owned.get(owner, ())) for owner in owners},
        "unowned": by_topic(moment.unowned),
        **{name: getattr(moment.figures, name) for name in FIGURES},
        "moves": [
            {"topic": tp.topic, "partition": tp.partition, "from": owner}
            for tp, owner in sorted(moment.came_from.items())
        ],
        "rounds": [{"revoked": _all(each.revoked), "given": _all(each.given)} for each in moment.rounds],
    }


def _all(owned: Owned) -> dict[str, dict[str, list[int]]]:
    return {owner: by_topic(tps) for owner, tps in owned.items()}


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """{topic: the numbers of its partitions}, sorted."""
    found: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        found.setdefault(topic, []).append(number)
    return found
