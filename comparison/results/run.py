"""One run as result.json has it: what was measured, change by change, and how it was judged.

Plain values, no Spark. Everything here is part of `comparison.results.result.Result`, with its schema version.
"""

from __future__ import annotations

from typing import Any

import msgspec

from comparison.results.keys import AUTHORITY_REQUESTS, GROUP_REQUESTS
from comparison.results.outcomes import Kind, VerdictOutcome  # noqa: TC001 - msgspec reads the annotations
from comparison.results.refusals import Refusal  # noqa: TC001

#: A fault that is healed sooner is a moment: a kill.
MOMENT_MS = 250
#: A fault that lasted longer or shorter than it was to last, by more than this share of that, says both.
ASKED_SHARE = 0.1


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict of one check on one run, with its reason."""

    check: str
    kind: Kind
    outcome: VerdictOutcome
    reason: str


class Overlap(msgspec.Struct, frozen=True, kw_only=True):
    """The first interval in which two members had the same partition: the place to start looking."""

    view: str
    topic: str
    partition: int
    from_ms: float
    until_ms: float
    owners: list[str]


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """How long members spent in a phase of their rebalances; `rebalance` is a whole one."""

    phase: str
    n: int
    median_ms: float
    max_ms: float
    total_ms: float


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """How long a generation waited for its last member: which member that was, and how many members waited."""

    generation: int | None
    from_ms: float  #: when the group began to gather
    waited_for: str  #: the process
    gone: bool  #: it never came: it was given up, or it left
    waiting: int
    longest_ms: float
    total_ms: float  #: over all that waited


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """How many records the whole group delivered in each time bin; only the beginning of a long run."""

    from_ms: float
    bin_ms: float
    records: list[int]


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """An exact count and the model's; None where nothing could be counted or predicted."""

    what: str
    measured: int | None
    model: int | None
    formula: str


class Added(msgspec.Struct, frozen=True, kw_only=True):
    """How partitions that a change added to a topic reached the members."""

    partitions: int
    owned: int  #: of them, had an owner before the next change
    delivered: int  #: of them, were delivered from before the next change
    delivered_ms: float | None  #: since the change, until the last one was delivered from; None: not all were
    parts: dict[str, float]  #: of that, in milliseconds; see comparison.pipeline.figures.additions


class FirstAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """How the first attempt of the member that a change is about went.

    Where members sync before they read, `detect` and `join` are the phases that begin with it.
    """

    outcome: str  #: ok, conflict, unavailable or error
    detect_ms: float | None  #: None: the phase never ended
    join_ms: float | None


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One change of the group, or one fault: what it cost, and how long until every partition had one owner."""

    change: str
    round: int
    members: int | None  #: after the change; None for a fault
    from_ms: float
    settled_ms: float | None  #: by the runner's observation, since the change
    healed_ms: float | None  #: end of the fault, since its start
    asked_ms: float | None = None  #: how long the fault was to last; None: it says so nowhere
    converge_ms: float | None  #: by the members' own events, since the change; None: not within the window
    takeover_ms: float | None  #: until the authority first named a new owner
    #: When a member's session was ended: how long its authority can have heard nothing from it (the shortest).
    silent_ms: float | None = None
    target: str  #: the process that was changed or had the fault, if any
    rounds: int  #: rebalances of the whole group; see comparison.pipeline.silver.rounds
    #: None: it began before the measured stretch, as the group's forming does.
    unowned_partition_s: float | None
    unowned_longest_s: float | None  #: of a single partition; likewise
    two_delivering_partition_s: float
    moved: int | None  #: each time counted
    moved_minimum: int | None
    #: Partitions of the member that owns most afterwards, less those of the one that owns fewest; idle ones own none.
    balance: int | None = None
    #: Partitions that are owned afterwards by a member that has not subscribed to their topic.
    unsubscribed: int | None = None
    stopped: int  #: each time counted
    stopped_kept: int  #: of these, given back to the same member
    kept: int | None  #: over all rounds: partitions that kept their owner; None: not examined
    kept_shown: int | None  #: of these, in rounds that lasted long enough to show deliveries
    kept_delivered: int | None  #: of these, delivered in the middle of the round
    stalled_s: float | None  #: seconds of bins without a record; None: no load, or too late in the run
    #: The longest that records of a partition waited without a delivery; None: nobody traced which records waited.
    standstill_s: float | None = None
    attempts: int
    attempts_failed: int
    target_attempts: int = 0  #: of these, of the member that the runner says the change is about
    target_conflicts: int = 0  #: of those, failed on claims of others
    target_first: FirstAttempt | None = None  #: the first of those; None: there was none
    syncs: int = 0  #: requests of members that let their ZooKeeper server catch up
    notifications: int
    zk_reads: int  #: with failed ones, as in the model, and without commits
    zk_writes: int
    zk_commits: int  #: writes below offsets
    requests: dict[str, int]  #: by API, of members only
    counted: list[Counted]
    added: Added | None = None  #: None: it added no partitions
    generation: int | None = None  #: the group's last one, or its epoch; None without a coordinator
    group_type: str = ""  #: classic or consumer, as its coordinator last named it; '' if it did not say

    @property
    def lasted_ms(self) -> float | None:
        """How long the fault lasted, until its heal; None: it is no fault, a moment as a kill is, or was not healed."""
        return self.healed_ms if self.healed_ms is not None and self.healed_ms > MOMENT_MS else None

    @property
    def has_other_length(self) -> bool:
        """Whether a fault lasted markedly longer or shorter than it was to last."""
        healed_ms, asked_ms = self.healed_ms, self.asked_ms
        return healed_ms is not None and asked_ms is not None and abs(healed_ms - asked_ms) > ASKED_SHARE * asked_ms

    @property
    def lasted(self) -> str:
        """`6.0 s, 5.0 s were asked for`: of a fault that was healed, and what was asked if that is another length."""
        asked = f", {(self.asked_ms or 0) / 1000:.1f} s were asked for" if self.has_other_length else ""
        return f"{(self.healed_ms or 0) / 1000:.1f} s{asked}"

    @property
    def settled_after_heal_ms(self) -> float | None:
        """Until every partition had one owner, since the heal of a fault that lasted; negative: before the heal."""
        return None if self.converge_ms is None or self.lasted_ms is None else self.converge_ms - self.lasted_ms

    @property
    def converge_healed_ms(self) -> float | None:
        """As `converge_ms`, of a fault that lasted since its heal; 0: it had settled by then."""
        after_heal_ms = self.settled_after_heal_ms
        return self.converge_ms if after_heal_ms is None else max(0.0, after_heal_ms)

    @property
    def group_requests(self) -> int:
        """Requests by which members of a classic group rebalance."""
        return sum(count for api, count in self.requests.items() if api in GROUP_REQUESTS)

    @property
    def authority_requests(self) -> int:
        """What members asked of the coordinator and of ZooKeeper for this change."""
        of_coordinator = sum(count for api, count in self.requests.items() if api in AUTHORITY_REQUESTS)
        return of_coordinator + self.zk_reads + self.zk_writes

    @property
    def added_ms(self) -> float | None:
        """Until every partition that it added had been delivered from."""
        return self.added.delivered_ms if self.added is not None else None


class Counter(msgspec.Struct, frozen=True, kw_only=True):
    """The ZooKeeper servers' own counters between two readings, and the traced operations.

    `traced` were answered between the readings; `traced_min` and `traced_max` allow for those in progress at a
    reading.
    """

    label: str
    namespace: str
    reads: bool
    server: int
    traced: int
    traced_min: int
    traced_max: int


class Bystander(msgspec.Struct, frozen=True, kw_only=True):
    """How long an uninvolved client waited for its operations, before a change or during it.

    See `comparison.pipeline.silver.bystanders`; latencies are None without answers.
    """

    change: str
    round: int
    members: int | None  #: after the change; None for a fault
    stage: str  #: before or during
    op: str  #: ZooKeeper's operation
    answered: int
    failed: int
    p50_ms: float | None
    p99_ms: float | None
    max_ms: float | None


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """A broker's term as a group's coordinator: from its takeover of the group's partition of the offsets topic."""

    group: str
    broker: str
    leader_epoch: int
    from_ms: float
    commits: int  #: committed offsets accepted
    last_ms: float | None  #: of its last accepted commit or named owner; None: there is none
    late: bool  #: it accepted one after its successor had taken over


