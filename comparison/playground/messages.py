"""What the game says to the page: a snapshot and increments. What the page says is in `commands.py`.

The page first gets a `Snapshot`, which has everything, and then each `Increment`, numbered by `seq` without a gap, with
the changes since the one before. `comparison.playground.applying` applies one to the other, as the page does. A page
that has missed some gets a new snapshot. All times are `at_ms`: milliseconds since the game began, on one clock for all
designs; of virtual time in a simulated game. An increment comes at least once a second, so that lanes can scroll
between two of them. A simulated game may begin again: every page then gets a snapshot, whatever it has.

A member is named by its place (`m2`), also after a restart; a partition by topic and number (`orders-3`). Names and
texts may come from outside: a page shows them as text, never as markup. Everything is a msgspec struct, sent as JSON;
the types of a union are distinguished by its field `type`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from comparison.playground.commands import Answer, AnyCommand

# -- game to page: the parts of a group --------------------------------------------------------------------------------


class Status(StrEnum):
    """The game's own state; they follow each other in this order, and `failed` follows any of the first three."""

    STARTING = "starting"
    RUNNING = "running"
    ANALYSING = "analysing"
    ENDED = "ended"
    FAILED = "failed"


class MemberState(StrEnum):
    """The state of the process at a place."""

    PENDING = "pending"  #: started; not in the group yet
    RUNNING = "running"
    FROZEN = "frozen"
    CUT = "cut"  #: cut off from its authority
    ENDED = "ended"


class Member(Struct, frozen=True, kw_only=True):
    """A place in a group, and the process that is or was there."""

    name: str  #: m2
    style: str = ""  #: the classes of its bars
    process: str  #: m2, and m2.2 after a restart
    state: MemberState = MemberState.PENDING
    ended: str = ""  #: how it ended: left, killed, or what failed
    id: str = ""  #: its member id in the group, or its consumer id
    delivers: tuple[str, ...] = ()  #: partitions that it believes to own, sorted
    rebalancing: str = ""  #: the phase of its rebalance, or ''
    delay_ms: int = 0  #: that it spends on each record
    stepping: bool = False  #: it waits before each ZooKeeper operation
    leads: bool = False  #: it is the group's leader


class Partition(Struct, frozen=True, kw_only=True):
    """The two truths about a partition."""

    name: str  #: orders-3
    owner: str = ""  #: the member that the authority names, or ''
    deliverers: tuple[str, ...] = ()  #: members that deliver it, sorted; a frozen one delivers nothing
    frozen: str = ""  #: the member that has it and is frozen, while nobody delivers it
    end: int = 0  #: the log's end
    delivered: int = 0  #: the next offset that nobody delivered yet
    committed: int = 0  #: the offset in the authority's keeping


class Counters(Struct, frozen=True, kw_only=True):
    """Figures of one design up to now, as `comparison.results.metrics.METRICS` has them, without our observer.

    Until ZooKeeper's log is read, after the game, the commits that it stored are those that its members know of.
    """

    unowned_partition_s: float = 0
    two_delivering_partition_s: float = 0
    rebalances: int = 0
    notifications: int = 0
    zk_reads: int = 0
    zk_writes: int = 0
    group_requests: int = 0
    heartbeats: int = 0
    commit_requests: int = 0
    delivered: int = 0
    duplicates: int = 0
    moved_back: int = 0
    refused: int = 0
    dropped: int = 0


class Znode(Struct, frozen=True, kw_only=True):
    """A znode of the group's tree, which is a prefix tree: `path` is whole."""

    path: str  #: /consumers/lab/owners/orders/3
    data: str = ""  #: the first 200 characters
    version: int = 0
    ephemeral: bool = False
    changed_ms: int = 0  #: when it was last seen to be created or written


class Coordinator(Struct, frozen=True, kw_only=True):
    """What the coordinator of a group says about it."""

    state: str = ""  #: one of the group's `states`; '' before the first
    came_from: str = ""  #: the state before it
    since_ms: int = 0
    reason: str = ""  #: of the last change
    generation: int = 0
    leader: str = ""  #: the member that computed the last assignment
    members: tuple[str, ...] = ()  #: admitted, sorted


class StepRow(Struct, frozen=True, kw_only=True):
    """A row of the rebalance table of the zookeeper design."""

    step: str  #: R1 to R12
    phase: str
    does: str
    requests: str  #: in ZooKeeper


