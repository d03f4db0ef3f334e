"""What a group of the `consumer` design knows of its conversion to or from a classic one (`groups.conversion`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from coordinator.groups.effects import Turn
    from coordinator.groups.errors import Error
    from coordinator.groups.records import StoredChange


class Conversion(Protocol):
    """A change of the group's type, stored with the records of the request that brings it about."""

    before: tuple[StoredChange, ...]  #: stored in front of the group's own records
    after: tuple[StoredChange, ...]  #: stored behind them
    kept: frozenset[str]  #: members that stay, under both types
    ends_group: bool  #: this group, not the classic one

    def take_effect(self, turn: Turn) -> None: ...

    def revert(self, error: Error, turn: Turn) -> None:
        """Undo the conversion: it cannot be stored."""

    def trace_ended(self, turn: Turn) -> None:
        """Trace that the former group has ended. Called when the conversion is stored, before its batch is traced."""

    def landed(self, turn: Turn) -> None:
        """Answer and wake whoever waited. Called when the conversion is stored, after its batch was traced."""
