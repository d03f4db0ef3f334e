"""The faults of a group's members that somebody began on the page, and that are in effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.scenarios.run.injections import Injections
from comparison.scenarios.run.performer import OurPerformer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparison.scenarios.run.changes import Changes
    from comparison.scenarios.run.injections import InEffect
    from comparison.scenarios.run.performer import Performer


class Stepping(OurPerformer):
    """A member waits before each ZooKeeper operation."""

    async def inject(self) -> None:
        self.members.step(self.target, on=True)

    async def heal(self) -> None:
        self.members.step(self.target, on=False)


class Faults:
    """By fault and place."""

    def __init__(self, changes: Changes) -> None:
        self._members = changes.members
        self._injections = Injections(changes)
        self._present: dict[tuple[str, str], InEffect] = {}

    async def set_up(self, fault: str, target: str, given: Mapping[str, int | str] | None = None) -> Performer:
        return await self._injections.set_up(fault, target, given or {})

    async def strike(self, fault: str, performer: Performer) -> None:
        """Begin one that nothing ends."""
        await self._injections.strike(fault, performer, {})

    async def begin(self, fault: str, place: str, performer: Performer, **detail: object) -> None:
        self._present[fault, place] = await self._injections.begin(fault, performer, detail)

    def has(self, fault: str, place: str) -> bool:
        return (fault, place) in self._present

    async def end(self, fault: str, place: str) -> None:
        if fault == "freeze":
            # Written to its input while it is frozen: the first thing that its application does is to commit.
            self._members.commit_remembered(self._members.process_at(place))
        await self._injections.undo(self._present.pop((fault, place)))
        if fault == "cut":
            self._members.view.take_back(self._members.process_at(place))

    async def undo(self, place: str, *, ended: bool = False) -> None:
        """Undo all faults of a member; `ended`: its process has ended, and they with it."""
        ended = ended or self._members.is_gone(self._members.process_at(place))
        for fault, where in [each for each in self._present if each[1] == place]:
            if ended and fault != "cut":  # a process that has ended has to be healed: its pid may come again
                self._injections.forget(self._present.pop((fault, where)))
            else:
                await self.end(fault, where)
