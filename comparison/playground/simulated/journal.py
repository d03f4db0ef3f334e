"""What was played in a design, and when: enough to play it again, in the same design or in another. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from comparison.playground.commands import GroupCommand


class Entry(NamedTuple):
    """A command, and its moment since the game began. One that was refused will be again."""

    at_ns: int
    command: GroupCommand
    is_refused: bool = False


@dataclass(frozen=True, slots=True)
class Journal:
    """Commands in the order in which they were given; the present world has been given the first `given` of them."""

    entries: tuple[Entry, ...] = ()
    given: int = 0

    def added(self, at_ns: int, command: GroupCommand) -> Journal:
        """With a command that is given now."""
        assert not self.is_due_later, "what is left is given first"
        assert not self.entries or self.entries[-1].at_ns <= at_ns, "time goes on"
        entries = (*self.entries, Entry(at_ns, command))
        return Journal(entries, len(entries))

    def before(self, at_ns: int) -> Journal:
        """What was given before a moment, for another world."""
        return Journal(tuple(entry for entry in self.entries if entry.at_ns < at_ns))

    def again(self) -> Journal:
        """All of it, for another world."""
        return Journal(self.entries)

    @property
    def is_due_later(self) -> bool:
        """Whether something is to be given still."""
        return self.given < len(self.entries)

    @property
    def next_ns(self) -> int | None:
        """When the next command is to be given."""
        return self.entries[self.given].at_ns if self.is_due_later else None

    def answered(self, *, is_refused: bool) -> Journal:
        """With the answer to the last command that was given."""
        last = self.entries[self.given - 1]._replace(is_refused=is_refused)
        return replace(self, entries=(*self.entries[: self.given - 1], last, *self.entries[self.given :]))

    def taken(self) -> tuple[GroupCommand, Journal]:
        """The next command, and the journal after it was given."""
        return self.entries[self.given].command, replace(self, given=self.given + 1)
