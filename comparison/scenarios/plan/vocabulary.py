"""The steps of a scenario: one class for each kind, as data, with what a plan has to know of it.

`rebalance-lab scenarios NAME` prints the first paragraph of each docstring. `comparison.scenarios.run.steps`
performs the steps: `FreezeOwner` by the method `freeze_owner`; a `MeasuredFault` by what performs its fault.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from comparison.scenarios.plan.faults import FAULTS
from comparison.scenarios.plan.parameters import RANGES
from comparison.scenarios.plan.points import point_named
from comparison.scenarios.plan.step import MeasuredFault, Step, Turnover, unknown_design
from kernel.errors import ConfigurationError
from kernel.trace.events import Role

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from comparison.scenarios.plan.step import Sizes


@dataclass(frozen=True, slots=True)
class Form(Step):
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
        """The group's size afterwards."""
        if self.more is not None:
            return present + self.more
        return self.members if self.members is not None else asked

    @property
    def comes_at_a_phase(self) -> bool:
        return self.more is not None

    def turnover(self, present: int, asked: int) -> Turnover:
        return Turnover(joined=max(0, self.size(present, asked) - present))

    def design_after(self, before: str, of_run: str) -> str:
        return self.design or of_run

    def complaints(self, before: Sizes) -> Iterator[str]:
        if self.members is not None and self.more is not None:
            yield "members and more exclude each other"
        yield from unknown_design(self.design)

    def sentence(self) -> str:
        size = f"to {'--members' if self.members is None else self.members} members"
        if self.more is not None:
            size = f"by {self.more} members"
        start = f"within {self.spread_ms} ms" if self.spread_ms else "at once"
        return f"Grow the group {size}, all new ones {start}, and wait until it has settled."


@dataclass(frozen=True, slots=True)
class Steady(Step):
    """Wait until every partition has been delivered and committed, then for a random fraction of a timer interval.

    How soon a change is noticed depends on the phase of the heartbeats, and how much is delivered twice on that of the
    automatic commits. So the phase is drawn from the seed.
    """


@dataclass(frozen=True, slots=True)
class Undisturbed(Step):
    """Leave the group alone while an uninvolved client of the same ZooKeeper does `operations` operations of its own.

    Their latency is what that of the operations during the next change is compared with.
    """

    operations: int = 200

    needs_bystander: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class JoinOne(MeasuredFault):
    """Let one more member join."""

    round: int = 1

    change: ClassVar[str] = "join"
    fault: ClassVar[str] = "join"
    target: ClassVar[str] = "group"
    is_traced: ClassVar[bool] = False
    is_counted: ClassVar[bool] = True
    turns_over: ClassVar[Turnover] = Turnover(joined=1)

    @property
    def number(self) -> int:
        return self.round


@dataclass(frozen=True, slots=True)
class LeaveOne(MeasuredFault):
    """Shut down a member that owns partitions; it leaves cleanly."""

    change: ClassVar[str] = "leave"
    fault: ClassVar[str] = "leave"
    is_traced: ClassVar[bool] = False
    needs_successor: ClassVar[bool] = True
    picks_owner: ClassVar[bool] = True
    loses: ClassVar[int] = 1
    turns_over: ClassVar[Turnover] = Turnover(gone=1)


@dataclass(frozen=True, slots=True)
class KillOwner(MeasuredFault):
    """Kill a member that owns partitions (SIGKILL)."""

    change: ClassVar[str] = "crash"
    fault: ClassVar[str] = "kill"
    needs_successor: ClassVar[bool] = True
    picks_owner: ClassVar[bool] = True
    loses: ClassVar[int] = 1
    turns_over: ClassVar[Turnover] = Turnover(gone=1)


@dataclass(frozen=True, slots=True)
class FreezeOwner(Step):
    """Freeze a member that owns partitions (SIGSTOP) for the session timeout plus `over_ms`, with commits requested."""

    over_ms: int = 2000

    needs_successor: ClassVar[bool] = True
    picks_owner: ClassVar[bool] = True
    loses: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class SlowOwner(Step):
    """Stop polling in an owner for max.poll.interval.ms plus `over_ms`, and let another member join meanwhile.

    As when an application takes very long to process a record: the process is healthy and its client's background
    work continues. A group whose rebalance waits for all members waits for this one.
    """

    over_ms: int = 2000

    picks_owner: ClassVar[bool] = True
    outlasts_polls: ClassVar[bool] = True
    turns_over: ClassVar[Turnover] = Turnover(joined=1)


