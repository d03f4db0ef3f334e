"""Requests of members, and the machine's requests to the service side, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coordinator.protocol.server_commands import AwaitCommand, CommitOwned
    from kernel.assignors.subscription import MemberSubscription


@dataclass(frozen=True, slots=True, kw_only=True)
class Await:
    """AwaitCommand, with its sender for DescribeGroups; `token` as in `coordinator.groups.requests`."""

    token: int
    asked: AwaitCommand
    client_id: str = ""
    client_host: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedCommit:
    """CommitOwned of partitions that exist."""

    token: int
    commit: CommitOwned


class WatchIds(NamedTuple):
    """Read the group's ids with a watch, and each id's data; report them now and whenever the watch fires."""

    group_id: str


class ReadAgain(NamedTuple):
    """Read this member's data again, which has changed, and report."""

    group_id: str
    member_id: str


class ForgetIds(NamedTuple):
    """Stop watching the group's ids."""

    group_id: str


@dataclass(frozen=True, slots=True)
class Decide:
    """Run the broker's strategy for the next generation, off the event loop, and report the result."""

    group_id: str
    generation: int  #: the next
    sizes: tuple[tuple[str, int], ...]  #: (topic, partition count) of existing topics
    subscriptions: Mapping[str, MemberSubscription]


Look = WatchIds | ReadAgain | ForgetIds
