"""What performs a fault: one class for each kind, with setup, inject and heal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from comparison.scenarios.plan.faults import Given
    from comparison.scenarios.processes.children import ChildProcess
    from comparison.scenarios.run.changes import Changes
    from comparison.scenarios.run.reach import Group
    from comparison.scenarios.testbed.group_members import GroupMembers
    from comparison.scenarios.testbed.proxy import Picks
    from comparison.scenarios.testbed.testbed import Testbed


class Performer:
    """One fault in one target, by a user or by us; `values` has all its parameters."""

    #: The change of the group that its heal makes, if that is one of its own.
    heals_by = ""

    def __init__(self, changes: Group, target: str, values: Mapping[str, Given]) -> None:
        self.changes = changes
        self.members = changes.members
        self.testbed = changes.testbed
        self.values = values
        #: As the trace names it: a process, or a link's two ends.
        self.target = target

    def number(self, name: str) -> int:
        return int(self.values[name])

    async def setup(self) -> None:
        """Find the target, before the fault is traced. By default it is what it was named."""

    async def inject(self) -> None:
        """Make the fault begin; one that has nothing to heal is over when this returns."""

    async def heal(self) -> None:
        """Make the fault end."""

    @property
    def comes(self) -> int:
        """How many members more there are when it has begun, and again fewer when it is healed."""
        return 0

    def abandon(self) -> None:
        """Undo at once what would keep processes from ending: the run is broken off. Links are healed anyway."""

    def member(self, named: str) -> str:
        """The process of a member: `owner`, or a place. Raises `UserError` if nobody is there."""
        if named == "owner":
            return self.members.choose_owner()
        if not self.members.has_joined(named):
            raise UserError(f"there is no member at {named} to inject a fault into")
        return self.members.process_at(named)


class OurPerformer(Performer):
    """A fault of ours, which reaches all of the group and of the testbed."""

    changes: Changes
    members: GroupMembers
    testbed: Testbed


class Together(OurPerformer):
    """Several performers as one fault of one target."""

    def __init__(self, changes: Changes, target: str, parts: Sequence[Performer]) -> None:
        super().__init__(changes, target, {})
        self._parts = parts

    async def setup(self) -> None:
        for part in self._parts:
            await part.setup()

    async def inject(self) -> None:
        for part in self._parts:
            await part.inject()

    async def heal(self) -> None:
        for part in self._parts:
            await part.heal()

    def abandon(self) -> None:
        for part in self._parts:
            part.abandon()


def of_process(child: ChildProcess) -> Picks:
    """Picks the connections of a process at a proxy."""

    def picks(ports: Collection[int]) -> Collection[int]:
        return child.process.ports.intersection(ports)

    return picks
