"""Requests of the server design's members, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coordinator.protocol.server.commands import AwaitCommand, CommitOwned


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
