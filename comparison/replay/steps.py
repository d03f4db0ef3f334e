"""Folds one group's events into the steps that a replay goes through: the playground's fold, its messages. Pure.

A step is an event that is worth stopping at, with what it changed; or, between two of them, what the flow of records
changed in a while. What a lane shows does not depend on the moment: its intervals are gathered, and come with the first
group. Everything after the run began to stop its members is left out, as in the playground.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from comparison.playground import messages
from comparison.playground.live.fold import GroupFold
from comparison.playground.live.moments import told
from comparison.replay.znodes import Znodes
from comparison.wrong_data import WRONG_DATA
from kernel.trace.events import KINDS, Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

#: How long sentences that are told later are waited for, after the last event.
LAST_MS = 3500
#: A replay keeps every interval and sentence: nothing is far behind.
LIMITS = messages.Limits(lanes_ms=10**12, feed=200)
#: What the group begins as a whole, or what is done to it.
REBALANCE, FAULT = "r", "f"
_FAULTS = frozenset({"fault_started", "fault_ended", "change_started"})
#: What goes on as long as the group lives, whoever asks: of long runs these are no steps of their own.
_ROUTINE = frozenset({"Heartbeat", "ConsumerGroupHeartbeat", "OffsetCommit", "Metadata", "ApiVersions"})
_ROUTINE_STEPS = frozenset({"auto-commit", "leader-finder"})
_CONSUMERS = "/consumers/"


class Detail(NamedTuple):
    """How finely a replay shows what happened."""

    frames: int = 600  #: so often at most the counts of what flows change
    routine: bool = True  #: heartbeats and commits that succeeded are steps
    requests: bool = True  #: requests and ZooKeeper operations that succeeded are steps
    words: str = ""  #: what is left out, for the page


#: From the finest to the coarsest.
DETAILS = (
    Detail(),
    Detail(300, routine=False, words="heartbeats and commits that succeeded are no steps of their own"),
    Detail(150, False, False, "requests and ZooKeeper operations that succeeded are no steps of their own"),
    Detail(40, False, False, "requests and ZooKeeper operations that succeeded are no steps of their own"),
)
#: Counts do not change more often than this.
FRAME_MS_LEAST = 100


class Step(NamedTuple):
    """What happened at a moment, and what it changed."""

    at_ms: int
    changes: tuple[messages.AnyChange, ...]
    says: str = ""  #: the event in words; '' of what flows
    mark: str = ""  #: REBALANCE, FAULT, or ''


class Folded(NamedTuple):
    """One group of a run, from its first state through all steps."""

    first: messages.Group  #: with all intervals of the run
    steps: tuple[Step, ...]
    sentences: tuple[messages.Sentence, ...]  #: of the feed, all of them
    znodes: str  #: what the page has to say about where the znodes come from; '' of a group without any
    length_ms: int
    frame_ms: int  #: between two changes of what flows
    unfit: int  #: events that contradict others so that nothing could be made of them


class Event(NamedTuple):
    """An event of a run, on the page's clock, with the role of its process."""

    at_ms: float
    role: str
    event: Mapping[str, object]


def folded(first: messages.Group, events: Sequence[Event], detail: Detail, *, znodes: bool) -> Folded:
    """The steps of a group.

    `znodes`: its members have ZooKeeper sessions.
    """
    last_ms = next((each.at_ms for each in events if _stops(each.event)), events[-1].at_ms if events else 0)
    frame_ms = max(FRAME_MS_LEAST, int(last_ms / detail.frames))
    is_told = any(each.event["kind"] == "offset_written" for each in events)
    return _Folding(first, detail, frame_ms, znodes=znodes, is_told=is_told).all(events, last_ms + LAST_MS)


def _stops(event: Mapping[str, object]) -> bool:
    return event["kind"] == "stage_entered" and event["stage"] == "stop"


