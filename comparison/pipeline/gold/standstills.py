"""How long records of a partition waited while nothing was delivered from it, and why.

A partition can have an owner and stand still: its leader went, its owner is slow or frozen, or the application paused
it. A *standstill* is from the last poll that returned something, or from when the first record behind it was handed to
the producer, if that was later, until the next poll. It counts while the group is measured as running and has a member,
and if it is longer than an interval of the run's course: what is shorter nobody can see there.

It is cut into parts by what the trace knows of each moment: see Cause.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from comparison.ownership.cover import cut, gaps_of, united
from comparison.pipeline.gold.course import NO_OFFSET, of_readers
from comparison.pipeline.gold.skips import without
from comparison.pipeline.measured_standstills import FAULTS, Standstill, Standstills
from comparison.pipeline.silver.arrays import ends, following, highest, integers, starts, taken, tuples_of
from comparison.pipeline.silver.course import intervals_of
from comparison.pipeline.silver.hindrances import PAUSED, REFUSED
from comparison.pipeline.silver.naming import keys_of
from comparison.results.causes import Cause

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from comparison.ownership.cover import Stretch
    from comparison.pipeline.silver.context import Context
    from comparison.pipeline.silver.naming import Key
    from comparison.pipeline.silver.reduce import Bundle

    Numbers = NDArray[np.int64]

#: So many partitions are named.
NAMED_MAX = 50


def standstills_of(
    bundle: Bundle, believes: pa.Table, wanted: Mapping[Key, Sequence[Stretch]], context: Context
) -> Standstills | None:
    """The standstills of these partitions, each `wanted` then; None if it is not known which records waited when."""
    if not len(bundle.produced):
        return None
    least_ns = intervals_of(context.span).length_ns
    course, why = _Course(bundle, context), _Reasons(bundle, believes, context)
    waiting_since = course.waiting()
    found: list[Standstill] = []
    for pause in course.pauses(least_ns):
        since_ns = waiting_since(pause.key, pause.reached)
        if since_ns is None:
            continue
        key = group, topic, partition = course.meanings[pause.key]
        for low, high in cut(wanted.get(key, ()), max(pause.from_ns, since_ns), pause.until_ns):
            if high - low > least_ns:
                found.append(
                    Standstill(
                        group=group,
                        topic=topic,
                        partition=partition,
                        from_ns=low,
                        until_ns=high,
                        causes=why.of(key, low, high, pause.from_ns),
                    )
                )
    return added([_summed(found, context)])


def added(parts: Iterable[Standstills | None]) -> Standstills | None:
    """Those of several sets of partitions together."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    causes: Counter[str] = Counter()
    by_window: dict[int, int] = {}
    for part in known:
        causes.update(part.causes)
        for window, longest_ns in part.by_window.items():
            by_window[window] = max(longest_ns, by_window.get(window, 0))
    longest = heapq.nsmallest(NAMED_MAX, (each for part in known for each in part.longest), key=_place)
    return Standstills(causes=dict(causes), by_window=by_window, longest=longest)


def _place(each: Standstill) -> tuple[int, str, str, int, int]:
    """The longest first."""
    return each.from_ns - each.until_ns, each.group, each.topic, each.partition, each.from_ns


def _summed(found: Sequence[Standstill], context: Context) -> Standstills:
    causes: Counter[str] = Counter()
    of_key: dict[tuple[str, str, int], Standstill] = {}
    for each in found:
        causes.update(each.causes)
        key = each.group, each.topic, each.partition
        of_key[key] = min(each, of_key.get(key, each), key=_place)
    by_window = {}
    for window in context.change_windows:
        parts = cut(((each.from_ns, each.until_ns) for each in found), window.from_ns, window.until_ns)
        if parts:
            by_window[window.number] = max(high - low for low, high in parts)
    return Standstills(causes=dict(causes), by_window=by_window, longest=list(of_key.values()))


class _Pause(NamedTuple):
    """Nothing was delivered to the group; everything before the offset `reached` had been."""

    key: int
    from_ns: int
    until_ns: int
    reached: int


class _Course:
    """When each partition was delivered from, and when its records had been handed to the producer."""

    def __init__(self, bundle: Bundle, context: Context) -> None:
        self._steps, self._produced, self._span = bundle.steps, of_readers(bundle.produced, context), context.span
        tables = [table.select(["group", "topic", "partition"]) for table in (self._steps, self._produced)]
        keys, self.meanings = keys_of(pa.concat_tables(tables))
        self._of_steps, self._of_produced = np.split(keys, [len(self._steps)])

    def pauses(self, least_ns: int) -> Iterator[_Pause]:
        """The longer ones: before the first delivery of each partition, between two, behind the last, or throughout."""
        steps, span = self._steps, self._span
        order = np.lexsort((integers(steps["first"]), integers(steps["from_ns"]), self._of_steps))
        keys, from_ns = self._of_steps[order], integers(steps["from_ns"])[order]
        firsts = starts(keys)
        until_ns = highest(integers(steps["until_ns"])[order], firsts)
        reached = highest(integers(steps["end"])[order], firsts)
        begun, _ = ends(firsts)
        never, offsets = self._never(keys)
        start_ns, end_ns = (np.full(len(keys) + len(never), each) for each in (span.start_ns, span.end_ns))
        columns = (
            np.concatenate([keys, keys[begun], never]),
            np.concatenate([until_ns, start_ns[: len(begun) + len(never)]]),
            np.concatenate([taken(from_ns, following(firsts), span.end_ns), from_ns[begun], end_ns[: len(never)]]),
            np.concatenate([reached, integers(steps["first"])[order][begun], offsets]),
        )
        long = columns[2] - columns[1] > least_ns
        return map(_Pause._make, zip(*(column[long].tolist() for column in columns), strict=True))

    def _never(self, delivered: Numbers) -> tuple[Numbers, Numbers]:
        """The partitions from which nothing was delivered, and the first offset of each."""
        first = np.full(len(self.meanings), NO_OFFSET)
        np.minimum.at(first, self._of_produced, integers(self._produced["first"]))
        keys = np.setdiff1d(self._of_produced, delivered)
        return keys, first[keys]

    def waiting(self) -> Callable[[int, int], int | None]:
        """Tells since when, at the latest, a record of a partition at this offset or behind it has waited, if any."""
        order = np.lexsort((integers(self._produced["interval"]), self._of_produced))
        keys = self._of_produced[order]
        # An interval has several rows if it is in several parts of the run.
        rows = np.flatnonzero(starts(keys, integers(self._produced["interval"])[order]))
        keys = keys[rows]
        first, end, sent_first_ns, sent_last_ns = (
            most.reduceat(integers(self._produced[name])[order], rows) if len(rows) else rows
            for name, most in (
                ("first", np.minimum),
                ("end", np.maximum),
                ("sent_first_ns", np.minimum),
                ("sent_last_ns", np.maximum),
            )
        )
        reach = highest(end, starts(keys))

        def since(key: int, offset: int) -> int | None:
            begin, behind = np.searchsorted(keys, [key, key + 1]).tolist()
            row = begin + int(np.searchsorted(reach[begin:behind], offset, side="right"))
            if row == behind:
                return None
            return int(sent_first_ns[row] if first[row] >= offset else sent_last_ns[row])

        return since


