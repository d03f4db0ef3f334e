"""The steps of a scenario: one class for each kind, as data.

`rebalance-lab scenarios NAME` prints the first paragraph of each docstring. `comparison.scenarios.run.steps`
performs the steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Form:
    """Grow the group to this many members (default: --members), all new ones at once, and wait until it has settled.

    With `spread_ms`, each starts after a part of this time that is drawn from the seed, as processes do that somebody
    starts at once.
    """

    members: int | None = None
    change: str = "form"  #: the name of the measurement: `mass-start`, or `grow` between others
    more: int | None = None  #: instead of `members`: grow by this many
    settings: Mapping[str, str] = field(default_factory=dict)  #: of these members, over the design's own
    design: str = ""  #: of these members, if it is another one than the run's
    spread_ms: int = 0

    def size(self, present: int, asked: int) -> int:
        """The group's size afterwards, from its present size and the user's --members."""
        if self.more is not None:
            return present + self.more
        return self.members if self.members is not None else asked


@dataclass(frozen=True, slots=True)
class Steady:
    """Wait until every partition has been delivered and committed, then for a random fraction of a timer interval.

    How soon a change is noticed depends on the phase of the heartbeats, and how much is delivered twice on that of the
    automatic commits. So the phase is drawn from the seed.
    """


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """Leave the group alone while an uninvolved client of the same ZooKeeper does `operations` operations of its own.

    Their latency is what that of the operations during the next change is compared with.
    """

    operations: int = 200


@dataclass(frozen=True, slots=True)
class JoinOne:
    """Let one more member join."""

    round: int = 1


@dataclass(frozen=True, slots=True)
class LeaveOne:
    """Shut down a member that owns partitions; it leaves cleanly."""


@dataclass(frozen=True, slots=True)
class RestartEach:
    """Shut down each process cleanly, one after the other, and start it again after `away_ms`.

    If leaving causes a rebalance, the process stays away until all others have been through it: if it came back in the
    middle, chance would decide whether there are one or two rebalances.

    The next one is shut down when every partition has one owner, nothing has changed for a moment, and a random part
    of the heartbeat interval has passed. The new process takes the old one's place in the group: its
    group.instance.id, in designs that have one.
    """

    away_ms: int = 1000
    settings: Mapping[str, str] = field(default_factory=dict)  #: of the restarted process, over the design's own
    design: str = ""  #: of the restarted process, if it is another one than before


@dataclass(frozen=True, slots=True)
class KillOwner:
    """Kill a member that owns partitions (SIGKILL)."""


@dataclass(frozen=True, slots=True)
class FreezeOwner:
    """Freeze a member that owns partitions (SIGSTOP) for the session timeout plus `over_ms`, with commits requested."""

    over_ms: int = 2000


@dataclass(frozen=True, slots=True)
class SlowOwner:
    """Stop polling in an owner for max.poll.interval.ms plus `over_ms`, and let another member join meanwhile.

    As when an application takes very long to process a record: the process is healthy and its client's background
    work continues. A group whose rebalance waits for all members waits for this one.
    """

    over_ms: int = 2000


@dataclass(frozen=True, slots=True)
class CutAuthority:
    """Cut an owner off from the authority, but not from its data, for the session timeout plus `over_ms`.

    zookeeper: its server is a follower that is cut off from the other two. server: the same, and its connections to
    the coordinating broker. The other designs: only its connections to the coordinating broker. Other brokers lead
    the partitions that it reads.
    """

    over_ms: int = 7000


@dataclass(frozen=True, slots=True)
class CutEnsemble:
    """Cut a ZooKeeper follower off from the other two servers; with a coordinator, the follower that it uses."""

    over_ms: int = 7000


@dataclass(frozen=True, slots=True)
class JoinBehind:
    """Let a member join whose ZooKeeper server is the follower, and another one elsewhere while the first one joins.

    The second one comes `after_ms` after others have begun to rebalance for the first one, so that a follower that
    lags 2.5 times as long does not know of it yet when the first one reads the group, and it has claimed its partitions
    when the first one does. With a coordinator, it is the coordinating broker that uses the follower.
    """

    after_ms: int = 600


@dataclass(frozen=True, slots=True)
class KillCoordinator:
    """Kill the broker that coordinates the group (SIGKILL). It also leads some partitions, and is not restarted.

    zookeeper has no coordinator: there, killing the same broker affects only the partitions that it led. The step
    ends when every partition has been delivered and committed again.
    """


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """Add partitions to the topic while the group runs. The producer uses them at once."""

    more: int = 6
    doubling: bool = False  #: as many as the topic has, instead of `more`

    def size(self, before: int) -> int:
        """The topic's size afterwards."""
        return before + (before if self.doubling else self.more)


@dataclass(frozen=True, slots=True)
class Resubscribe:
    """Change a member's subscription to other topics.

    `place` is that of its process (1 is m1). In zookeeper a running member cannot change its subscription, so its
    process is shut down and started again with the new topics.
    """

    place: int
    topics: tuple[int, ...]  #: topic numbers
    round: int = 1


