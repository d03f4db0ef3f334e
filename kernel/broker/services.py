"""What the broker provides to parts mounted on it, such as the coordinator."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from kernel.broker.apis.transaction_verification import Verification
from kernel.broker.server.handlers import HandlerTable

if TYPE_CHECKING:
    from kernel.broker.cluster.cluster_view import TopicView
    from kernel.broker.cluster.leadership import Cluster
    from kernel.broker.loop.turns import Turns
    from kernel.broker.settings.configuration import BrokerConfig
    from kernel.broker.storage.logs import PartitionLog
    from kernel.broker.storage.storage import Storage
    from kernel.runtime import Runtime
    from kernel.trace.writer import Tracer
    from kernel.values import TopicPartition
    from kernel.zookeeper.session import ZooKeeperSession


class Logs(Protocol):
    """The partition logs that this broker leads; None for all others."""

    def get(self, tp: TopicPartition, /) -> PartitionLog | None: ...


class _NoLogs:
    """Logs of a broker that leads no data."""

    def get(self, _tp: TopicPartition, /) -> None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerServices:
    """Handed to each mounted part once, before the broker joins the cluster, so that the part can subscribe.

    `storage` has been started by then; `cluster` has not, and its snapshot is empty.
    """

    config: BrokerConfig
    node_id: int
    zookeeper: str  #: the connect string, for a part's own sessions
    storage: Storage
    cluster: Cluster  #: leadership of this broker, and the metadata of all
    tracer: Tracer
    runtime: Runtime
    session: Callable[[], ZooKeeperSession]  #: the broker's own, once it has joined the cluster
    #: Create a topic that Kafka creates by itself (`__consumer_offsets`, with the settings made for it) unless it is
    #: there, and wait a moment for it; raises as `TopicWriter.create`, except for `TopicExists`.
    create_internal_topic: Callable[[str], Awaitable[TopicView | None]]
    #: Register a callback to await when the broker stops, before it leaves the cluster; last one first.
    on_stop: Callable[[Callable[[], Awaitable[None]]], None]
    #: The broker's queue for bulk work.
    turns: Turns
    #: What a group has of `GROUP_CONFIGS`, as text.
    group_configs: Callable[[str], Mapping[str, str]] = lambda _: {}
    #: Where to append a transaction's markers.
    logs: Logs = field(default_factory=_NoLogs)
    #: Where a transaction coordinator registers its verifier.
    verification: Verification = field(default_factory=Verification)


Mount = Callable[[BrokerServices], HandlerTable]
