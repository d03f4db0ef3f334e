"""What a game and its worlds, which are processes of their own, say to each other: a JSON line each.

The game asks for one thing after the other, and each is answered by `Reply`s: all but the last have `more`.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from comparison.playground.commands import GroupCommand  # noqa: TC001  # msgspec reads the types of the fields
from comparison.playground.messages import AnyChange, Limits  # noqa: TC001  # as above


class Begin(Struct, frozen=True, kw_only=True, tag_field="type", tag="begin"):
    """The first line: the world of one design. Nothing has happened in it yet."""

    design: str
    parameters: dict[str, Any]
    bundle: str
    provenance: dict[str, Any]
    limits: Limits


class GoOn(Struct, frozen=True, kw_only=True, tag_field="type", tag="go-on"):
    """Let everything happen that is due by then; `to_event`: up to the end of the first millisecond with an event."""

    until_ns: int
    to_event: bool = False


class Give(Struct, frozen=True, kw_only=True, tag_field="type", tag="give"):
    """Give a command to the group now."""

    command: GroupCommand


class Finish(Struct, frozen=True, kw_only=True, tag_field="type", tag="finish"):
    """Have the group finish, as time goes on."""


Asked = Begin | GoOn | Give | Finish


class Reply(Struct, frozen=True, kw_only=True):
    """How a world is now. Times are virtual, since it began."""

    at_ns: int
    next_ns: int | None = None  #: when something happens next
    changes: tuple[AnyChange, ...] = ()
    events: tuple[str, ...] = ()  #: of the last step to an event, in words: the first ones
    is_answered: bool = True  #: the last command
    refusal: str = ""  #: of the last command
    remark: str = ""  #: of the last command
    is_ready: bool = False  #: the group takes commands
    is_formed: bool = False  #: it has settled once
    ended: str | None = None  #: once the run has: why it failed, or ''
    more: bool = False
