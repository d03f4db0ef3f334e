"""What the page says to the game: commands, distinguished by their field `type`, and the game's answers."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct


class MemberAction(StrEnum):
    """What can be done to one member; the states in which it can be done."""

    START = "start"  #: ended: a new process at its place
    LEAVE = "leave"  #: running: it closes its consumer and ends
    RESTART = "restart"  #: running: it leaves, and a new process starts at its place, as in a deployment
    KILL = "kill"  #: not ended: SIGKILL
    FREEZE = "freeze"  #: running: SIGSTOP
    CONTINUE = "continue"  #: frozen: SIGCONT
    CUT = "cut"  #: running: bytes between it and its authority are held; its fetches go on
    HEAL = "heal"  #: cut: what was held is delivered
    SLOW = "slow"  #: running or cut: it spends `delay_ms` on each record; 0 ends that


class Command(Struct, frozen=True, kw_only=True, tag_field="type", forbid_unknown_fields=True):
    """Base of all commands. `designs` are those to which it is given, all of them if there are none."""

    designs: tuple[str, ...] = ()


class ActOnMember(Command, frozen=True, kw_only=True, tag="member"):
    """Do something to the member of this name, in each design."""

    action: MemberAction
    member: str
    delay_ms: Annotated[int, Meta(ge=0, le=5000)] = 0  #: of `slow`


class AddMembers(Command, frozen=True, kw_only=True, tag="add-members"):
    """Let new members join, all at once: as many as there is room for."""

    count: Annotated[int, Meta(ge=1, le=5)] = 1


class AddPartitions(Command, frozen=True, kw_only=True, tag="add-partitions"):
    """Add partitions to the topic, as many as there is room for."""

    count: Annotated[int, Meta(ge=1, le=6)] = 1


class SetRate(Command, frozen=True, kw_only=True, tag="rate"):
    """Produce so many records a second, over all partitions of a design."""

    per_second: Annotated[int, Meta(ge=0)]


class Restore(Command, frozen=True, kw_only=True, tag="restore"):
    """Bring the group back to how it began: no fault, the members that it began with, and no others; the first rate.

    It begins with at least `members_min`.
    """

    members_min: Annotated[int, Meta(ge=1, le=5)] = 1


class SetStepping(Command, frozen=True, kw_only=True, tag="stepping"):
    """Step by step: the member waits before each of its ZooKeeper operations (zookeeper only)."""

    member: str
    on: bool


class LetGo(Command, frozen=True, kw_only=True, tag="let-go"):
    """Let a member that is stepped perform the operation that it waits with."""

    member: str


class Stop(Command, frozen=True, kw_only=True, tag="stop"):
    """End the game in all designs, and analyse what was played."""


# -- of a simulated game, to all of it ---------------------------------------------------------------------------------

SPEED_MIN, SPEED_MAX = 0.1, 100


class SetPace(Command, frozen=True, kw_only=True, tag="pace"):
    """Let virtual time stand still or go on, and how fast; None leaves it as it is."""

    paused: bool | None = None
    speed: Annotated[float, Meta(ge=SPEED_MIN, le=SPEED_MAX)] | None = None


class NextEvent(Command, frozen=True, kw_only=True, tag="next-event"):
    """Let time go on up to the next event of a group, and stand still there."""


class GoBack(Command, frozen=True, kw_only=True, tag="back"):
    """Run again from the seed, with the commands before this moment, up to it; time then stands still."""

    to_ms: Annotated[int, Meta(ge=0)]


class PlaySame(Command, frozen=True, kw_only=True, tag="same"):
    """Run again from the seed up to now, with the commands of one design in another one as well."""

    design: str
    other: str


class PlayAnew(Command, frozen=True, kw_only=True, tag="anew"):
    """Begin again from the seed without any command, in these designs; in those that are shown if there are none."""

    played: tuple[str, ...] = ()


SimulatedCommand = SetPace | NextEvent | GoBack | PlaySame | PlayAnew
AnyCommand = (
    ActOnMember | AddMembers | AddPartitions | SetRate | Restore | SetStepping | LetGo | Stop | SimulatedCommand
)
#: What is given to groups.
GroupCommand = ActOnMember | AddMembers | AddPartitions | SetRate | Restore | SetStepping | LetGo


class Outcome(NamedTuple):
    """What a command came to in one design."""

    refusal: str = ""  #: why it was refused, if it was
    remark: str = ""  #: what was done otherwise than it said


class Answer(Struct, frozen=True, kw_only=True):
    """Whether a command was accepted. Its effects come as increments.

    A command for several designs is accepted if one of them accepts it; `reason` then names those that refused, or did
    otherwise than it said.
    """

    accepted: bool
    reason: str = ""
