"""Judges one run by what its design promises under all circumstances, without Spark.

The figures and verdicts are the pipeline's own, from its functions; what has a meaning in one scenario only (counts,
historical faults) is not asked. What the pipeline does not ask of a scenario is judged here: whether the group settled
after the last heal, whether the authority ever named two owners, whether a process ended by itself, and whether one
wrote a traceback.

A run that could not be judged is unknown, never a pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.compute as pc

from comparison.pipeline.bronze.chunks import parts_of
from comparison.pipeline.bronze.runs import find_runs
from comparison.pipeline.figures.deciding import counted_noun
from comparison.pipeline.figures.with_settings import checked
from comparison.pipeline.gold.run import measure
from comparison.pipeline.judged import finished, why_broken
from comparison.pipeline.measured import ProcessEnded, StageEntered
from comparison.pipeline.reading import read_tables
from comparison.results.keys import CONFLICT
from comparison.results.outcomes import Kind, VerdictOutcome
from comparison.scenarios.plan.faults import FAULTS
from comparison.wrong_data import WRONG_DATA
from kernel.clock import NS_PER_MS
from kernel.designs import ZOOKEEPER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from comparison.pipeline.bronze.runs import TraceRun
    from comparison.pipeline.bronze.tables import Tables
    from comparison.pipeline.measured import Measured
    from comparison.results.run import Run

LOST, REFUSED, SETTLES, TWO_OWNERS, NAMED, CLAIMS, CRASH, TRACEBACK = (
    "no record lost",
    "nobody is refused",
    "settles",
    "never two owners",
    "owner nodes kept",
    "failed claims given up",
    "no process ends by itself",
    "no traceback",
)
#: Between faults that overlap, a change may never settle before the next one; the whole run must, at the end.
JUDGED_AT_THE_END = frozenset({SETTLES})
_TRACEBACK = "Traceback (most recent call last)"
#: The error of a producer that continues what a broker had acknowledged, if the partition's leader knows nothing of it.
_MISSING = "OUT_OF_ORDER_SEQUENCE_NUMBER"
_FENCED = "FENCED_INSTANCE_ID"
#: How a run's error begins if what it waited for did not come.
_WAITED = ("time limit of", "timed out")


class Outcome(StrEnum):
    """Whether a run kept its design's promises."""

    HELD = "held"  #: every promise was kept
    VIOLATED = "violated"
    UNKNOWN = "unknown"


class Violation(NamedTuple):
    """A promise that was broken."""

    check: str
    reason: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a run has broken, and what could not be judged."""

    violations: tuple[Violation, ...] = ()
    unknown: str = ""  #: why the rest could not be judged
    counts: Mapping[str, float] = field(default_factory=dict)  #: what was there to judge by

    @property
    def outcome(self) -> Outcome:
        if self.violations:
            return Outcome.VIOLATED
        return Outcome.UNKNOWN if self.unknown else Outcome.HELD

    @property
    def broken(self) -> frozenset[str]:
        return frozenset(each.check for each in self.violations)

    def in_words(self) -> str:
        if self.violations:
            return "; ".join(f"{each.check}: {each.reason}" for each in self.violations)
        return self.unknown


def judge_folder(folder: Path) -> Judgement:
    """Judge the run in a folder."""
    (run,) = find_runs([folder])
    return judge_run(run)


def judge_run(run: TraceRun) -> Judgement:
    """Judge a run from its traces and logs."""
    (part,) = parts_of([run], 1)
    found, read = read_tables([run], part.chunks)
    tables = found.get(0, {})
    logs = {
        log.stem: log.read_text(encoding="utf-8", errors="replace")
        for log in sorted(Path(str(run.folder)).glob("*.log"))
    }
    try:
        measured, _ = measure(run, tables)
        return judged(finished(run, measured, read), measured, tables, logs)
    except WRONG_DATA as error:
        return Judgement(tuple(tracebacks(logs)), f"the run cannot be analysed: {why_broken(error)}")


def judged(run: Run, measured: Measured, tables: Tables, logs: Mapping[str, str]) -> Judgement:
    """What a run shows: `run` has the pipeline's verdicts, `logs` what each process wrote to its standard error."""
    fenced = fenced_by_a_successor(tables)
    violations = [
        Violation(verdict.check, verdict.reason)
        for verdict in run.verdicts
        if verdict.kind is Kind.PROMISE
        and verdict.outcome is VerdictOutcome.NOT_EXPECTED
        and verdict.check not in JUDGED_AT_THE_END
        and not (verdict.check == LOST and run.design == ZOOKEEPER and _in_hand(run, measured))
        and not (verdict.check == REFUSED and fenced)
    ]
    violations += [*two_owners(tables), *claims_kept(run, tables), *crashes(measured), *tracebacks(logs)]
    if keeps_owner_nodes(run):
        violations += [*deleted_by_others(tables), *unnamed(measured, tables)]
    unknown = ""
    if fenced:
        unknown = f"{fenced}: {run.error}" if run.error else fenced
    elif run.outcome == "failed":
        if run.error.startswith(_WAITED) and not _open_faults(measured):
            violations.append(Violation(SETTLES, f"after the last heal: {run.error}"))
        elif _MISSING in run.error:
            violations.append(Violation(LOST, f"a broker has lost what it acknowledged: {run.error}"))
        else:
            unknown = run.error
    elif run.outcome != "complete":
        unknown = f"the run was {run.outcome or 'cut short'}"
    elif run.problems:
        unknown = run.problems[0]
    elif open_ := [
        verdict
        for verdict in run.verdicts
        if verdict.outcome is VerdictOutcome.UNKNOWN and verdict.check not in JUDGED_AT_THE_END
    ]:
        unknown = f"{open_[0].check}: {open_[0].reason}"
    return Judgement(tuple(violations), unknown, _counts(run))