class Copies(msgspec.Struct, frozen=True, kw_only=True):
    """What a read_committed reader found of the copies of an application that was frozen, replaced, and woke up."""

    transactions: bool
    records: int  #: to be copied
    copied: int  #: of them, found
    twice: int  #: of them, found more than once
    late_write: str  #: the error of what it wrote when it woke up; '' if that was stored
    late_offset: str  #: the same of its commit of an offset to its group
    late_commit: str  #: the same of the end of its transaction


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """Records that a group was never handed because `auto.offset.reset` set its position behind them."""

    group: str
    topic: str
    partition: int
    first: int  #: offset
    end: int  #: the offset that the position was set to
    records: int  #: from `first` to before `end`, without offsets that no producer was told of
    reset: str  #: latest, or largest
    committed: int | None  #: the offset that had last been stored for the group, if any
    by: str  #: the stream that began there, `process/member/stream`
    at_ms: float


class Standstill(msgspec.Struct, frozen=True, kw_only=True):
    """The longest time in which records of a partition waited and nothing was delivered from it."""

    group: str
    topic: str
    partition: int
    from_ms: float
    until_ms: float
    causes: dict[str, float]  #: of it, in seconds; see comparison.results.causes


class FileIntegrity(msgspec.Struct, frozen=True, kw_only=True):
    """One trace file, and whether it is whole; see kernel.trace.integrity. One that is missing has only problems."""

    file: str
    process: str  #: as the header names it, like `role` and `run`; '' without a usable header
    role: str
    run: str
    members: list[str] = []  #: the ids under which the process was a member, in order
    lines: int
    events: int
    quarantined: dict[str, int]  #: unusable lines by reason
    seq_distinct: int
    seq_doubled: int
    seq_missing: int
    backwards: int  #: how often time goes backwards
    backwards_ns: int
    ended: bool  #: has an end marker
    announced: int | None  #: the number of events in the end marker
    first_ns: int | None = None  #: of the first event, on the run's clock; None without events
    last_ns: int | None = None
    problems: list[str]


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario under one design."""

    path: str
    run_id: str = ""  #: as in the tables and in the trace's headers
    scenario: str
    design: str
    repeat: int = 1  #: of several runs that differ in the seed
    implementations: list[str]
    groups: list[str] = []
    seed: int
    outcome: str  #: complete, interrupted, failed, or '' if the trace does not say
    error: str
    drained: bool  #: after the load ended, everything that was produced had been delivered
    parameters: dict[str, Any]
    duration_s: float
    tolerance_ms: float  #: moments closer than this have no order
    events: int
    quarantined: dict[str, int]  #: unusable lines, by reason
    missing_events: int  #: sequence numbers missing from the files
    files: list[FileIntegrity] = []
    problems: list[str] = []  #: of the trace: while there is one, nothing can be concluded
    metrics: dict[str, int | float | None]  #: see comparison.results.metrics; None: cannot be measured from this trace
    requests: dict[str, int]
    zk_operations: dict[str, int]  #: of members, by operation; failed ones as `operation (error)`
    phases: list[Phase]
    changes: list[Change]
    waits: list[Wait]  #: one for each generation that waited; empty without a coordinator
    delivery: Delivery | None  #: None: nothing was delivered
    counters: list[Counter]
    bystanders: list[Bystander] = []  #: empty without a bystander
    copies: list[Copies] = []  #: in order
    skips: list[Skipped] = []  #: by partition, in order
    standstills: list[Standstill] = []  #: of the partitions with the longest ones, the longest first
    standstill_causes: dict[str, float] = {}  #: of all standstills, in seconds over all partitions
    coordinators: list[Term]  #: in order; empty without a coordinator, or if leadership was not traced
    overlaps: list[Overlap]
    failures: list[str]
    refusals: list[Refusal] = []  #: in the order of the first
    verdicts: list[Verdict]
    verdict: VerdictOutcome
