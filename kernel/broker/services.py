"""What a part that is mounted on the broker gets to work with; the coordinator is such a part."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from kernel.broker.apis.transaction_verification import Verification
from kernel.broker.loop.turns import Turns
from kernel.broker.server.handlers import HandlerTable

if TYPE_CHECKING:
    from kernel.broker.cluster.cluster_view import ClusterView, TopicView
    from kernel.broker.settings.configuration import BrokerConfig
    from kernel.broker.storage.logs import PartitionLog
    from kernel.broker.storage.storage import Storage
    from kernel.clock import Clock
    from kernel.trace.writer import Tracer
    from kernel.values import TopicPartition


class Logs(Protocol):
    """The partition logs that this broker leads; None for what it does not lead."""

    def get(self, tp: TopicPartition, /) -> PartitionLog | None: ...


class _NoLogs:
    """Of a broker that leads no data."""

    def get(self, _tp: TopicPartition, /) -> None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerServices:
    """Handed to each mounted part once, before the cluster is joined: the moment to subscribe to leadership.

    `storage` is started by then; `cluster` is not, its snapshot is empty until it is.
    """

    config: BrokerConfig
    node_id: int
    zookeeper: str  #: the connect string, for sessions of a part's own
    storage: Storage
    cluster: ClusterView  #: leadership of this broker, and the metadata of all
    tracer: Tracer
    clock: Clock
    #: Create a topic that Kafka creates by itself (`__consumer_offsets`, with the settings made for it) unless it is
    #: there, and wait a moment for it; raises as `ClusterView.create_topic`, except for `TopicExists`.
    create_internal_topic: Callable[[str], Awaitable[TopicView | None]]
    #: Register what is to be awaited when the broker stops, before the cluster is left; the last one first.
    on_stop: Callable[[Callable[[], Awaitable[None]]], None]
    #: Where what is long, or much, is done in pieces: shared by all that the broker's loop does.
    turns: Turns = field(default_factory=Turns)
    #: The data that is led here: a transaction's markers go there.
    logs: Logs = field(default_factory=_NoLogs)
    #: Where a coordinator of transactions says that it can be asked.
    verification: Verification = field(default_factory=Verification)


Mount = Callable[[BrokerServices], HandlerTable]