class Waiting(Struct, frozen=True, kw_only=True):
    """A stepped member waits before a ZooKeeper operation."""

    member: str
    operation: str  #: getChildren
    path: str
    step: str = ""  #: R5, or another name of the operation's reason
    rows: tuple[int, ...] = ()  #: the rows of the group's `table` that it may belong to
    since_ms: int = 0
    behind: int = 0  #: operations that wait behind it


class Severity(StrEnum):
    """How a sentence of the feed is shown."""

    INFO = "info"  #: the group does what it should
    ACT = "act"  #: somebody played
    NOTICE = "notice"  #: a partition is unowned, a member is missed, a commit is refused
    ALARM = "alarm"  #: two deliver, or an offset moved back


class Sentence(Struct, frozen=True, kw_only=True):
    """One sentence of the feed."""

    id: int  #: within a design, rising
    at_ms: int
    severity: Severity
    text: str
    members: tuple[str, ...] = ()
    partition: str = ""


class IntervalKind(StrEnum):
    """What an interval of a lane shows."""

    NAMED = "named"  #: the authority names `member` for `partition`
    DELIVERING = "delivering"  #: `member` delivers `partition`
    PHASE = "phase"  #: `member` is in the phase `label` of a rebalance
    FAULT = "fault"  #: `member` suffers the fault `label`: freeze, cut, slow
    UNNAMED = "unnamed"  #: the authority names nobody any more for `partition`
    NOBODY = "nobody"  #: nobody delivers `partition` any more; `member` has it and is frozen, if there is one
    BOTH = "both"  #: several deliver `partition`: `member` names all of them
    ACT = "act"  #: a moment: `label` was done to `member` (all of them), or has come of it; `text` says it


class Interval(Struct, frozen=True, kw_only=True):
    """A stretch of time on a lane; open while `to_ms` is None."""

    id: int  #: within a design, rising
    kind: IntervalKind
    member: str
    from_ms: int
    partition: str = ""
    label: str = ""
    to_ms: int | None = None
    row: int = 0  #: of those who deliver a partition at the same time, from above
    style: str = ""  #: the classes of its bar; of an act: whether something begins, heals or changes
    text: str = ""  #: of an act


class Group(Struct, frozen=True, kw_only=True):
    """Everything about one design's group."""

    design: str
    coordinated: bool  #: a broker coordinates it; otherwise its authority is ZooKeeper
    sessions: bool = False  #: its members have ZooKeeper sessions
    members: tuple[Member, ...] = ()  #: in the order of their numbers
    partitions: tuple[Partition, ...] = ()
    counters: Counters = Counters()
    znodes: tuple[Znode, ...] = ()  #: sorted by path; of designs that keep their group in ZooKeeper
    states: tuple[str, ...] = ()  #: of the coordinator's state machine, in their usual order
    coordinator: Coordinator | None = None
    table: tuple[StepRow, ...] = ()  #: zookeeper only
    waiting: tuple[Waiting, ...] = ()  #: one for each stepped member that waits
    feed: tuple[Sentence, ...] = ()  #: the last ones, oldest first
    intervals: tuple[Interval, ...] = ()  #: open ones, and those that ended not long ago, by `id`
    rate: int = 0  #: records a second


class Limits(Struct, frozen=True, kw_only=True):
    """What the game accepts at most, in each design."""

    members: int = 12  #: places; those that were added, and whose member has ended, are taken again
    partitions: int = 24
    rate: int = 1000
    delay_ms: int = 5000
    feed: int = 200  #: sentences that are kept
    lanes_ms: int = 180_000  #: how long a closed interval is kept


class Begun(Struct, frozen=True, kw_only=True):
    """How the game was begun."""

    members: int = 3  #: of each group
    command: str = ""  #: as a shell takes it


class TimeState(StrEnum):
    """What simulated time does."""

    FORMING = "forming"  #: it goes on as fast as it can, until the first members share the partitions
    RUNNING = "running"
    PAUSED = "paused"
    REPLAYING = "replaying"  #: it runs again from the seed, as fast as it can, up to `until_ms`


class Simulation(Struct, frozen=True, kw_only=True):
    """How a simulated game goes on."""

    seed: int
    designs: tuple[str, ...] = ()  #: that can be played
    time: TimeState = TimeState.FORMING
    speed: float = 1.0  #: virtual seconds in a second, as asked for
    reached: float = 0.0  #: what this machine manages of it, if less; 0 if it manages it
    until_ms: int = 0
    event: str = ""  #: the one that time was stopped at by a step
    take: int = 0  #: how often the game has begun again from the seed