def keeps_owner_nodes(run: Run) -> bool:
    """Whether its members promise to: those of `zookeeper` that check before they delete."""
    return run.design == ZOOKEEPER and checked(run.parameters.get("settings", {}))


def _counts(run: Run) -> dict[str, float]:
    names = ("delivered", "duplicates", "commits", "fenced", "refused", "rebalances")
    return {name: run.metrics[name] or 0 for name in names}


def _in_hand(run: Run, measured: Measured) -> bool:
    """The 0.8 consumer commits what it delivered, processed or not: each kill may lose the record in hand."""
    kills = sum(isinstance(event, ProcessEnded) and event.how == "kill" for event in measured.runner)
    return (run.metrics["lost"] or 0) <= kills


def _open_faults(measured: Measured) -> list[str]:
    """The faults in effect when the run ended, which may have kept the group from settling."""
    open_ = [each.fault for each in measured.faults if each.healed_ns is None]
    return [name for name in open_ if name in FAULTS and FAULTS[name].heals and not FAULTS[name].stays]


def two_owners(tables: Tables) -> Iterator[Violation]:
    """In one generation the authority names one owner of a partition; another one only after it cleared the first."""
    owners: dict[tuple[object, ...], str] = {}
    for row in _namings(tables):
        partition = tuple(row[name] for name in ("group", "topic", "partition", "epoch"))
        before = owners.pop(partition, row["owner"])
        if not row["named"]:
            continue
        if before != row["owner"]:
            where = f"{row['topic']}-{row['partition']}"
            yield Violation(TWO_OWNERS, f"{where} of {before} and {row['owner']} in generation {row['epoch']}")
            return
        owners[partition] = row["owner"]


def _namings(tables: Tables) -> list[dict[str, Any]]:
    """What the authority said about partitions, in order."""
    rows = [
        {**row, "named": kind == "authority_named"}
        for kind in ("authority_named", "authority_cleared")
        if kind in tables
        for row in tables[kind].select(_NAMING).to_pylist()
    ]
    return sorted(rows, key=lambda row: (row["t_ns"], row["process"], row["seq"]))


_NAMING = ["t_ns", "seq", "process", "group", "topic", "partition", "epoch", "owner"]


def deleted_by_others(tables: Tables) -> Iterator[Violation]:
    """With checked releases nobody deletes the owner node of another. The log and the answer to the delete agree on
    its transaction.
    """
    if "authority_cleared" not in tables or "zk_op" not in tables:
        return
    owners = {row["cause"]: row["owner"] for row in tables["authority_cleared"].select(["cause", "owner"]).to_pylist()}
    operations = tables["zk_op"].select(["op", "member", "path", "ok", "zxid"])
    for row in operations.filter(pc.equal(operations["op"], "delete")).to_pylist():
        if not row["ok"]:
            continue  # it has the transaction of the answer before
        owner = owners.get(f"zxid:{row['zxid']}", "")
        if owner and owner.rpartition("-")[0] != row["member"]:
            yield Violation(NAMED, f"{row['member']} deleted {row['path']}, which named {owner}")
            return


