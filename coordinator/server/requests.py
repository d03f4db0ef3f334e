"""What members ask of the coordinator's machine, and what the machine asks of ZooKeeper; as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from coordinator.server.commands import AwaitCommand, CommitOwned


@dataclass(frozen=True, slots=True, kw_only=True)
class Await:
    """AwaitCommand, with who sent it for DescribeGroups; `token` as in `coordinator.group.requests`."""

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


Look = WatchIds | ReadAgain | ForgetIds
