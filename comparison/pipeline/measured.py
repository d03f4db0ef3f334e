"""What was measured of one run, as typed values, from which figures are made.

`comparison.pipeline.gold.run` puts them together. Times are nanoseconds on the run's clock, windows their numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from comparison.pipeline.measured_members import Refused, Silence
    from comparison.pipeline.measured_offsets import FinalOffsets, Skip
    from comparison.pipeline.measured_pauses import Pauses
    from comparison.pipeline.measured_standstills import Standstills
    from comparison.results.run import FileIntegrity


class RunStarted(msgspec.Struct, frozen=True, kw_only=True):
    """The runner began; `parameters` are the run's."""

    t_ns: int
    parameters: dict[str, Any]


class RunEnded(msgspec.Struct, frozen=True, kw_only=True):
    """The runner ended the run: complete, interrupted or failed."""

    t_ns: int
    outcome: str
    error: str | None = None


class StageEntered(msgspec.Struct, frozen=True, kw_only=True):
    """The runner entered a stage of the run."""

    t_ns: int
    stage: str


class ChangeStarted(msgspec.Struct, frozen=True, kw_only=True):
    """The runner is about to change the group; `detail` may name the process that it changes."""

    t_ns: int
    detail: dict[str, Any] | None = None


class FaultStarted(msgspec.Struct, frozen=True, kw_only=True):
    """The runner began a fault of one process; `detail` may say how long it is to last."""

    t_ns: int
    target: str
    detail: dict[str, Any] | None = None


class FaultPeriod(msgspec.Struct, frozen=True, kw_only=True):
    """A fault of one target, from its start until it was healed; None: it never was."""

    fault: str
    target: str
    from_ns: int
    healed_ns: int | None


class ProcessEnded(msgspec.Struct, frozen=True, kw_only=True):
    """A process ended; `how` is leave, kill, stop or itself."""

    t_ns: int
    target: str
    how: str = ""
    code: int | None = None


class CounterReading(msgspec.Struct, frozen=True, kw_only=True):
    """One ZooKeeper server's own counters for one namespace; `at` is the reading's label and when it was made.

    The server read them within `latency_ns` before `t_ns`; traces of former releases do not say how long that was.
    """

    t_ns: int
    at: str
    server: str
    namespace: str
    reads: int
    writes: int
    latency_ns: int | None = None


class CopiesRead(msgspec.Struct, frozen=True, kw_only=True):
    """What a read_committed reader found of copies; `detail` has the fields of `comparison.results.run.Copies`."""

    t_ns: int
    detail: dict[str, Any]


class TopicWanted(msgspec.Struct, frozen=True, kw_only=True):
    """From now on the group should own partitions 0 to `wanted`-1 of a topic."""

    t_ns: int
    topic: str
    wanted: int


RunnerEvent = (
    RunStarted
    | RunEnded
    | StageEntered
    | ChangeStarted
    | FaultStarted
    | ProcessEnded
    | CounterReading
    | CopiesRead
    | TopicWanted
)


class GroupChanged(msgspec.Struct, frozen=True, kw_only=True):
    """A coordinator moved a group to another state."""

    t_ns: int
    group: str
    state: str
    generation: int
    members: int


class GroupMemberLeft(msgspec.Struct, frozen=True, kw_only=True):
    """A coordinator removed a member from a group."""

    t_ns: int
    group: str
    id: str
    reason: str = ""


GroupEvent = GroupChanged | GroupMemberLeft


class MemberFailed(msgspec.Struct, frozen=True, kw_only=True):
    """An error reached a member's application."""

    process: str
    error: str


class RunSpan(msgspec.Struct, frozen=True, kw_only=True):
    """The stretch of the run that is measured; the end is not part of it."""

    start_ns: int
    end_ns: int


class ChangeWindow(msgspec.Struct, frozen=True, kw_only=True):
    """One change or fault, and the window in which its costs are counted."""

    window: int
    change: str
    round: int
    members: int | None  #: after the change; None for a fault
    from_ns: int
    settled_ns: int | None
    healed_ns: int | None
    until_ns: int


class EventCount(msgspec.Struct, frozen=True, kw_only=True):
    """How often one kind of event occurred in a window; see `comparison.pipeline.silver.counts`."""

    window: int
    role: str
    kind: str
    name: str
    outcome: str
    step: str
    area: str
    n: int
    first_ns: int | None


class FirstOverlap(msgspec.Struct, frozen=True, kw_only=True):
    """The first range that two owners held, in the view's unit."""

    low: int
    high: int
    topic: str
    partition: int
    owner: str
    other: str


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a window was held, never, or more than once; see `sums/coverage.sql` and `sums/overlaps.sql`."""

    held: int
    gap: int
    gap_longest: int | None = None
    doubled: int
    doubled_longest: int | None = None
    unsettled_until: int | None = None


class CommitSums(msgspec.Struct, frozen=True, kw_only=True):
    """What the run's commits come to; see `sums/commits.sql`."""

    written: int = 0
    stale_writes: int = 0
    moved_back: int = 0
    moved_back_records: int = 0
    old_accepted: int = 0
    refused: int = 0
    fenced: int = 0


class CommitTotals(CommitSums, frozen=True, kw_only=True):
    """The same, and the deliveries held against them; see `comparison.pipeline.gold.commits`."""

    stale_delivered: int
    started_behind: int
    reset_behind: int  #: of these, where auto.offset.reset set the position
    of_ended_sessions: int | None  #: None: the authority traced no end of a session


class PartitionOwners(msgspec.Struct, frozen=True, kw_only=True):
    """Who owned a partition before and after a change, by the authority; None: nobody."""

    topic: str
    partition: int
    before: str | None
    after: str | None


