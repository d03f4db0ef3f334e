"""One ZooKeeper server: events and the time in, effects out.

Events are the methods; each returns what the world has to do, in order: frames to clients, hang-ups, messages to the
other servers. The world must call `tick` when `deadline_ms` has come, and deliver what goes from one end to another in
order. It may delay messages, lose them together with all later ones of a connection, and stop a server for a while.
Frames to a client and the hang-up behind them are one direction of one connection.

What is left out:

- *Access control*: every znode is open to everybody. Authentication, quotas, and encrypted connections.
- *Znodes* with a time to live, containers, `setACL`, persistent and recursive watches, `getEphemerals`, `reconfig`.
- *setWatches*: our clients do not send it (kazoo drops its watches on a disconnect).
- *Local sessions, observers, read-only servers*, and more than one connection's worth of throttling.
- *Snapshots and disks*: the log is whole and in memory, and survives a server's end. A transaction is on the disk as
  soon as it is there, so acknowledgements take no time but the network's.
- *The election's details*: notices that pass each other, its quorum verifiers, and connections that are made twice.
- *The order of names* in the answer to getChildren (a hash set's): here the order of creation. Clients sort.
- *A session that others end*, by its id or because it has expired, hears of its own ephemeral znodes before its
  connection is closed. A real server writes and closes in two threads, so there it does about as often as not.
- *A read* checks no path: a malformed one is not there.
- *zkdigest, latencies* and all other figures of `mntr` than those in `four_letter_words.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from comparison.simulation.zookeeper.model.clients import ClientService
from comparison.simulation.zookeeper.model.election import Election
from comparison.simulation.zookeeper.model.follower import Follower
from comparison.simulation.zookeeper.model.history import History
from comparison.simulation.zookeeper.model.leader import Leader, Phase
from comparison.simulation.zookeeper.model.messages import (
    ElectionNotice,
    FollowerInfo,
    NotLeading,
    SendToPeer,
    ServerState,
    ToFollower,
    ToLeader,
    Vote,
)

if TYPE_CHECKING:
    from comparison.simulation.zookeeper.model.messages import Effect, PeerMessage
    from comparison.simulation.zookeeper.model.protocol import FromClient
    from comparison.simulation.zookeeper.model.sessions import Limits


@dataclass(frozen=True, slots=True)
class Identity:
    """A server's number and those of the others; none for a server alone."""

    number: int
    peers: tuple[int, ...] = ()


class Server:
    """See the module. `start` it first; after `stop` it can be started again, with the same history."""

    def __init__(self, identity: Identity, limits: Limits) -> None:
        self.identity = identity
        self.history = History()
        self._limits = limits
        self._effects: list[Effect] = []
        self.clients = ClientService(identity.number, self.history.tree, limits, self._effects)
        self._role: Leader | Follower | Election | None = None
        self._rounds = 0  #: of elections
        self._links = 0  #: connections to leaders

    # -- what it is ----------------------------------------------------------------------------------------------------

    @property
    def mode(self) -> str | None:
        """standalone, leader or follower; None while it does not serve."""
        match self._role:
            case Leader(phase=Phase.BROADCAST):
                return "leader" if self.identity.peers else "standalone"
            case Follower(is_serving=True):
                return "follower"
        return None

    @property
    def deadline_ms(self) -> int | None:
        """When to call `tick` next, unless another event comes first."""
        return None if self._role is None else self._role.deadline_ms

    # -- events --------------------------------------------------------------------------------------------------------

    def start(self, now_ms: int) -> list[Effect]:
        """The server's process begins, and with it its counters; writes come back with the log that it replays."""
        self.clients.received = self.clients.sent = 0
        self.history.tree.reads.clear()
        if self.identity.peers:
            self._look(now_ms)
        else:
            self._lead(now_ms)
        return self._done(now_ms)

    def stop(self) -> None:
        """The process ends, and with it all its connections; the world has to tell their other ends."""
        self._role = None
        self.clients.close()
        self._effects.clear()

    def receive(self, now_ms: int, connection: int, frame: FromClient) -> list[Effect]:
        """A client has sent a frame. The world gives each new connection a new number."""
        self.clients.receive(now_ms, connection, frame)
        return self._done(now_ms)

    def disconnected(self, connection: int) -> None:
        """A client's connection has ended, other than by this server."""
        self.clients.disconnected(connection)

    def hear(self, now_ms: int, sender: int, link: int, message: PeerMessage) -> list[Effect]:
        """Another server has sent a message."""
        role = self._role
        if isinstance(message, ElectionNotice):
            self._noticed(now_ms, sender, message)
        elif isinstance(message, ToLeader):
            if isinstance(role, Leader):
                role.hear(now_ms, sender, link, message)
            elif isinstance(message, FollowerInfo):
                self._effects.append(SendToPeer(sender, link, NotLeading()))
        elif isinstance(message, ToFollower) and isinstance(role, Follower) and role.leader == sender:
            role.hear(now_ms, link, message)
        return self._done(now_ms)

    def peer_lost(self, now_ms: int, peer: int) -> list[Effect]:
        """The connections with another server have been closed, by its end or by the network."""
        role = self._role
        if isinstance(role, Follower) and role.leader == peer:
            self._look(now_ms)
        elif isinstance(role, Leader):
            role.lost(peer)
        return self._done(now_ms)

    def tick(self, now_ms: int) -> list[Effect]:
        """`deadline_ms` has come."""
        role = self._role
        if isinstance(role, Leader | Follower):
            if not role.tick(now_ms):
                self._look(now_ms)
        elif isinstance(role, Election):
            role.tick(now_ms)
        return self._done(now_ms)

    # -- roles ---------------------------------------------------------------------------------------------------------

    def _done(self, now_ms: int) -> list[Effect]:
        if isinstance(self._role, Election) and (winner := self._role.winner) is not None:
            self._rounds = self._role.round
            if winner == self.identity.number:
                self._lead(now_ms)
            else:
                self._follow(now_ms, winner)
        effects = self._effects.copy()
        self._effects.clear()
        return effects

    def _look(self, now_ms: int) -> None:
        self.clients.close()
        history = self.history
        own = Vote(history.current_epoch, history.last_zxid, self.identity.number)
        self._role = election = Election(own, self.identity.peers, self._rounds, self._effects)
        self._rounds = election.round
        election.start(now_ms)

    def _lead(self, now_ms: int) -> None:
        number, peers = self.identity.number, self.identity.peers
        self._role = leader = Leader(number, peers, self._limits, self.history, self.clients, self._effects)
        leader.start(now_ms)

    def _follow(self, now_ms: int, leader: int) -> None:
        self._links += 1
        self._role = follower = Follower(leader, self._links, self._limits, self.history, self.clients, self._effects)
        follower.start(now_ms)

    def _noticed(self, now_ms: int, sender: int, notice: ElectionNotice) -> None:
        number, epoch = self.identity.number, self.history.current_epoch
        match self._role:
            case Election():
                self._role.hear(now_ms, sender, notice)
                return
            case Leader():
                mine = ElectionNotice(self._rounds, Vote(epoch, 0, number), ServerState.LEADING)
            case Follower(leader=leader):
                mine = ElectionNotice(self._rounds, Vote(epoch, 0, leader), ServerState.FOLLOWING)
            case _:
                return
        if notice.state is ServerState.LOOKING:
            self._effects.append(SendToPeer(sender, 0, mine))