@dataclass(frozen=True, slots=True)
class CutAuthority(Step):
    """Cut an owner off from the authority, but not from its data, for the session timeout plus `over_ms`.

    zookeeper: its server is a follower that is cut off from the other two. server: the same, and its connections to
    the coordinating broker. The other designs: only its connections to the coordinating broker. Other brokers lead
    the partitions that it reads.
    """

    over_ms: int = 7000

    needs_ensemble: ClassVar[bool] = True
    needs_successor: ClassVar[bool] = True
    loses: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class CutEnsemble(Step):
    """Cut a ZooKeeper follower off from the other two servers; with a coordinator, the follower that it uses."""

    over_ms: int = 7000

    needs_ensemble: ClassVar[bool] = True
    follower_coordinates: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class JoinBehind(Step):
    """Let a member join whose ZooKeeper server is the follower, and another one elsewhere while the first one joins.

    The second one comes `after_ms` after others have begun to rebalance for the first one, so that a follower that
    lags 2.5 times as long does not know of it yet when the first one reads the group, and it has claimed its partitions
    when the first one does. With a coordinator, it is the coordinating broker that uses the follower.
    """

    after_ms: int = 600

    once: ClassVar[bool] = True
    needs_ensemble: ClassVar[bool] = True
    follower_coordinates: ClassVar[bool] = True
    first_joins_behind: ClassVar[bool] = True
    turns_over: ClassVar[Turnover] = Turnover(joined=2)


@dataclass(frozen=True, slots=True)
class KillCoordinator(Step):
    """Kill the broker that coordinates the group (SIGKILL). It also leads some partitions, and is not restarted.

    zookeeper has no coordinator: there, killing the same broker affects only the partitions that it led. The step
    ends when every partition has been delivered and committed again.
    """

    once: ClassVar[bool] = True
    places_coordinator: ClassVar[bool] = True

    @property
    def brokers_min(self) -> int:
        return 2


@dataclass(frozen=True, slots=True)
class AddPartitions(Step):
    """Add partitions to the topic while the group runs. The producer uses them at once."""

    more: int = 6
    doubling: bool = False  #: as many as the topic has, instead of `more`
    wait: bool = True  #: until the group has shared them out

    waits_for_metadata: ClassVar[bool] = True

    @property
    def comes_at_a_phase(self) -> bool:
        return self.wait

    def partitions_after(self, before: int) -> int:
        return before + (before if self.doubling else self.more)

    def sentence(self) -> str:
        added = "Double the partitions of" if self.doubling else f"Add {self.more} partitions to"
        rest = "" if self.wait else " Go on without waiting for the group."
        return f"{added} the topic while the group runs. The producer uses them at once.{rest}"


@dataclass(frozen=True, slots=True)
class KillAtPoint(Step):
    """Let one more member join, and kill a process (SIGKILL) when that rebalance has come to a named point.

    `point` is one of `comparison.scenarios.plan.points`, which a member passes (the one that decides, where one does;
    the first that gives something up, where members reconcile one by one) or the coordinating broker. Whoever passes it
    stops itself (SIGSTOP) right there, so the kill is no race. `target` is `member` (the one that passes the point),
    `broker` (the one that coordinates; it is not restarted) or `server` (the only ZooKeeper server; it is started
    again).
    """

    point: str
    target: str

    places_coordinator: ClassVar[bool] = True
    disturbs: ClassVar[bool] = True

    @property
    def brokers_min(self) -> int:
        return 2 if self.target == "broker" else 1

    def turnover(self, present: int, asked: int) -> Turnover:
        return Turnover(joined=1, gone=self.target == "member")

    def complaints(self, before: Sizes) -> Iterator[str]:
        if self.target == "server" and before.numbers["zookeeper"] > 1:
            yield "kills the only ZooKeeper server. Set zookeeper_servers = 1"

    def complaints_in(self, design: str) -> Iterator[str]:
        try:
            point_named(design, self.point)
        except ConfigurationError as error:
            yield str(error)


