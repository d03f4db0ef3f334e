"""Effects that only members of KIP-848 groups ask for; the others are in `coordinator.membership.effects`.

Callbacks of the listener run inside polls, one at a time, in the order in which they were asked for, and each is
reported as CallbackReturned with its number, also if the listener raised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from coordinator.membership.effects import Effect

if TYPE_CHECKING:
    from kernel.values import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class SendHeartbeat(Effect):
    """Send ConsumerGroupHeartbeat; None (for the timeout: -1) is sent as null, for unchanged."""

    stamp: int
    member_id: str
    epoch: int
    instance_id: str | None = None
    rebalance_timeout_ms: int = -1
    topics: frozenset[str] | None = None
    regex: str | None = None  #: '' for none any more
    server_assignor: str | None = None
    owned: frozenset[TopicPartition] | None = None


@dataclass(frozen=True, slots=True)
class Callback(Effect):
    """Root of the effects that call the listener."""

    number: int
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class RevokePartitions(Callback):
    """Stop delivery of these at once, then call `revoked`; nothing to call for no partitions."""


@dataclass(frozen=True, slots=True)
class LosePartitions(Callback):
    """Stop delivery of these at once, then call `lost`; nothing to call for no partitions."""


@dataclass(frozen=True, slots=True)
class AssignPartitions(Callback):
    """Call `assigned` with these, which were added, even if there are none; then deliver from them."""


@dataclass(frozen=True, slots=True)
class RaiseError(Effect):
    """Raise in the application's next poll; the member goes on."""

    api: str
    error: str
