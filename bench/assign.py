"""Our assignors beside Kafka's own classes and kafka-python's: `make bench ARGS="--only assignors"`.

Every subject continues from its own answers: `leave` and `join` start from its own fresh assignment of 2000 members
(2001 after the join). A subject that ran out of time for a fresh assignment starts from ours, and the table says so.
Three forms of ours are measured:

    core   integer arrays in and out: previous owners, subscriptions, new owners
    target the same for the coordinator's `uniform` and `range` (KIP-848)
    wire   subscription bytes of all members in, assignment bytes of all members out: a leader's whole work

Of Kafka's client assignors, assign() is measured alone, on existing objects (it includes the eager assignor's decoding
of user data), and together with ConsumerProtocol.deserializeSubscription and serializeAssignment of all members. The
KIP-848 assignors and kafka-python's are called on their own objects. Every answer is checked; see `assign_checks`.
"""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from bench import assign_cases, assign_hosts
from bench.assign_cases import FRESH, NOBODY, STEPS, Answer, Case
from bench.assign_checks import Findings, looked_at, moved_for_loads, moves_least

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

OURS, KAFKA, KAFKA_PYTHON = "ours", "kafka", "kafka-python"
PEERS = (KAFKA, KAFKA_PYTHON)

#: Default repeats: (runs at most, as long as one takes less than these seconds). The first of three or more does not
#: count, because it allocates memory and compiles.
REPEATS = ((6, 6.0), (2, 20.0))
REPEATS_SMOKE = ((3, 6.0),)
#: Further rounds of a cooperative rebalance: answers withhold the partitions that move until members have revoked them.
FOLLOW_UPS = 3
#: Memory limit of kafka-python's processes: two of them would exhaust the machine.
KAFKA_PYTHON_MB = 9_000
FULL_LIMIT_S = 150.0
#: Our moves with different subscriptions, at most, as a multiple of the lower bound.
MOVES_MOST = 2.0


class CheckFailed(AssertionError):
    """An assignor gave an invalid answer, so its figures are worthless."""


@dataclass(frozen=True)
class Subject:
    """One assignor in one form, to be measured."""

    name: str
    peer: str
    strategy: str
    form: str = "assign"  #: core, target, wire or assign
    in_user_data: bool = False  #: how members report what they owned
    withholds: bool = False  #: cooperative
    is_fair: bool = True  #: promises fairness, and the fewest moves with equal subscriptions
    exact_up_to: int = 0  #: ours: partitions times members up to which answers are in Kafka's own order
    sizes: tuple[str, ...] = ("smoke", "10k", "100k", "1M")
    kinds: tuple[str, ...] = tuple(assign_cases.KINDS)


UNEQUAL = tuple(kind for kind in assign_cases.KINDS if kind != assign_cases.UNIFORM)
CORE = Subject("ours, core", OURS, "sticky", "core")
WIRE = Subject("ours, wire, sticky", OURS, "sticky", "wire", in_user_data=True)
WIRE_COOPERATIVE = Subject("ours, wire, cooperative", OURS, "cooperative-sticky", "wire", withholds=True)
WIRE_EXACT = Subject(
    "ours, wire, sticky in Kafka's order",
    OURS,
    "sticky",
    "wire",
    in_user_data=True,
    exact_up_to=10**18,
    sizes=("smoke", "10k"),
    kinds=UNEQUAL,
)
TARGET = Subject("ours, uniform", OURS, "uniform", "target")
TARGET_RANGE = Subject("ours, range", OURS, "range", "target", is_fair=False)
KAFKA_STICKY = Subject("Kafka sticky", KAFKA, "sticky", in_user_data=True)
KAFKA_COOPERATIVE = Subject("Kafka cooperative", KAFKA, "cooperative-sticky", withholds=True)
KAFKA_UNIFORM = Subject("KIP-848 uniform", KAFKA, "uniform")
KAFKA_RANGE = Subject("KIP-848 range", KAFKA, "range", is_fair=False)
SUBJECTS = (
    CORE,
    TARGET,
    TARGET_RANGE,
    WIRE,
    WIRE_COOPERATIVE,
    WIRE_EXACT,
    KAFKA_STICKY,
    KAFKA_COOPERATIVE,
    KAFKA_UNIFORM,
    KAFKA_RANGE,
    Subject("kafka-python range", KAFKA_PYTHON, "range", is_fair=False),
    Subject("kafka-python roundrobin", KAFKA_PYTHON, "roundrobin", is_fair=False),
    Subject("kafka-python sticky", KAFKA_PYTHON, "sticky", in_user_data=True, sizes=("smoke", "10k")),
    Subject("kafka-python cooperative", KAFKA_PYTHON, "cooperative-sticky", withholds=True, sizes=("smoke", "10k")),
)


