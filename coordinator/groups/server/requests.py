"""What members ask of the coordinator's machine, and what the machine asks of the doing side; as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coordinator.protocol.server_commands import AwaitCommand, CommitOwned
    from kernel.assignors.subscription import MemberSubscription


@dataclass(frozen=True, slots=True, kw_only=True)
class Await:
    """AwaitCommand, with who sent it for DescribeGroups; `token` as in `coordinator.groups.requests`."""

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
    """Read the group's ids with a watch, and the data of each; report both, and again whenever the watch fires."""

    group_id: str


class ReadAgain(NamedTuple):
    """This member's data is not what was read: read it and report again."""

    group_id: str
    member_id: str


class ForgetIds(NamedTuple):
    """The group's ids are of no more interest here."""

    group_id: str


@dataclass(frozen=True, slots=True)
class Decide:
    """Assign the next generation by the broker's strategy, apart from the loop, and report what came of it."""

    group_id: str
    generation: int  #: the next
    sizes: tuple[tuple[str, int], ...]  #: (topic, partitions), of those that exist
    subscriptions: Mapping[str, MemberSubscription]


Look = WatchIds | ReadAgain | ForgetIds