class Snapshot(Struct, frozen=True, kw_only=True, tag_field="type", tag="snapshot"):
    """Everything, as of increment `seq`."""

    seq: int
    at_ms: int
    status: Status
    reason: str = ""  #: of the status, if there is more to say: why the game failed, who stopped it
    run_folder: str = ""
    report: str = ""  #: the path of report.html, once there is one
    scenarios: tuple[str, ...] = ()  #: the paths of what was played as scenarios, once the game is stopped
    limits: Limits = Limits()
    begun: Begun = Begun()
    groups: tuple[Group, ...] = ()
    simulation: Simulation | None = None  #: of a simulated game


# -- game to page: changes ---------------------------------------------------------------------------------------------


class Change(Struct, frozen=True, kw_only=True, tag_field="type"):
    """Base of all changes but `StatusChanged` and `SimulationChanged`, which have no design."""

    design: str


class StatusChanged(Struct, frozen=True, kw_only=True, tag_field="type", tag="status"):
    """The game's own state."""

    status: Status
    reason: str = ""
    run_folder: str = ""
    report: str = ""
    scenarios: tuple[str, ...] = ()


class SimulationChanged(Struct, frozen=True, kw_only=True, tag_field="type", tag="simulation"):
    """How a simulated game goes on."""

    simulation: Simulation


class MemberChanged(Change, frozen=True, kw_only=True, tag="member"):
    """A new member, or all of a known one."""

    member: Member


class PartitionChanged(Change, frozen=True, kw_only=True, tag="partition"):
    """A new partition, or all of a known one."""

    partition: Partition


class CountersChanged(Change, frozen=True, kw_only=True, tag="counters"):
    """All counters."""

    counters: Counters


class ZnodesChanged(Change, frozen=True, kw_only=True, tag="znodes"):
    """Znodes that were created or written, and the paths of those that are gone."""

    put: tuple[Znode, ...] = ()
    gone: tuple[str, ...] = ()


class CoordinatorChanged(Change, frozen=True, kw_only=True, tag="coordinator"):
    """All that the coordinator says."""

    coordinator: Coordinator


class WaitingChanged(Change, frozen=True, kw_only=True, tag="waiting"):
    """All members that wait before an operation; none if nobody does."""

    waiting: tuple[Waiting, ...] = ()


class Said(Change, frozen=True, kw_only=True, tag="said"):
    """A new sentence of the feed."""

    sentence: Sentence


class IntervalChanged(Change, frozen=True, kw_only=True, tag="interval"):
    """An interval that opened, or one that has closed: `id` says which."""

    interval: Interval


class RateChanged(Change, frozen=True, kw_only=True, tag="rate"):
    """Records a second."""

    rate: int


AnyChange = (
    StatusChanged
    | SimulationChanged
    | MemberChanged
    | PartitionChanged
    | CountersChanged
    | ZnodesChanged
    | CoordinatorChanged
    | WaitingChanged
    | Said
    | IntervalChanged
    | RateChanged
)


class Increment(Struct, frozen=True, kw_only=True, tag_field="type", tag="increment"):
    """The changes since increment `seq - 1`; none if only time has passed."""

    seq: int
    at_ms: int
    changes: tuple[AnyChange, ...] = ()


class SavedScenario(Struct, frozen=True, kw_only=True):
    """What was played, as a scenario."""

    name: str  #: of its file
    designs: tuple[str, ...]  #: in which it was played
    steps: int  #: commands that it has
    left_out: int  #: ... and that no step says: comments in it say why
    command: str  #: that runs it
    text: str


# -- the meeting point -------------------------------------------------------------------------------------------------


class Game(Protocol):
    """What the web server talks to, on the event loop that both share."""

    def snapshot(self) -> Snapshot:
        """Everything as of now."""

    def subscribe(self, after: int | None = None) -> AsyncIterator[Snapshot | Increment]:
        """Follow the game from the increment `after` on.

        The first item is a snapshot if `after` is None or that increment is no longer kept; so is any item to a
        subscriber that has fallen too far behind. The iteration ends after the game has ended or failed and all of it
        was received. Close it (`aclose`) when the page is gone: a game that nobody watches for long stops.
        """

    def scenarios(self) -> Sequence[SavedScenario]:
        """What was played up to now as files of scenarios: one for all designs in which the same was played."""

    async def command(self, command: AnyCommand) -> Answer:
        """Give a command; returns once it is accepted or refused, not when its effect is over."""