class _Folding:
    def __init__(self, first: messages.Group, detail: Detail, frame_ms: int, *, znodes: bool, is_told: bool) -> None:
        self._first = self._group = first
        self._detail = detail
        self._fold = GroupFold(first, is_told=is_told)
        self._znodes = Znodes(coordinated=first.coordinated) if znodes else None
        self._tree_changed = False
        self._steps: list[Step] = []
        self._members: dict[str, messages.Member] = {}
        self._intervals: dict[int, messages.Interval] = {}
        self._sentences: list[messages.Sentence] = []
        self._rebalancing: set[str] = set()
        self._frame_ms = frame_ms
        self._next_ms = 0
        self._unfit = 0
        self._is_over = False

    def all(self, events: Iterable[Event], until_ms: float) -> Folded:
        for at_ms, role, event in events:
            if not self._is_over:
                self._flow(at_ms)
            if _stops(event):
                self._is_over = True  # what still comes is counted, as the analysis does, and not shown
            if event["kind"] in KINDS:  # others mean something to the fold that no trace says
                self._take(at_ms, role, event)
        self._flow(until_ms)
        self._frame(int(until_ms))
        intervals = tuple(each for _, each in sorted(self._intervals.items()))
        return Folded(
            replace(self._first, intervals=intervals),
            tuple(self._steps),
            tuple(self._sentences),
            self._znodes.missing if self._znodes else "",
            int(until_ms),
            self._frame_ms,
            self._unfit,
        )

    def _take(self, at_ms: float, role: str, event: Mapping[str, object]) -> None:
        try:
            if role == Role.OBSERVER and self._znodes is not None:
                self._tree_changed |= self._znodes.take(event)
            self._fold.apply(at_ms, event)
            says = self._says(role, event)
        except WRONG_DATA:
            self._unfit += 1
            return
        if says and not self._is_over:
            self._frame(int(at_ms), says, self._mark(event))

    def _flow(self, until_ms: float) -> None:
        """What flowed before this moment."""
        while self._next_ms <= until_ms:
            self._frame(self._next_ms)
            self._next_ms += self._frame_ms

    def _frame(self, at_ms: int, says: str = "", mark: str = "") -> None:
        if self._tree_changed and self._znodes is not None:
            self._fold.see_tree(at_ms, self._znodes.seen)
            self._tree_changed = False
        self._fold.tell(at_ms)
        kept: list[messages.AnyChange] = []
        for change in self._fold.drain(at_ms, self._group, measured=not says):
            if isinstance(change, messages.IntervalChanged):
                self._intervals[change.interval.id] = change.interval
                continue
            if isinstance(change, messages.Said):
                self._sentences.append(change.sentence)
            kept.append(change)
        self._remember(kept)
        if kept or says:
            self._steps.append(Step(at_ms, tuple(kept), says, mark))

    def _remember(self, changes: Iterable[messages.AnyChange]) -> None:
        """What the fold compares the next changes with."""
        for change in changes:
            match change:
                case messages.MemberChanged():
                    self._members[change.member.name] = change.member
                case messages.CountersChanged():
                    self._group = replace(self._group, counters=change.counters)
                case messages.CoordinatorChanged():
                    self._group = replace(self._group, coordinator=change.coordinator)
        self._group = replace(self._group, members=tuple(self._members.values()))

    def _says(self, role: str, event: Mapping[str, object]) -> str:
        if event["kind"] == "commit_answered" and event["outcome"] == "accepted":
            return ""  # one for each partition; the request has been answered, too
        is_ok = not event.get("error") and event.get("ok") is not False
        if event["kind"] in ("zk_op", "zk_notified", "request_answered"):
            if not self._detail.requests and is_ok:
                return ""
            if role == Role.BROKER and not str(event.get("path", "")).startswith(_CONSUMERS):
                return ""
            if not self._detail.routine and is_ok and _is_routine(event):
                return ""
        return told(event)

    def _mark(self, event: Mapping[str, object]) -> str:
        if event["kind"] in _FAULTS:
            return FAULT
        was_calm = not self._rebalancing
        match event["kind"]:
            case "rebalance_started":
                self._rebalancing.add(str(event["process"]))
                return REBALANCE if was_calm else ""
            case "rebalance_ended":
                self._rebalancing.discard(str(event["process"]))
            case "process_ended":
                self._rebalancing.discard(str(event["target"]))
        return ""


def _is_routine(event: Mapping[str, object]) -> bool:
    return event.get("api") in _ROUTINE or event.get("step") in _ROUTINE_STEPS
