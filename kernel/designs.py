"""The designs that are compared: one row each, in the order of their history.

Commands, scenarios, pipeline and report take names, order and traits from here. How a design's consumer is built is in
`comparison.consumers`; its timers, points and words, in `comparison.designs`; which scenarios apply to it, in the
catalogue. What a classic design differs in is in its row.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

ZOOKEEPER = "zookeeper"
SERVER = "server"
EAGER = "eager"
STATIC = "static"
COOPERATIVE = "cooperative"
DELAYED = "delayed"
CONSUMER = "consumer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """One way to assign partitions to the members of a group."""

    name: str
    package: str  #: the backend that implements it
    #: A broker coordinates the group and stores its offsets; otherwise both are in ZooKeeper.
    coordinator: bool = True
    #: Members send JoinGroup and SyncGroup.
    classic: bool = False
    #: The only strategy of its members; '' if their settings name one.
    strategy: str = ""
    #: A rebalance stops only the partitions that move.
    incremental: bool = False
    #: Every member has a ZooKeeper session, and is removed when it expires.
    zookeeper_sessions: bool = False
    #: The streams of a process are threads of one member; otherwise each stream is a member.
    streams_are_threads: bool = False
    #: A member that closes stays in the group until its session times out, so that it can return (KIP-345).
    static_membership: bool = False
    #: The leader waits before it reassigns a lost member's partitions (KIP-415). Losing the leader ends the wait.
    delays_reassignment: bool = False
    #: Heartbeats carry each member's assignment (KIP-848): members take it over one by one, each at its own epoch, and
    #: nobody waits for all. How long a session lasts, and how often members heartbeat, are settings of the brokers.
    reconciles: bool = False
    #: A running member can change its subscription.
    resubscribes: bool = True

    @property
    def stepwise(self) -> bool:
        """Whether every partition may have an owner before each has its last one.

        Members that reconcile give up and take over one by one; Connect's leader pauses between two rounds that revoke.
        """
        return self.reconciles or self.delays_reassignment


DESIGNS: Mapping[str, Design] = MappingProxyType(
    {
        design.name: design
        for design in (
            # Kafka 0.8.2's high-level consumer.
            Design(
                name=ZOOKEEPER,
                package="zkconsumer",
                coordinator=False,
                zookeeper_sessions=True,
                streams_are_threads=True,
                resubscribes=False,
            ),
            # The coordinator that was designed in 2012 and never released.
            Design(name=SERVER, package="coordinator", zookeeper_sessions=True),
            # Kafka 0.9.
            Design(name=EAGER, package="coordinator", classic=True),
            # Kafka 2.3, KIP-345.
            Design(name=STATIC, package="coordinator", classic=True, static_membership=True),
            # Kafka 2.4, KIP-429.
            Design(
                name=COOPERATIVE,
                package="coordinator",
                classic=True,
                strategy="cooperative-sticky",
                incremental=True,
            ),
            # Kafka Connect 2.3, KIP-415.
            Design(
                name=DELAYED,
                package="coordinator",
                classic=True,
                strategy="delayed",
                incremental=True,
                delays_reassignment=True,
            ),
            # Kafka 4.0, KIP-848.
            Design(name=CONSUMER, package="coordinator", incremental=True, reconciles=True),
        )
    }
)

DESIGN_NAMES = tuple(DESIGNS)
COORDINATED = tuple(name for name, design in DESIGNS.items() if design.coordinator)
CLASSIC = tuple(name for name, design in DESIGNS.items() if design.classic)
INCREMENTAL = tuple(name for name, design in DESIGNS.items() if design.incremental)
CLASSIC_INCREMENTAL = tuple(name for name in INCREMENTAL if name in CLASSIC)
RECONCILING = tuple(name for name, design in DESIGNS.items() if design.reconciles)
#: All members stop everything inside poll and wait for the last of them. A member of the server design stops
#: everything too, but in the background: it waits for no poll.
ALL_AT_ONCE = tuple(name for name in CLASSIC if name not in INCREMENTAL)
