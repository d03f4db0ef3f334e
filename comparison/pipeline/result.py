"""What an analysis says: the shape of result.json, and what its figures mean.

Plain values, no Spark: everything that reads a result reads this shape. `SCHEMA_VERSION` goes up with every
change that a reader could notice; `result.schema.json` beside this module is made from these classes
(`python -m comparison.pipeline.result`), and a test keeps the two alike.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SCHEMA_VERSION = 3
SCHEMA_PATH = Path(__file__).with_name("result.schema.json")


class VerdictOutcome(StrEnum):
    """A verdict. A check that could not run is unknown, never a pass."""

    EXPECTED = "as expected"
    UNKNOWN = "unknown"
    NOT_EXPECTED = "not as expected"


class Kind(StrEnum):
    """What a check holds a run against."""

    PROMISE = "promise"  #: what the design promises; broken means a fault of ours
    HISTORY = "history"  #: a fault that the historical design has; not seen means it was not rebuilt faithfully
    MODEL = "model"  #: an exact count


def worst(outcomes: Iterable[VerdictOutcome]) -> VerdictOutcome:
    """What several verdicts come to; nothing checked is unknown."""
    order = (VerdictOutcome.NOT_EXPECTED, VerdictOutcome.UNKNOWN, VerdictOutcome.EXPECTED)
    return min(outcomes, key=order.index, default=VerdictOutcome.UNKNOWN)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One check of one run, with the reason in words and numbers."""

    check: str
    kind: Kind
    outcome: VerdictOutcome
    reason: str


class Overlap(msgspec.Struct, frozen=True, kw_only=True):
    """The first stretch in which two had the same partition; the place to start looking."""

    view: str
    topic: str
    partition: int
    from_ms: float
    until_ms: float
    owners: list[str]


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """How long members were in a phase of their rebalances; `rebalance` is the whole of one."""

    phase: str
    n: int
    median_ms: float
    max_ms: float
    total_ms: float


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """A generation that could not begin before the last member had come: who was waited for, and by how many."""

    generation: int | None
    from_ms: float  #: when the group began to gather
    waited_for: str  #: the process
    gone: bool  #: it never came: it was given up, or it left
    waiting: int
    longest_ms: float
    total_ms: float  #: over all that waited


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """How many records the whole group handed out in each bin of time; of a long run only the beginning."""

    from_ms: float
    bin_ms: float
    records: list[int]


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """An exact count beside the model's; None where nothing could be counted or foretold."""

    what: str
    measured: int | None
    model: int | None
    formula: str


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One change of the group, or one fault: what it cost, and how long until every partition was owned once."""

    change: str
    round: int
    members: int | None  #: after the change; None for a fault
    from_ms: float
    settled_ms: float | None  #: as the runner saw it, since the change
    healed_ms: float | None  #: when the fault ended, since it began
    converge_ms: float | None  #: as the members' own events show it, since the change; None: not within the window
    takeover_ms: float | None  #: until the authority named a new owner for the first time
    target: str  #: the process that the change or the fault was about, where there is one
    rounds: int  #: rebalances of the whole group; see comparison.pipeline.rounds
    unowned_partition_s: float
    unowned_longest_s: float  #: of a single partition
    two_delivering_partition_s: float
    moved: int | None  #: each time counted
    moved_minimum: int | None
    stopped: int  #: each time counted
    stopped_kept: int  #: of these, given back to the one that it was taken from
    kept: int | None  #: over all rounds: partitions that stayed where they were; None: not looked at
    kept_shown: int | None  #: of these, in rounds that lasted long enough to show deliveries
    kept_delivered: int | None  #: of these, delivered in the middle of the round
    stalled_s: float | None  #: bins without a single record, as seconds; None: no load, or too late in the run
    attempts: int
    attempts_failed: int
    notifications: int
    zk_reads: int  #: failed ones included, as the model counts requests; commits are apart
    zk_writes: int
    zk_commits: int  #: writes below offsets
    requests: dict[str, int]  #: by API, of members only
    counted: list[Counted]


class Counter(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch between two readings of the ZooKeeper servers' own counters, beside the traced operations.

    `traced` were answered between the readings; `traced_min` and `traced_max` allow for what was under way at one.
    """

    label: str
    namespace: str
    reads: bool
    server: int
    traced: int
    traced_min: int
    traced_max: int


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """A broker's term as a group's coordinator: from its takeover of the group's partition of the offsets topic."""

    group: str
    broker: str
    leader_epoch: int
    from_ms: float
    commits: int  #: committed offsets that it accepted
    last_ms: float | None  #: when it last accepted a commit or named an owner; None: never
    late: bool  #: that was after its successor had taken over


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario under one design."""

    path: str
    scenario: str
    design: str
    implementations: list[str]
    seed: int
    outcome: str  #: complete, interrupted, failed, or '' when the trace does not say
    error: str
    drained: bool  #: everything that was produced had been handed out to somebody when the load had ended
    parameters: dict[str, Any]
    duration_s: float
    tolerance_ms: float  #: below this no two moments are called apart
    events: int
    quarantined: dict[str, int]  #: lines set aside, by reason
    missing_events: int  #: numbers absent from the files
    metrics: dict[str, float | None]  #: see METRICS; None: cannot be told from this trace
    requests: dict[str, int]
    zk_operations: dict[str, int]  #: of members, by operation; failed ones as `operation (error)`
    phases: list[Phase]
    changes: list[Change]
    waits: list[Wait]  #: of every generation; empty where nobody coordinates
    delivery: Delivery | None  #: None: nothing was delivered
    counters: list[Counter]
    coordinators: list[Term]  #: in order; empty where no broker coordinates, or leadership was not traced
    overlaps: list[Overlap]
    failures: list[str]
    verdicts: list[Verdict]
    verdict: VerdictOutcome


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """A figure over the repeats in which it could be told."""

    n: int
    median: float
    low: float
    high: float


class RepeatedChange(msgspec.Struct, frozen=True, kw_only=True):
    """One change of a scenario over the repeats; figures by the names of `Change`."""

    change: str
    round: int
    figures: dict[str, Spread | None]


class Repeated(msgspec.Struct, frozen=True, kw_only=True):
    """Several runs of one scenario under one design that differ in their seeds, and so in the phases of the changes."""

    scenario: str
    design: str
    runs: list[int]  #: by their place in `runs`, in order of their seeds
    verdict: VerdictOutcome  #: of the worst
    worst: int  #: the first run that has it
    metrics: dict[str, Spread | None]  #: None: could be told in no repeat
    changes: list[RepeatedChange]


class NotApplicable(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario that makes no sense for a design, and why."""

    scenario: str
    design: str
    reason: str


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one scenario, by their place in `runs`; a run may stand for two scenarios."""

    scenario: str
    runs: list[int]
    verdict: VerdictOutcome


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The whole of an analysis; `scenarios` in the order in which they are to be shown."""

    schema_version: int
    runs: list[Run]
    scenarios: list[Scenario]
    repeated: list[Repeated]  #: empty when every run was made once
    not_applicable: list[NotApplicable]
    verdict: VerdictOutcome