@dataclass(frozen=True)
class Options:
    """What to measure, and how long one call may take."""

    sizes: Sequence[str] = ("10k", "100k", "1M")
    kinds: Sequence[str] = tuple(assign_cases.KINDS)
    peers: Sequence[str] = PEERS
    strategies: Sequence[str] = ()  #: all, if empty
    limit_s: float = FULL_LIMIT_S
    clock: str = "cpu"
    heap_mb: int = 6144
    repeats: Sequence[tuple[int, float]] = REPEATS
    warm_runs: int = 8  #: warm-up calls of each class on each of six small groups
    from_ours: bool = False  #: continue from ours after a fresh call that timed out

    @property
    def limit(self) -> assign_hosts.Limit:
        return assign_hosts.Limit(self.limit_s, by_cpu=self.clock == "cpu")


@dataclass
class Figure:
    """Figures of one subject in one step. Seconds are [wall clock, CPU] for each run that counts."""

    subject: Subject
    case: Case
    step: str
    seconds: dict[str, list[list[float]]] = field(default_factory=dict)  #: by form: core, target, wire, assign
    memory_mb: float = float("nan")
    over: bool = False
    note: str = ""  #: why there are no figures, or what is special about them
    findings: Findings | None = None
    moved_least: int = 0
    settled: bool = True  #: False: the later rounds of a cooperative answer timed out

    @property
    def moves_ratio(self) -> float:
        """Moved and orphaned partitions, divided by the fewest possible."""
        assert self.findings is not None
        handed_out = self.findings.handed_out
        return (handed_out + self.findings.moved) / max(handed_out + self.moved_least, 1)