class Turnover(msgspec.Struct, frozen=True, kw_only=True):
    """Partitions that moved or stopped in a window; see `sums/turnover.sql`."""

    moved: int
    stopped: int
    stopped_kept: int


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """Partitions that somebody first had in a window, and when the last of them was; see `sums/begun.sql`."""

    partitions: int
    last_ns: int


class AttemptEnded(msgspec.Struct, frozen=True, kw_only=True):
    """A member's attempt to rebalance has ended: ok, conflict or error."""

    process: str
    t_ns: int
    outcome: str


class MemberPhase(msgspec.Struct, frozen=True, kw_only=True):
    """One phase of a member's rebalance; `member` is None when the member never learned its id."""

    process: str
    member: str | None
    phase: str
    from_ns: int
    until_ns: int
    group: str = ""


class KeptThrough(msgspec.Struct, frozen=True, kw_only=True):
    """Partitions kept through a round, and how many of them were delivered during it."""

    kept: int
    delivered: int


class DeliveryBin(msgspec.Struct, frozen=True, kw_only=True):
    """What the group delivered in one bin of time; `bin` is None outside the measured span."""

    bin: int | None
    records: int


class CourseInterval(msgspec.Struct, frozen=True, kw_only=True):
    """What happened in one interval of the measured span, of all groups and partitions together.

    `undelivered` and `lag` are at its end; None: nobody knows how far the logs reached.
    """

    from_ns: int
    until_ns: int
    delivered: int
    duplicates: int  #: delivered records that the group had been handed before
    undelivered: int | None  #: records behind the furthest one that was delivered of each partition
    lag: int | None  #: records behind the committed offset of each partition


class TracedOperations(msgspec.Struct, frozen=True, kw_only=True):
    """Traced ZooKeeper operations between two readings of the counters; see `comparison.pipeline.silver.counts`."""

    label: str
    namespace: str
    is_read: bool
    traced: int
    sure: int
    possible: int


class BystanderLatency(msgspec.Struct, frozen=True, kw_only=True):
    """How long the bystander waited for the answers of one operation in a stage of a change; None without answers.

    WHOLE_RUN: of all changes before which the group was left alone. See `comparison.pipeline.silver.bystanders`.
    """

    window: int
    stage: str
    op: str
    answered: int
    failed: int
    p50_ns: int | None
    p99_ns: int | None
    max_ns: int | None


class Takeover(msgspec.Struct, frozen=True, kw_only=True):
    """A broker took a partition of the offsets topic."""

    t_ns: int
    process: str
    partition: int
    leader_epoch: int


class Acting(msgspec.Struct, frozen=True, kw_only=True):
    """An interval in which a single broker accepted commits and named owners for a group."""

    group: str
    process: str
    from_ns: int
    until_ns: int
    commits: int


@dataclass(frozen=True, slots=True)
class Round:
    """One rebalance of the group; `gathered_ns` is when its generation began, with the members that had joined.

    Where members reconcile one by one, nobody gathers, and the generation is the group's epoch.
    """

    from_ns: int
    until_ns: int | None
    gathered_ns: int | None = None
    generation: int | None = None
    members: int = 0  #: of that generation
    group: str = ""


@dataclass(slots=True)
class Measured:
    """Everything that was measured of one run; by window where it has one."""

    files: list[FileIntegrity] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)  #: why the trace may not show everything, file by file
    groups: list[str] = field(default_factory=list)
    members: dict[str, list[str]] = field(default_factory=dict)  #: the ids that each process started, in order
    mistakable: list[str] = field(default_factory=list)  #: why nobody can say who did what; see gold.identities
    runner: list[RunnerEvent] = field(default_factory=list)
    failures: list[MemberFailed] = field(default_factory=list)
    refusals: list[Refused] = field(default_factory=list)
    span: RunSpan | None = None
    changes: list[ChangeWindow] = field(default_factory=list)
    faults: list[FaultPeriod] = field(default_factory=list)
    counts: list[EventCount] = field(default_factory=list)
    coverage: dict[tuple[int, str], Coverage] = field(default_factory=dict)
    first_overlaps: dict[str, FirstOverlap] = field(default_factory=dict)  #: by view
    commits: CommitTotals | None = None
    final_offsets: FinalOffsets | None = None
    old_offsets_used: int | None = None  #: partitions of a recreated topic that were begun at one
    memberless_ns: int = 0  #: how long partitions were wanted by a group without members
    left_unnamed: int = 0  #: partitions that should have had an owner at the end of the last change, and had none
    skips: list[Skip] = field(default_factory=list)
    standstills: Standstills | None = None  #: None: nobody traced which records waited when
    pauses: Pauses | None = None
    owners: dict[int, list[PartitionOwners]] = field(default_factory=dict)
    turnover: dict[int, Turnover] = field(default_factory=dict)
    begun: dict[tuple[int, str], Begun] = field(default_factory=dict)  #: by window and view
    group: list[GroupEvent] = field(default_factory=list)
    silences: list[Silence] = field(default_factory=list)
    phases: list[MemberPhase] = field(default_factory=list)
    attempts: list[AttemptEnded] = field(default_factory=list)  #: of the members that a change is about
    rounds: list[Round] = field(default_factory=list)
    kept: dict[int, KeptThrough] = field(default_factory=dict)
    delivered: list[DeliveryBin] = field(default_factory=list)
    course: list[CourseInterval] = field(default_factory=list)  #: in order
    out_of_order: int = 0  #: polls of a stream that began before the end of its previous one
    operations: list[TracedOperations] = field(default_factory=list)
    bystanders: list[BystanderLatency] = field(default_factory=list)
    takeovers: list[Takeover] = field(default_factory=list)
    acting: list[Acting] = field(default_factory=list)