class _Reasons:
    """What the trace knows of partitions and members while nothing was delivered."""

    def __init__(self, bundle: Bundle, believes: pa.Table, context: Context) -> None:
        self._context = context
        self._owned: defaultdict[Key, list[tuple[str, int, int]]] = defaultdict(list)
        columns = ("group", "topic", "partition", "owner", "from_ns", "until_ns")
        for *key, owner, from_ns, until_ns in tuples_of(believes, columns):
            ends_ns = context.span.end_ns if until_ns is None else until_ns
            self._owned[tuple(key)].append((owner.partition("/")[0], from_ns, ends_ns))
        self._refused: defaultdict[Key, list[int]] = defaultdict(list)
        self._paused: defaultdict[Key, list[Stretch]] = defaultdict(list)
        since: dict[tuple[Any, ...], int] = {}
        places = ("process", "seq", "kind", "stream", "t_ns", "group", "topic", "partition")
        for process, _, kind, stream, t_ns, *key in sorted(
            tuples_of(bundle.hindrances, places), key=lambda row: row[:2]
        ):
            pause = process, stream, *key
            if kind == REFUSED:
                self._refused[tuple(key)].append(t_ns)
            elif kind == PAUSED:
                since.setdefault(pause, t_ns)
            elif (from_ns := since.pop(pause, None)) is not None:
                self._paused[tuple(key)].append((from_ns, t_ns))
        for (process, _, *key), from_ns in since.items():
            ended = (each for each in context.process_ends.get(process, ()) if each >= from_ns)
            self._paused[tuple(key)].append((from_ns, min([*ended, context.span.end_ns])))
        self._rebalancing: defaultdict[str, list[Stretch]] = defaultdict(list)  #: any member of a group
        for (group, _), stretches in context.rebalancing.items():
            self._rebalancing[group] += stretches

    def of(self, key: Key, low: int, high: int, since_ns: int) -> dict[str, int]:
        """Nanoseconds by cause, of a part of a pause that began at `since_ns`."""
        found, left = {}, [(low, high)]
        for cause, stretches in self._known(key, low, high, since_ns):
            known = united(part for each in left for part in cut(stretches, *each))
            if known:
                found[cause.value] = _length(known)
                left = list(without(left, known))
        if left:
            found[Cause.UNKNOWN.value] = _length(left)
        return found

    def _known(self, key: Key, low: int, high: int, since_ns: int) -> Iterator[tuple[Cause, list[Stretch]]]:
        """In the order of causes."""
        context = self._context
        owned = [
            (process, max(low, from_ns), min(high, until_ns))
            for process, from_ns, until_ns in self._owned[key]
            if from_ns < high and until_ns > low
        ]
        unowned = gaps_of([(from_ns, until_ns) for _, from_ns, until_ns in owned], [(low, high)])
        yield Cause.PAUSED, self._paused[key]
        yield Cause.NO_LEADER, list(context.leaderless.get(key[1:], ()))
        by_owner = [
            part
            for process, from_ns, until_ns in owned
            for part in cut(context.rebalancing.get((key[0], process), ()), from_ns, until_ns)
        ]
        yield Cause.REBALANCE, by_owner + [part for gap in unowned for part in cut(self._rebalancing[key[0]], *gap)]
        of_faults: defaultdict[Cause, list[Stretch]] = defaultdict(list)
        for fault in context.faults:
            until_ns = context.span.end_ns if fault.healed_ns is None else fault.healed_ns
            for process, *of_owner in owned:
                if process == fault.target:
                    of_faults[FAULTS.get(fault.fault, Cause.FAULT)] += cut([(fault.from_ns, until_ns)], *of_owner)
        yield Cause.FROZEN, of_faults[Cause.FROZEN]
        yield Cause.SLOW, of_faults[Cause.SLOW]
        yield Cause.NO_OWNER, unowned
        yield Cause.FAULT, of_faults[Cause.FAULT]
        refused = [t_ns for t_ns in self._refused[key] if since_ns <= t_ns < high]
        yield Cause.REFUSED, [(min(refused), high)] if refused else []


def _length(stretches: Iterable[Stretch]) -> int:
    return sum(high - low for low, high in stretches)