class AssignorBench:
    """All measurements of one run."""

    def __init__(self, folder: Path, options: Options) -> None:
        self._folder = folder
        self._options = options
        self.figures: list[Figure] = []
        self._bounds: dict[tuple[Case, str, bytes], int] = {}
        self._java: assign_hosts.Java | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def start(self) -> None:
        """The JVM with Kafka's classes. Raises `OriginalsUnavailable` if they cannot be fetched."""
        self._java = assign_hosts.Java(self._folder, self._options.heap_mb, self._warming_calls())

    def close(self) -> None:
        if self._java is not None:
            self._java.close()

    def cases(self) -> Iterator[Case]:
        for size in self._options.sizes:
            for kind in self._options.kinds:
                yield Case(size, kind)

    def measure(self, case: Case) -> Iterator[Figure]:
        """Measure all subjects in all steps, one after the other. Raises `CheckFailed` on a wrong answer."""
        ours_fresh: NDArray[np.int32] | None = None
        for subject in self._subjects(case):
            fresh: NDArray[np.int32] | None = None
            was_over = False
            for step in STEPS:
                figure = Figure(subject, case, step)
                self.figures.append(figure)
                start = fresh
                if step != FRESH and fresh is None:
                    if ours_fresh is None or not (self._options.from_ours and was_over):
                        figure.note = "no fresh assignment to start from"
                        yield figure
                        continue
                    figure.note, start = "started from our fresh assignment", ours_fresh
                self._measure_step(figure, case.before(step, start))
                if step == FRESH:
                    fresh = None if figure.findings is None else figure.findings.owner
                    was_over = figure.over
                    ours_fresh = fresh if subject == WIRE else ours_fresh
                yield figure

    def _subjects(self, case: Case) -> list[Subject]:
        wanted = {OURS, *self._options.peers} - ({KAFKA} if self._java is None else set())
        subjects = [s for s in SUBJECTS if s.peer in wanted and case.size in s.sizes and case.kind in s.kinds]
        strategies = self._options.strategies
        return [subject for subject in subjects if not strategies or subject.strategy in strategies]

    def _measure_step(self, figure: Figure, before: NDArray[np.int32]) -> None:
        subject, case, step = figure.subject, figure.case, figure.step
        call, answer = self._call(subject, case, step, before, self._options.repeats)
        figure.over = call.over
        if call.failed:
            if subject.peer == OURS:
                raise CheckFailed(f"{subject.name}, {case.size} {case.kind} {step}: no answer, {call.failed}")
            figure.note = call.failed
        if not call.runs:
            return
        counted = call.runs[1:] if len(call.runs) > 2 else call.runs
        figure.memory_mb = max(run.get("memory_mb", 0.0) for run in call.runs)
        figure.seconds[subject.form] = [run["assign"] for run in counted]
        if "decode" in call.runs[0] and subject not in (KAFKA_UNIFORM, KAFKA_RANGE):
            parts = ("decode", "assign", "encode")
            figure.seconds["wire"] = [[sum(run[p][clock] for p in parts) for clock in (0, 1)] for run in counted]
        assert answer is not None
        found = looked_at(case, step, before, answer, may_withhold=subject.withholds)
        if not all(run["same"] for run in call.runs):
            found = dataclasses.replace(found, faults=(*found.faults, "different answers in different runs"))
        if found.withheld and not found.faults:
            found = self._followed(figure, before, found)
        figure.findings = found
        figure.moved_least = 0 if step == FRESH else self._moves_least(case, step, before)
        check(figure)

    def _followed(self, figure: Figure, before: NDArray[np.int32], found: Findings) -> Findings:
        """Revoke what was withheld and join again until nothing is withheld; moves count from `before` to the end."""
        subject, case, step = figure.subject, figure.case, figure.step
        withheld = found.withheld
        for _ in range(FOLLOW_UPS):
            call, answer = self._call(subject, case, step, found.owner, ((1, 0.0),))
            if answer is None:
                figure.settled = False
                figure.note = f"second round: {call.failed or f'> {self._options.limit_s:g}'}"
                return found
            now = looked_at(case, step, found.owner, answer, may_withhold=True)
            moved = int(((before != NOBODY) & (now.owner != before)).sum())
            loads = np.bincount(now.owner[now.owner != NOBODY], minlength=len(case.members))
            found = dataclasses.replace(
                now, moved=moved, handed_out=found.handed_out, moved_for_loads=moved_for_loads(before, loads)
            )
            if not found.withheld or found.faults:
                break
        return dataclasses.replace(found, withheld=withheld)

    def _moves_least(self, case: Case, step: str, before: NDArray[np.int32]) -> int:
        """Equal for subjects that start from the same assignment."""
        key = (case, step, hashlib.sha256(before.tobytes()).digest())
        if key not in self._bounds:
            self._bounds[key] = moves_least(case, step, before)
        return self._bounds[key]

    # -- calls -------------------------------------------------------------------------------------------------------

    def _call(
        self, subject: Subject, case: Case, step: str, before: NDArray[np.int32], repeats: Sequence[tuple[int, float]]
    ) -> tuple[assign_hosts.Call, Answer | None]:
        group, answer = self._folder / "group", self._folder / "answer"
        answer.unlink(missing_ok=True)
        if subject.form in ("core", "target"):
            return self._call_on_arrays(subject, case, step, before, repeats)
        case.write(group, step, before, in_user_data=subject.in_user_data)
        if subject.peer == KAFKA:
            assert self._java is not None
            call = self._java.call(_line(subject.strategy, group, answer, repeats), self._options.limit)
        else:
            request = {
                "subject": "wire" if subject.peer == OURS else "kafka-python",
                "strategy": subject.strategy,
                "exact_up_to": subject.exact_up_to,
                "group": str(group),
                "answer": str(answer),
                "runs": repeats,
            }
            memory_mb = KAFKA_PYTHON_MB if subject.peer == KAFKA_PYTHON else 0
            call = assign_hosts.call_python(request, self._options.limit, self._folder, memory_mb=memory_mb)
        return call, assign_cases.read_answer(case, answer) if call.runs else None

    def _call_on_arrays(
        self, subject: Subject, case: Case, step: str, before: NDArray[np.int32], repeats: Sequence[tuple[int, float]]
    ) -> tuple[assign_hosts.Call, Answer | None]:
        present = case.present(step)
        place = np.full(len(case.members) + 1, NOBODY, np.int32)  # the last entry is NOBODY's
        place[present] = np.arange(len(present))
        arrays, answer = self._folder / "arrays.npz", self._folder / "answer.npy"
        np.savez(arrays, owner=place[before], subscribed=case.subscribed[present])
        request = {
            "subject": subject.form,
            "strategy": subject.strategy,
            "equal": case.is_equal,
            "arrays": str(arrays),
            "answer": str(answer),
            "sizes": dict.fromkeys(case.topics, case.shape.partitions_each),
            "members": [case.members[member] for member in present.tolist()],
            "runs": repeats,
        }
        call = assign_hosts.call_python(request, self._options.limit, self._folder)
        if not call.runs:
            return call, None
        owner = np.load(answer)
        ids = np.flatnonzero(owner != NOBODY)
        return call, Answer(ids, present[owner[ids]])

    def _warming_calls(self) -> list[str]:
        """Warm-up calls of every class, on small uneven groups of both kinds; the files are kept until the end."""
        lines = []
        for kind in ("uniform", "half"):
            case = Case("warm", kind)
            drawn = np.random.default_rng(assign_cases.SEED)
            each = case.shape.partitions_each
            takers = [np.flatnonzero(case.subscribed[:-1, topic]) for topic in range(case.shape.topics)]
            fresh = np.concatenate([drawn.choice(those, each) for those in takers]).astype(np.int32)
            for step in STEPS:
                for subject in (KAFKA_STICKY, KAFKA_COOPERATIVE, KAFKA_UNIFORM, KAFKA_RANGE):
                    group = self._folder / f"warm-{kind}-{step}-{subject.strategy}"
                    case.write(group, step, case.before(step, fresh), in_user_data=subject.in_user_data)
                    lines.append(
                        _line(subject.strategy, group, self._folder / "warm-answer", ((self._options.warm_runs, 1.0),))
                    )
        return lines