@dataclass(frozen=True, slots=True)
class FreezeAtPoint(Step):
    """Let one more member join, and freeze a member when that rebalance has come to a named point.

    `point` is one of a member's points; the member is found, and stops itself, as for `kill-at-point`. It is frozen for
    the session timeout plus `over_ms`, and then goes on from there.
    """

    point: str
    over_ms: int = 2000

    disturbs: ClassVar[bool] = True
    needs_successor: ClassVar[bool] = True
    loses: ClassVar[int] = 1
    turns_over: ClassVar[Turnover] = Turnover(joined=1)

    def complaints_in(self, design: str) -> Iterator[str]:
        try:
            point = point_named(design, self.point)
        except ConfigurationError as error:
            yield str(error)
        else:
            if point.role is not Role.MEMBER:
                yield f"freezes a member, but in {design} it is the coordinator that passes {self.point}"


@dataclass(frozen=True, slots=True)
class Inject(Step):
    """Inject a fault (docs/faults.md) into a target. It lasts until it is healed, or ends by itself."""

    fault: str
    target: str
    parameters: Mapping[str, int | str] = field(default_factory=dict)

    def turnover(self, present: int, asked: int) -> Turnover:
        return Turnover(joined=int(FAULTS["join"].values(self.parameters)["count"]) if self.fault == "join" else 0)


@dataclass(frozen=True, slots=True)
class Hold(Step):
    """Let `ms` milliseconds pass; faults stay in effect."""

    ms: int

    def sentence(self) -> str:
        return f"Wait for {self.ms / 1000:g} s; faults stay in effect."


@dataclass(frozen=True, slots=True)
class At(Step):
    """Let time pass until `ms` milliseconds after the first step has ended; faults stay in effect.

    What takes longer than expected before it delays nothing that comes later.
    """

    ms: int

    def sentence(self) -> str:
        return f"Wait until {self.ms / 1000:g} s after the first step has ended; faults stay in effect."


@dataclass(frozen=True, slots=True)
class Rate(Step):
    """From now on produce `per_second` records a second, over all partitions."""

    per_second: int

    def complaints(self, before: Sizes) -> Iterator[str]:
        if self.per_second > RANGES["rate"][1]:
            yield f"per_second is {self.per_second}: must be at most {RANGES['rate'][1]:g}"

    def sentence(self) -> str:
        return f"From now on produce {self.per_second} records a second, over all partitions."


@dataclass(frozen=True, slots=True)
class Heal(Step):
    """Heal a fault, or all that are in effect, in the reverse order; then, if none is left, wait for the group.

    `target` is the one that `Inject` named. A member that has joined, left or unsubscribed keeps nobody waiting. With
    `commits`, the first thing that a frozen member does when it goes on is to commit what it had delivered.
    """

    fault: str = ""
    target: str = ""
    wait: bool = True  #: for the group
    commits: bool = False

    def heals(self, fault: str, target: str) -> bool:
        """Whether it heals this fault of this target."""
        return self.fault in ("", fault) and self.target in ("", target)

    def sentence(self) -> str:
        of = f" of {self.target}" if self.target else ""
        rest = "; if none is left, wait for the group" if self.wait else ", and go on at once"
        commits = " A frozen member first commits what it had delivered." if self.commits else ""
        return f"Heal {f'{self.fault}{of}' if self.fault else 'all faults'}{rest}.{commits}"


@dataclass(frozen=True, slots=True)
class Settle(Step):
    """Wait until every partition has one owner and nothing has changed for a moment.

    For a group that can settle: not while a fault keeps a member from it.
    """


@dataclass(frozen=True, slots=True)
class Played(Step):
    """Let --members members join, do what somebody asks for on a page until they stop, and undo all faults.

    If no member is left, or the group does not settle, members join at the end, so that what was produced is delivered.
    """

    by_hand: ClassVar[bool] = True
