"""Whether trace files are whole: what each file holds, and what a run lacks. Pure.

The writer numbers the events of a file from 0 without gaps, stamps them with a clock that never runs backwards, and
ends the file with a marker that has their number. A lost or doubled line shows in the numbers, a lost tail in the
missing marker. Only the run as a whole shows that a file is missing or duplicated.

A large file is read in chunks by different tasks. `Integrity` is what is known of a chunk; those of one file are merged
in the order of the file, and the result is the same however it was split. The usual chunk, with consecutive numbers and
times in order, costs two comparisons per event.

The tail of a killed process cannot be missed: it leaves no marker, so a file that lost whole lines at its end looks
like that of a process that was killed earlier.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from kernel.clock import NS_PER_MS
from kernel.trace.events import END_MARKER_SINCE, Role
from kernel.trace.reader import HeaderLine, Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kernel.trace.listed_file import ListedFile
    from kernel.trace.reader import EndMarker

Ints = npt.NDArray[np.int64]

#: `how` in the `process_ended` of a process that the runner killed.
KILL = "kill"
#: How many files of one process are named.
_NAMED = 5
_NOTHING: Mapping[str, int] = MappingProxyType({})
_NO_RANGES = np.empty((2, 0), np.int64)


@dataclass(frozen=True, slots=True)
class Integrity:
    """What is known of a part of a file. `of_chunk` makes it, `merged` combines two adjacent parts."""

    lines: int = 0  #: non-empty ones, header and end marker included
    events: int = 0  #: usable ones
    quarantined: Mapping[str, int] = field(default_factory=dict)  #: unusable lines by reason
    #: The sequence numbers as sorted ranges that do not touch: their first numbers, and their last.
    ranges: Ints = field(default_factory=lambda: _NO_RANGES)
    first_ns: int = 0
    last_ns: int = 0
    earliest_ns: int = 0
    latest_ns: int = 0
    backwards: int = 0
    backwards_ns: int = 0
    announced: int | None = None  #: by the first end marker
    after_end: int = 0  #: lines that follow it

    @classmethod
    def of_chunk(
        cls,
        seqs: Sequence[int] | Ints,
        ns: Sequence[int] | Ints,
        *,
        lines: int | None = None,
        quarantined: Mapping[str, int] = _NOTHING,
        end: EndMarker | None = None,
        after_end: int = 0,
    ) -> Integrity:
        """A chunk with these usable events, in the order of the file.

        `lines` is the number of events if it is not given. `end` is the chunk's first end marker, and `after_end` the
        number of lines that follow it in the chunk.
        """
        numbers, times = np.asarray(seqs, np.int64), np.asarray(ns, np.int64)
        known = cls(
            lines=len(numbers) if lines is None else lines,
            events=len(numbers),
            quarantined=dict(quarantined),
            announced=None if end is None else end.events,
            after_end=after_end,
        )
        if not len(numbers):
            return known
        backwards, backwards_ns, latest_ns = 0, 0, int(times[-1])
        earliest_ns = int(times[0])
        if not (in_order := times[1:] >= times[:-1]).all():
            backwards = int(np.count_nonzero(~in_order))
            earliest_ns, latest_ns = int(times.min()), int(times.max())
            backwards_ns = int((np.maximum.accumulate(times) - times).max())
        return replace(
            known,
            ranges=_ranges_of(numbers),
            first_ns=int(times[0]),
            last_ns=int(times[-1]),
            earliest_ns=earliest_ns,
            latest_ns=latest_ns,
            backwards=backwards,
            backwards_ns=backwards_ns,
        )

    def merged(self, later: Integrity) -> Integrity:
        """This part of a file, and the one that follows it."""
        lines = replace(
            self,
            lines=self.lines + later.lines,
            events=self.events + later.events,
            quarantined=dict(Counter(self.quarantined) + Counter(later.quarantined)),
            announced=later.announced if self.announced is None else self.announced,
            after_end=later.after_end if self.announced is None else self.after_end + later.lines,
        )
        if not later.events:
            return lines
        if not self.events:
            earliest_ns, latest_ns = later.earliest_ns, later.latest_ns
            return replace(
                lines,
                ranges=later.ranges,
                first_ns=later.first_ns,
                last_ns=later.last_ns,
                earliest_ns=earliest_ns,
                latest_ns=latest_ns,
                backwards=later.backwards,
                backwards_ns=later.backwards_ns,
            )
        return replace(
            lines,
            ranges=_united(self.ranges, later.ranges),
            last_ns=later.last_ns,
            earliest_ns=min(self.earliest_ns, later.earliest_ns),
            latest_ns=max(self.latest_ns, later.latest_ns),
            backwards=self.backwards + later.backwards + (later.first_ns < self.last_ns),
            backwards_ns=max(self.backwards_ns, later.backwards_ns, self.latest_ns - later.earliest_ns),
        )

    @property
    def seq_distinct(self) -> int:
        firsts, lasts = self.ranges
        return int((lasts - firsts).sum()) + len(firsts)

    @property
    def seq_doubled(self) -> int:
        return self.events - self.seq_distinct

    @property
    def seq_missing(self) -> int:
        """How many of the numbers from 0 to the last one, or the last announced one, are not in the file."""
        present = sum(int(last) - max(int(first), 0) + 1 for first, last in self.ranges.T if last >= 0)
        return self._numbers - present

    @property
    def first_missing(self) -> int | None:
        if not self.seq_missing:
            return None
        at_zero = next((int(last) for first, last in self.ranges.T if first <= 0 <= last), None)
        return 0 if at_zero is None else at_zero + 1

    @property
    def _numbers(self) -> int:
        """How many numbers there should be."""
        last = int(self.ranges[1][-1]) if self.events else -1
        return max(last + 1, self.announced or 0, 0)


def _ranges_of(numbers: Ints) -> Ints:
    """Sorted ranges that do not touch. A difference may overflow, but then it is not 1 between sorted numbers."""
    first, last = int(numbers[0]), int(numbers[-1])
    if last - first == len(numbers) - 1 and bool((numbers[1:] - numbers[:-1] == 1).all()):
        return np.array([[first], [last]], np.int64)
    distinct = np.unique(numbers)
    breaks = np.flatnonzero(distinct[1:] - distinct[:-1] != 1)
    return np.stack([distinct[np.append(0, breaks + 1)], distinct[np.append(breaks, len(distinct) - 1)]])


def _united(one: Ints, other: Ints) -> Ints:
    """The union of two sets of ranges."""
    if int(one[1][-1]) + 1 == int(other[0][0]):  # the usual case: the other goes on where the one ends
        return np.stack([np.append(one[0], other[0][1:]), np.append(one[1][:-1], other[1])])
    firsts, lasts = np.concatenate([one, other], axis=1)
    order = np.argsort(firsts, kind="stable")
    firsts, lasts = firsts[order], np.maximum.accumulate(lasts[order])
    # A range begins where no earlier one reaches; subtracting from the first cannot overflow, as it is not the lowest.
    begins = np.append(True, (firsts[1:] > lasts[:-1]) & (firsts[1:] - 1 != lasts[:-1]))
    return np.stack([firsts[begins], lasts[np.append(begins[1:], True)]])


@dataclass(frozen=True, slots=True, kw_only=True)
class FileIntegrity:
    """One file. `problems` are those that the file shows by itself; `run_problems` has the others."""

    file: str
    process: str = ""  #: as the header names it, like `role` and `run`; '' without a usable header
    role: str = ""
    run: str = ""
    schema: int = 0
    lines: int = 0
    events: int = 0
    quarantined: Mapping[str, int] = field(default_factory=dict)  #: unusable lines by reason
    seq_distinct: int = 0
    seq_doubled: int = 0  #: events whose number another one has
    seq_missing: int = 0
    backwards: int = 0  #: how often an event's time is before that of the event before it
    backwards_ns: int = 0  #: the most by which an event's time precedes that of an earlier event
    ended: bool = False  #: has an end marker
    announced: int | None = None  #: the number of events in the end marker
    first_ns: int | None = None  #: of its first and its last event, in the order of its lines; None without events
    last_ns: int | None = None
    problems: tuple[str, ...] = ()


def file_integrity(file: str, header: HeaderLine, known: Integrity) -> FileIntegrity:
    """The integrity of a whole file, by the name `file`."""
    fields = header.header or {}
    return FileIntegrity(
        file=file,
        process=fields.get("process", ""),
        role=fields.get("role", ""),
        run=fields.get("run", ""),
        schema=fields.get("schema", 0),
        lines=known.lines,
        events=known.events,
        quarantined=known.quarantined,
        seq_distinct=known.seq_distinct,
        seq_doubled=known.seq_doubled,
        seq_missing=known.seq_missing,
        backwards=known.backwards,
        backwards_ns=known.backwards_ns,
        ended=known.announced is not None,
        announced=known.announced,
        first_ns=known.first_ns if known.events else None,
        last_ns=known.last_ns if known.events else None,
        problems=tuple(f"{file}{problem}" for problem in _problems(header, known)),
    )


def _problems(header: HeaderLine, known: Integrity) -> list[str]:
    """What is wrong with the file, as texts to append to its name."""
    if header.reason is Reason.UNREADABLE:
        return [f" cannot be read: {header.detail}"]
    if not known.lines:
        return [" is empty"]
    if header.header is None:
        return [f" has no usable header ({header.reason}: {header.detail})"]
    found = []
    # A torn line is judged with the run: a kill may tear the last one.
    unusable = {reason: count for reason, count in known.quarantined.items() if reason != Reason.TORN}
    if unusable:
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(unusable.items()))
        found.append(f" has {_counted(sum(unusable.values()), 'unusable line')} ({reasons})")
    if known.events and (first := int(known.ranges[0][0])) < 0:
        found.append(f" has sequence numbers below 0, the first is {first}")
    if known.seq_doubled:
        found.append(f" has {_counted(known.seq_doubled, 'event')} whose sequence number another event has")
    if known.seq_missing:
        lacks = _counted(known.seq_missing, "sequence number")
        found.append(f" lacks {lacks}, the first is {known.first_missing}")
    if known.backwards:
        by_ms = known.backwards_ns / NS_PER_MS
        found.append(f": time goes backwards {_counted(known.backwards, 'time')}, by up to {by_ms:g} ms")
    written = known.events + sum(known.quarantined.values())
    if known.announced is not None and known.announced != written:
        announced = _counted(known.announced, "event")
        found.append(f": the end marker announces {announced}, the file has {written}")
    if known.after_end:
        found.append(f" has {_counted(known.after_end, 'line')} after the end marker")
    return found


class ProcessEnd(NamedTuple):
    """How a process ended: `how` and `code` of its last `process_ended`."""

    how: str
    code: int | None = None

    @property
    def killed(self) -> bool:
        """Whether it had no chance to write its end marker.

        The runner also kills what does not stop in time, or after an interrupt; `how` is then leave or stop, and the
        code that of the signal. The same holds when somebody else kills a process.
        """
        return self.how == KILL or (self.code is not None and self.code < 0)


class RunProblem(NamedTuple):
    """What is wrong with a file, seen from its run."""

    file: str
    text: str


def run_problems(
    files: Iterable[FileIntegrity],
    listed: Sequence[ListedFile] | None,
    ended_how: Mapping[str, ProcessEnd],
    *,
    run: str | None = None,
) -> tuple[RunProblem, ...]:
    """What a run lacks beyond the problems that its files show by themselves.

    `listed` is None when the run has no list; nothing is then expected. `ended_how` comes from the runner's trace.
    `run` is the run's id; when it is not given, that of the runner's trace counts, or else the most frequent one.
    """
    kept = sorted(files, key=lambda each: each.file)
    usable = [each for each in kept if each.process]
    found = [] if listed is None else _unlike_the_list(kept, listed)
    run = _run_id(usable) if run is None else run
    for each in usable:
        found += [RunProblem(each.file, f"{each.file} {text}") for text in _as_part_of(each, run, ended_how)]
    named: defaultdict[str, list[str]] = defaultdict(list)
    for each in usable:
        named[each.process].append(each.file)
    for process, several in named.items():
        if len(several) > 1:
            more = [f"{len(several) - _NAMED} more"] if len(several) > _NAMED else []
            text = f"{' and '.join([*several[:_NAMED], *more])} are all of the process {process}"
            found += [RunProblem(file, text) for file in several]
    return tuple(found)


def _unlike_the_list(files: Sequence[FileIntegrity], listed: Sequence[ListedFile]) -> list[RunProblem]:
    there = {each.file: each for each in files}
    expected = {each.file: each for each in listed}
    found = [
        RunProblem(file, f"{file} is in the list of run.json, but not in the folder")
        for file in expected
        if file not in there
    ]
    for file, each in there.items():
        if file not in expected:
            found.append(RunProblem(file, f"{file} is not in the list of run.json"))
        elif each.process and (each.process, each.role) != (expected[file].process, expected[file].role):
            says = f"{expected[file].role} {expected[file].process}"
            text = f"{file} is of the {each.role} {each.process}, the list of run.json says {says}"
            found.append(RunProblem(file, text))
    return found


def _run_id(files: Sequence[FileIntegrity]) -> str:
    runners = [each.run for each in files if each.role == Role.RUNNER]
    return Counter(runners or (each.run for each in files)).most_common(1)[0][0] if files else ""


def _as_part_of(each: FileIntegrity, run: str, ended_how: Mapping[str, ProcessEnd]) -> list[str]:
    found = []
    if each.run != run:
        found.append(f"is of the run {each.run!r}, not {run!r}")
    if each.file != f"{each.process}.jsonl":
        found.append(f"is of the process {each.process}, whose file is {each.process}.jsonl")
    end = ended_how.get(each.process)
    killed = end is not None and end.killed
    if each.schema >= END_MARKER_SINCE and not each.ended and not killed:
        how = "nothing says that its process was killed"
        if end is not None:
            how = f"its process was not killed ({end.how}, exit code {end.code})"
        found.append(f"has no end marker, though {how}: its tail may be lost")
    torn = each.quarantined.get(Reason.TORN, 0)
    if torn > (killed and not each.seq_missing):  # a kill tears one line at most, the last one
        found.append(f"has {_counted(torn, 'torn line')}")
    return found


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