def _line(strategy: str, group: Path, answer: Path, repeats: Sequence[tuple[int, float]]) -> str:
    return "\t".join([strategy, str(group), str(answer), *(str(part) for pair in repeats for part in pair)])


# -- checks ------------------------------------------------------------------------------------------------------------


def check(figure: Figure) -> None:
    """Raise `CheckFailed` for an invalid answer, or one of ours or Kafka's that is unfair or moves too much."""
    subject, case, found = figure.subject, figure.case, figure.findings
    assert found is not None
    faults = list(found.faults)
    if subject.is_fair and figure.settled and subject.peer != KAFKA_PYTHON:
        if found.unfair:
            faults.append(f"unfair: {found.unfair}")
        if case.is_equal and found.load_max - found.load_min > 1:
            faults.append(f"loads of {found.loads}")
        if case.is_equal and found.moved != figure.moved_least:
            faults.append(f"{found.moved} partitions moved, {figure.moved_least} would do")
        least = max(figure.moved_least, found.moved_for_loads)
        if subject.peer == OURS and found.handed_out + found.moved > MOVES_MOST * (found.handed_out + least):
            faults.append(
                f"{found.handed_out} partitions handed out and {found.moved} moved, {least} of these would do: "
                f"more than {MOVES_MOST:g} times as many"
            )
    if faults:
        raise CheckFailed(
            f"{subject.name}, {assign_cases.KINDS[case.kind]}, {case.shape}, {figure.step}: {'; '.join(faults)}"
        )


def check_same_sets(figures: Sequence[Figure]) -> None:
    """Check that our answers equal Kafka's, member by member, where they promise to. Raises `CheckFailed`.

    They promise it for equal subscriptions, for different ones in Kafka's order, and always for `range`.
    """
    by_key = {(f.subject, f.step): f for f in figures}
    for ours, theirs in (
        (CORE, KAFKA_STICKY),
        (WIRE, KAFKA_STICKY),
        (WIRE_EXACT, KAFKA_STICKY),
        (WIRE_COOPERATIVE, KAFKA_COOPERATIVE),
        (TARGET_RANGE, KAFKA_RANGE),
    ):
        for step in STEPS:
            mine, other = by_key.get((ours, step)), by_key.get((theirs, step))
            if mine is None or other is None or mine.findings is None or other.findings is None:
                continue
            differing = int((mine.findings.owner != other.findings.owner).sum())
            if differing and (mine.case.is_equal or ours in (WIRE_EXACT, TARGET_RANGE)):
                raise CheckFailed(
                    f"{ours.name} and {theirs.name}, {mine.case.size} {mine.case.kind} {step}: "
                    f"{differing} partitions go to others"
                )