@dataclass(frozen=True, slots=True)
class KillAtPoint:
    """Let one more member join, and kill a process (SIGKILL) when that rebalance has come to a named point.

    `point` is one of `comparison.scenarios.plan.points`, which a member passes (the one that decides, where one does;
    the first that gives something up, where members reconcile one by one) or the coordinating broker. Whoever passes it
    stops itself (SIGSTOP) right there, so the kill is no race. `target` is `member` (the one that passes the point),
    `broker` (the one that coordinates; it is not restarted) or `server` (the only ZooKeeper server; it is started
    again).
    """

    point: str
    target: str


@dataclass(frozen=True, slots=True)
class CrashAndReturn:
    """Kill an owner (SIGKILL); a new process takes its place in time or, with `over_ms`, too late.

    Without `over_ms` it is away for half the session timeout; in delayed, which waits longer, for the session timeout
    and a third of the delay. With `over_ms` it is away for the session timeout, the delay and `over_ms` more: the group
    has gone on without it.
    """

    over_ms: int | None = None

    def away_ms(self, session_ms: int, delay_ms: int) -> int:
        """How long the process is away."""
        if self.over_ms is not None:
            return session_ms + delay_ms + self.over_ms
        return session_ms + delay_ms // 3 if delay_ms else session_ms // 2


@dataclass(frozen=True, slots=True)
class DuplicateInstance:
    """Start one more process with the group.instance.id of an owner, which goes on running.

    The step ends when the application of one of the two has learned that it is one too many, and has closed its
    consumer: the owner's in static, the newer one's in consumer.
    """


@dataclass(frozen=True, slots=True)
class StartAnew:
    """Shut all members down, and start as many new ones of the run's design, with other settings.

    Members that join later get these settings as well.
    """

    settings: Mapping[str, str] = field(default_factory=dict)  #: over the design's own
    change: str = "form"  #: the name of the measurement; `form` is not judged


@dataclass(frozen=True, slots=True)
class JoinAndLeave:
    """Let one more member join, then let the longest-standing member leave.

    `label` begins the names of both measurements.
    """

    label: str


@dataclass(frozen=True, slots=True)
class SlowApplication:
    """From now on every application, also of members that join later, spends `per_record_ms` on each record."""

    per_record_ms: int


@dataclass(frozen=True, slots=True)
class CopyWithZombie:
    """Copy the first `records` records of the first partition to a topic of its own, by an application that pauses.

    The application is a process, the only member of a group of its own. It is frozen (SIGSTOP) halfway and removed from
    its group. Another process replaces it, copies all, commits the offset and the transaction. Then the first one wakes
    up: it writes its other half, and commits. A read_committed reader counts the copies.
    """

    transactions: bool = True  #: both incarnations have the same transactional.id
    records: int = 20


@dataclass(frozen=True, slots=True)
class Inject:
    """Inject a fault (docs/faults.md) into a target. It lasts until it is healed, or ends by itself."""

    fault: str
    target: str
    parameters: Mapping[str, int | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hold:
    """Let `ms` milliseconds pass; faults stay in effect."""

    ms: int


@dataclass(frozen=True, slots=True)
class Heal:
    """Heal a fault, or all that are in effect, in the reverse order; then, if none is left, wait for the group.

    `target` is the one that `Inject` named. A member that has joined, left or unsubscribed keeps nobody waiting.
    """

    fault: str = ""
    target: str = ""


@dataclass(frozen=True, slots=True)
class Settle:
    """Wait until every partition has one owner and nothing has changed for a moment.

    For a group that can settle: not while a fault keeps a member from it.
    """


@dataclass(frozen=True, slots=True)
class Played:
    """Let --members members join, do what somebody asks for on a page until they stop, and undo all faults.

    If no member is left, or the group does not settle, members join at the end, so that what was produced is delivered.
    """


@dataclass(frozen=True, slots=True)
class OwnStep:
    """A step that a user has written, with `perform`. See `comparison.scenarios.extending`."""

    async def perform(self, group: Any) -> None:
        """Perform it to its end. `group` is a `comparison.scenarios.extending.Group`."""
        raise NotImplementedError


Step = (
    Form
    | Steady
    | Undisturbed
    | JoinOne
    | LeaveOne
    | RestartEach
    | KillOwner
    | FreezeOwner
    | SlowOwner
    | CutAuthority
    | CutEnsemble
    | JoinBehind
    | KillCoordinator
    | AddPartitions
    | Resubscribe
    | KillAtPoint
    | CrashAndReturn
    | DuplicateInstance
    | StartAnew
    | JoinAndLeave
    | SlowApplication
    | CopyWithZombie
    | Inject
    | Hold
    | Heal
    | Settle
    | Played
    | OwnStep
)


def heals(step: Heal, fault: str, target: str) -> bool:
    """Whether a step heals this fault of this target."""
    return step.fault in ("", fault) and step.target in ("", target)
