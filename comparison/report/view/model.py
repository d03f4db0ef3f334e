"""What happened in one run, as values to be drawn: who had which partition, by two truths, and what disturbed it.

Nothing here was measured by the report: every value is a row of the tables that the analysis wrote
(`comparison.report.view.tables`), with members under the short names of the pictures. Times are milliseconds on the
run's clock, as in result.json. `comparison.report.diagrams.timeline` makes the same values from traces, for `diagram`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of time; the end is not part of it."""

    from_ms: float
    until_ms: float

    @property
    def length_ms(self) -> float:
        return self.until_ms - self.from_ms


def joined(stretches: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Begins and ends of stretches, those that touch or overlap as one, in order."""
    found: list[tuple[float, float]] = []
    for low, high in sorted(stretches):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return found


@dataclass(frozen=True, slots=True)
class Holding(Stretch):
    """A member has a partition."""

    member: str


@dataclass(frozen=True, slots=True)
class Overlap(Stretch):
    """Several members deliver the same partition."""

    members: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A commit as the authority answered it; `outcome` is `accepted`, or the error."""

    at_ms: float
    member: str
    offset: int
    outcome: str
    is_stale: bool  #: by another member than the owner
    moved_back_by: int  #: 0: it did not move the committed offset back
    is_by_runner: bool = False  #: in the member's name, whose process was frozen

    @property
    def is_accepted(self) -> bool:
        return self.outcome == ACCEPTED


ACCEPTED = "accepted"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """One partition's lane; each sequence in the order of time."""

    name: str
    named: tuple[Holding, ...]  #: by the authority
    delivering: tuple[Holding, ...]
    overlaps: tuple[Overlap, ...]
    unnamed: tuple[Stretch, ...]  #: the authority names nobody, though the group should own it
    unclaimed: tuple[Stretch, ...]  #: no member believes that it owns it
    commits: tuple[Commit, ...]


@dataclass(frozen=True, slots=True)
class Phase(Stretch):
    """A member is in a phase of a rebalance (kernel.trace.events.PHASES)."""

    member: str
    phase: str


@dataclass(frozen=True, slots=True)
class Rebalance(Stretch):
    """A member's own rebalance, from its start to its end."""

    member: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval(Stretch):
    """What happened in an interval of the run, in records; None: nobody knows how far the logs reached."""

    delivered: int
    duplicates: int  #: delivered again
    undelivered: int | None  #: at its end, acknowledged and delivered to nobody yet
    lag: int | None  #: at its end, acknowledged and not committed


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """A member at the barrier of a rebalance; `at_ms` is None if it never joined."""

    number: int  #: of the rebalance
    member: str
    at_ms: float | None
    waited_ms: float
    is_waited_for: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One rebalance of the group; None where the run ended before."""

    number: int  #: from 1
    from_ms: float
    until_ms: float | None
    generation: int | None  #: without a coordinator there is none

    @property
    def shown(self) -> str:
        """How lanes call it: by its generation, or its number."""
        return str(self.number if self.generation is None else self.generation)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of one target; without `healed_ms` it was not healed."""

    fault: str
    target: str
    from_ms: float
    healed_ms: float | None
    other_length: str = ""  #: in words, where it was to last another time


@dataclass(frozen=True, slots=True)
class Change:
    """The runner changed the group, or one `target` in it."""

    name: str
    at_ms: float
    target: str = ""


#: Kinds of messages; a NOTE is about its sender alone.
REQUEST, REFUSED, ANSWER, WATCH, NOTE = "request", "refused", "answer", "watch", "note"


@dataclass(frozen=True, slots=True)
class Message(Stretch):
    """Sent at `from_ms` at the earliest, and arrived at `until_ms`; without a receiver it is a note."""

    kind: str
    sender: str
    receiver: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One rebalance of the group, as messages; `actors` are in the order of the lifelines."""

    number: int  #: as in `diagram --list`
    from_ms: float
    until_ms: float
    generations: tuple[int, ...]
    causes: str  #: which members began, and why, in words
    actors: tuple[str, ...]
    messages: tuple[Message, ...]
    members_left_out: tuple[str, ...]
    messages_left_out: int


@dataclass(frozen=True, slots=True)
class RawEvent:
    """An event as it was traced: whom and which partitions it is about, and its kind and fields as text."""

    at_ms: float
    who: str
    partitions: tuple[str, ...]
    text: str
    rank: int  #: of those that are too many, the ones of the highest rank are left out


@dataclass(frozen=True, slots=True)
class Moment:
    """An event of a chain of causes, in words."""

    at_ms: float
    text: str


class About(Enum):
    """What is explained of a partition's lane."""

    PAUSE = auto()  #: nobody delivered
    OVERLAP = auto()  #: two delivered
    UNNAMED = auto()  #: the authority named no owner


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason(Stretch):
    """Why a stretch of these partitions' lanes is hatched, red or idle, in sentences; see `view.reasons`."""

    about: About
    partitions: tuple[str, ...]
    text: str
    moments: tuple[Moment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """One run. `places` says which members are one member's lives, by its first name: m1.2 is m1 restarted."""

    scenario: str
    design: str
    seed: int
    authority: str  #: in words
    members: tuple[str, ...]  #: short names, in the order of the lanes
    places: Mapping[str, str]
    full_names: Mapping[str, str]  #: by short name, where it was shortened
    partitions: tuple[PartitionView, ...]
    phases: tuple[Phase, ...]
    rounds: tuple[Round, ...]
    faults: tuple[Fault, ...]
    changes: tuple[Change, ...]
    began_ms: float
    ended_ms: float
    left_out: Mapping[str, int]  #: rows that were too many to read, by table
    numbered_by: str = "generation"  #: what numbers the rounds
    path: str = ""  #: of the run's folder
    conversations: tuple[Conversation, ...] = ()
    events: tuple[RawEvent, ...] = ()  #: without those that come by the thousand
    rebalances: tuple[Rebalance, ...] = ()
    course: tuple[Interval, ...] = ()
    joined: tuple[Joined, ...] = ()
    reasons: tuple[Reason, ...] = ()

    @property
    def zero_ms(self) -> float:
        """The first change or fault: where runs of several designs are aligned."""
        moments = [each.at_ms for each in self.changes] + [each.from_ms for each in self.faults]
        return min(moments, default=self.began_ms)

    @property
    def lanes(self) -> tuple[str, ...]:
        """A name for each member, its restarts included."""
        return tuple(dict.fromkeys(self.places[member] for member in self.members))
