"""Waits until a group has read and committed what was produced."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from kernel.waiting import WaitTimeout, until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparison.scenarios.testbed.group_members import GroupMembers
    from kernel.values import TopicPartition

_DRAIN_S = 60.0
_COMMITTED_S = 5.0


async def drain(members: GroupMembers, ends: Mapping[TopicPartition, int]) -> None:
    """Wait until everything before the ends of these logs is delivered and committed. Raises `WaitTimeout`.

    A refused or unreported commit fails nothing: final offsets show it.
    """
    view = members.view

    def behind(offsets: Mapping[TopicPartition, int]) -> list[str]:
        members.check()
        return [str(tp) for tp, end in ends.items() if offsets.get(tp, 0) < end]

    await until(
        lambda: not behind(view.delivered),
        _DRAIN_S,
        lambda: f"all records to be delivered; behind: {', '.join(behind(view.delivered)) or 'none'}",
    )
    members.commit()
    with contextlib.suppress(WaitTimeout):
        await until(lambda: not behind(view.committed), _COMMITTED_S, "all records to be committed")
