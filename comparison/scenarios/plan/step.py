"""What a plan asks of a step: each kind says of itself what it needs, and what it does to the group.

A fact that a kind does not mention is as it is here: it needs nothing, changes no size, and loses nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from kernel.designs import DESIGN_NAMES, SERVER
from kernel.errors import UserError
from kernel.java_regex import compiled
from kernel.suggestions import unknown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from comparison.scenarios.plan.parameters import Parameters


class Turnover(NamedTuple):
    """How many members come and go in a step."""

    joined: int = 0  #: at the places that were planned before the start
    added: int = 0  #: at new places, with a process each
    gone: int = 0  #: for good


class Sizes:
    """How large everything is before a step, as far as the steps say."""

    def __init__(self, parameters: Parameters, *, servers: int, members_per_process: int) -> None:
        self.asked = parameters.members
        self.topics = parameters.topics
        self.names = frozenset(parameters.topic_names)  #: of the topics
        self.partitions = parameters.partitions
        self.numbers = {"broker": parameters.brokers, "zookeeper": servers}
        self.present = 0  #: members
        self.joined = 0  #: members that have ever come to a place that was planned
        self._added = 0
        self._per_place = members_per_process

    def after(self, step: Step) -> None:
        """Go on to the next step."""
        came = step.turnover(self.present, self.asked)
        self.present = max(0, self.present + came.joined + came.added - came.gone)
        self.joined += came.joined
        self._added += came.added
        self.names = step.names_after(self.names)
        self.partitions = step.partitions_after(self.partitions)

    @property
    def places(self) -> int:
        """Where a member has ever been: m1 to this one."""
        return -(-(self.joined + self._added) // self._per_place)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a scenario; its parameters are the fields of a dataclass, and every length in them ends in `_ms`."""

    # -- what it needs
    once: ClassVar[bool] = False  #: it is about a place or a broker that was chosen before the start
    needs_ensemble: ClassVar[bool] = False
    needs_successor: ClassVar[bool] = False  #: another member has to take over
    needs_names: ClassVar[bool] = False  #: members with a group.instance.id
    needs_bystander: ClassVar[bool] = False  #: an uninvolved client of the same ZooKeeper
    places_coordinator: ClassVar[bool] = False  #: the second broker has to coordinate the group
    # -- what it does
    by_hand: ClassVar[bool] = False  #: any member may be cut off at any time
    picks_owner: ClassVar[bool] = False  #: it chooses a member that owns partitions
    all_leave: ClassVar[bool] = False  #: every process that is there has to leave
    follower_coordinates: ClassVar[bool] = False  #: a coordinating broker uses the follower that is cut off, or lags
    first_joins_behind: ClassVar[bool] = False  #: the first member to join after the start uses that follower
    changes_subscriptions: ClassVar[bool] = False
    waits_for_metadata: ClassVar[bool] = False  #: until a group notices new partitions
    outlasts_polls: ClassVar[bool] = False  #: takes longer than max.poll.interval.ms
    disturbs: ClassVar[bool] = False  #: it changes a group at rest, so that its phase is drawn from the seed
    loses: ClassVar[int] = 0  #: how many members, for a while or for good
    turns_over: ClassVar[Turnover] = Turnover()

    @property
    def comes_at_a_phase(self) -> bool:
        """Whether its phase is drawn from the seed."""
        return self.disturbs

    @property
    def brokers_min(self) -> int:
        return 1

    @property
    def member(self) -> str:
        """The place of the member that it is about, such as m1; '' for no single one."""
        return ""

    @property
    def record_ms(self) -> int:
        """How long applications take for a record from now on."""
        return 0

    def turnover(self, present: int, asked: int) -> Turnover:
        """How the group changes, from its present size and the user's --members."""
        return self.turns_over

    def partitions_after(self, before: int) -> int:
        """The size of the first topic afterwards."""
        return before

    def names_after(self, before: frozenset[str]) -> frozenset[str]:
        """The names of the topics afterwards."""
        return before

    def losses(self, members: int) -> int:
        """How many times a run with so many members loses one, for a while or for good."""
        return self.loses

    def away(self, session_ms: int, delay_ms: int) -> int | None:
        """How long a member is away that comes back, in milliseconds."""
        return None

    def design_after(self, before: str, of_run: str) -> str:
        """The design of the members that have this step's settings."""
        return before

    def complaints(self, before: Sizes) -> Iterator[str]:
        """Why it is impossible in a group of these sizes, in any design."""
        yield from ()

    def complaints_in(self, design: str) -> Iterator[str]:
        """Why it is impossible in a design."""
        yield from ()

    def sentence(self) -> str:
        """What it does, with its own parameters; '' if the first paragraph about its kind says it."""
        return ""


@dataclass(frozen=True, slots=True)
class MeasuredFault(Step):
    """A fault that is measured as one change of the group, under a name of its own, and nothing else.

    It needs no performer. One that is `away` for a time is healed after it, as a part of the change.
    """

    change: ClassVar[str]
    fault: ClassVar[str]
    target: ClassVar[str] = "owner"
    is_traced: ClassVar[bool] = True  #: as a fault, besides the change
    is_counted: ClassVar[bool] = False  #: the servers' counters are read before and after
    disturbs: ClassVar[bool] = True

    @property
    def number(self) -> int:
        """Of the change, among those of its name."""
        return 1


@dataclass(frozen=True, slots=True)
class OwnStep(Step):
    """A step that a user has written, with `perform`. See `rebalance_lab.extending`."""

    async def perform(self, group: Any) -> None:
        """Perform it to its end. `group` is a `rebalance_lab.extending.Group`."""
        raise NotImplementedError


def pattern_problem(design: str, pattern: str) -> Iterator[str]:
    """Why members of a design cannot subscribe by a pattern."""
    if design == SERVER:
        yield f"{design} assigns topics by name, so it has no patterns"
    try:
        compiled(pattern)
    except UserError as error:
        yield f"pattern {pattern!r}: {error}"


def unknown_design(design: str) -> Iterator[str]:
    """Why a step's members cannot be of this design; '' is the run's."""
    if design not in ("", *DESIGN_NAMES):
        yield unknown("design", design, DESIGN_NAMES)