def unnamed(measured: Measured, tables: Tables) -> Iterator[Violation]:
    """So a settled group has one of each partition."""
    ends = [event.t_ns for event in measured.runner if isinstance(event, StageEntered) and event.stage == "drain"]
    if not ends:
        return
    named: dict[tuple[object, ...], bool] = {}
    for row in _namings(tables):
        if row["t_ns"] < ends[0]:
            named[tuple(row[name] for name in ("group", "topic", "partition"))] = row["named"]
    if left := list(named.values()).count(False):
        yield Violation(NAMED, f"{counted_noun(left, 'partition')} without an owner node in a settled group")


def claims_kept(run: Run, tables: Tables) -> Iterator[Violation]:
    """An attempt that lost a claim gives up the others: nobody can have these partitions, and nobody delivers them.

    It has deleted them before it ends. ZooKeeper's log says of each write in which millisecond it came.
    """
    if run.design != ZOOKEEPER:
        return
    namings = _namings(tables)
    for member, begun, ended in _lost_attempts(tables):
        kept: set[str] = set()
        for row in namings:
            partition = f"{row['topic']}-{row['partition']}"
            if not row["named"] and row["t_ns"] <= ended + NS_PER_MS:
                kept.discard(partition)
            elif row["named"] and begun <= row["t_ns"] <= ended and row["owner"].rpartition("-")[0] == member:
                kept.add(partition)
        if kept:
            partitions = ", ".join(sorted(kept))
            yield Violation(CLAIMS, f"{member} lost a claim, and kept the owner nodes of {partitions}")
            return


def _lost_attempts(tables: Tables) -> Iterator[tuple[str, int, int]]:
    """Of each attempt that lost a claim: the member, the beginning and the end."""
    if "attempt_started" not in tables or "attempt_ended" not in tables:
        return
    begun: dict[object, list[int]] = {}
    for row in tables["attempt_started"].select(["t_ns", "process", "attempt"]).to_pylist():
        begun.setdefault((row["process"], row["attempt"]), []).append(row["t_ns"])
    for row in tables["attempt_ended"].select(["t_ns", "process", "member", "attempt", "outcome"]).to_pylist():
        if row["outcome"] == CONFLICT:
            before = [t_ns for t_ns in begun.get((row["process"], row["attempt"]), ()) if t_ns <= row["t_ns"]]
            yield row["member"], max(before, default=row["t_ns"]), row["t_ns"]


def fenced_by_a_successor(tables: Tables) -> str:
    """A static member that was fenced under an id from a coordinator that had been replaced, in words; '' if none was.

    Kafka's members end in the same way: JoinGroup is answered before anything is stored, so the successor knows the
    instance id with another member id (`tests/coordinator/groups/conversations`).
    """
    led = _rows(tables, "leader_changed", "topic", "partition", "leader")
    given = {row["id"]: row for row in _rows(tables, "group_member_joined", "id")}
    for refused in _rows(tables, "member_refused", "member", "error"):
        joined = given.get(refused["member"])
        if joined is None or refused["error"] != _FENCED:
            continue
        lost = {
            (row["topic"], row["partition"])
            for row in led
            if row["process"] == joined["process"] and row["leader"] < 0 and row["t_ns"] >= joined["t_ns"]
        }
        for row in led:
            taken = row["leader"] >= 0 and row["t_ns"] < joined["t_ns"] and (row["topic"], row["partition"]) in lost
            if taken and row["process"] != joined["process"]:
                return f"{joined['process']} gave {refused['member']} its id after {row['process']} had replaced it"
    return ""


def _rows(tables: Tables, kind: str, *fields: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    if kind in tables:
        rows = tables[kind].select(["t_ns", "process", *fields]).to_pylist()
    return rows


def crashes(measured: Measured) -> Iterator[Violation]:
    """Processes that ended though nobody ended them, or that ended with an error."""
    for event in measured.runner:
        if isinstance(event, ProcessEnded) and (event.how == "itself" or (event.code or 0) > 0):
            yield Violation(CRASH, f"{event.target} ended with exit code {event.code}")


def tracebacks(logs: Mapping[str, str]) -> Iterator[Violation]:
    """Processes that wrote a traceback, with its last line."""
    for name, text in logs.items():
        if _TRACEBACK in text:
            yield Violation(TRACEBACK, f"{name}: {_last_line(text.partition(_TRACEBACK)[2].splitlines()[1:])}")


def _last_line(lines: Iterable[str]) -> str:
    """The exception of a traceback: its first line that is not indented."""
    return next((line.strip() for line in lines if line.strip() and not line[0].isspace()), "cut short")