class Metric(msgspec.Struct, frozen=True):
    """What a figure of a run means."""

    unit: str
    meaning: str


#: Every figure of a run, in the order in which it is shown. Units are the last word of the names.
METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        "converge_ms": Metric("ms", "longest time from a change to every partition owned once"),
        "rounds": Metric("", "rebalances of the whole group in the measured changes; a coordinator's generations"),
        "rebalances": Metric("", "rebalances begun by members"),
        "attempts": Metric("", "attempts in them"),
        "attempts_failed": Metric("", "attempts that failed"),
        "notifications": Metric("", "watch events delivered to members"),
        "zk_reads": Metric("", "successful ZooKeeper reads by members"),
        "zk_writes": Metric("", "successful ZooKeeper writes by members"),
        "zk_reads_failed": Metric("", "failed reads"),
        "zk_writes_failed": Metric("", "failed writes, lost claims included"),
        "group_requests": Metric("", "JoinGroup, SyncGroup and LeaveGroup requests by members"),
        "heartbeats": Metric("", "heartbeats"),
        "commit_requests": Metric("", "offset commits sent to brokers or ZooKeeper"),
        "fetches": Metric("", "fetch requests"),
        "unowned_partition_s": Metric("s", "time that partitions were claimed by no member"),
        "stalled_s": Metric("s", "time in the measured changes in which the whole group delivered nothing"),
        "unowned_authority_partition_s": Metric("s", "time that partitions had no owner, by the authority"),
        "double_owned_partition_s": Metric("s", "time that partitions were claimed by two members"),
        "two_delivering_partition_s": Metric("s", "time that two members delivered the same partition"),
        "two_delivering_longest_s": Metric("s", "the longest such stretch of one partition"),
        "moved": Metric("", "partitions moved to another member in the measured changes, counted each time"),
        "moved_minimum": Metric("", "the fewest that had to move for a balanced group"),
        "stopped": Metric("", "partitions taken from members that stayed, counted each time"),
        "stopped_kept": Metric("", "of these, given back to the same member"),
        "delivered": Metric("records", "records delivered, counted each time"),
        "duplicates": Metric("records", "records delivered again"),
        "lost": Metric("records", "records acknowledged to the producer and never delivered"),
        "out_of_order": Metric("", "polls that began before the end of the previous one"),
        "stale_deliveries": Metric("records", "records delivered by a member that was not the owner"),
        "commits": Metric("", "committed offsets that the authority stored"),
        "stale_writes": Metric("", "commits accepted from a member that was not the owner"),
        "moved_back": Metric("", "commits that moved the committed offset back"),
        "moved_back_records": Metric("records", "by how many records in all"),
        "old_accepted": Metric("", "commits accepted with an older generation than the group's"),
        "refused": Metric("", "commits that the authority refused"),
        "started_behind": Metric("", "deliveries that started behind an accepted commit"),
        "fenced": Metric("", "of these, because of an old generation or an unknown member"),
        "final_read": Metric("", "partitions whose committed offset was read at the end"),
        "final_behind": Metric("", "of these, behind the last accepted commit"),
        "final_beyond": Metric("", "of these, beyond the end of the log"),
        "misdirected": Metric("", "requests refused by a broker that was not the group's coordinator"),
        "dropped": Metric("", "commits dropped by a member that had lost its generation"),
    }
)


def schema() -> dict[str, Any]:
    """The JSON Schema of result.json."""
    found = msgspec.json.schema(Result)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "rebalance-lab result", **found}


def as_mapping(result: Result) -> dict[str, Any]:
    """As JSON has it."""
    mapping = msgspec.to_builtins(result)
    assert isinstance(mapping, dict)
    return mapping


def formatted(mapping: Mapping[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(mapping), indent=2) + b"\n"


if __name__ == "__main__":
    SCHEMA_PATH.write_bytes(formatted(schema()))
