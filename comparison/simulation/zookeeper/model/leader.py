"""The leader of an ensemble, or a server alone: orders writes, commits what a majority has, keeps the sessions.

It begins with followers enough for a majority: they get what their logs lack, and only then it serves, in a new epoch.
A write is decided, appended and proposed; once a majority has it in its log, all apply it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING

from comparison.simulation.zookeeper.model.history import COUNTER_BITS
from comparison.simulation.zookeeper.model.messages import (
    Ack,
    AckLeader,
    AskSync,
    Commit,
    FollowerInfo,
    Forward,
    LeaderPing,
    Proposal,
    Revalidate,
    Revalidated,
    SendToPeer,
    Synced,
    Synchronize,
    ToFollower,
    ToLeader,
    Touched,
    UpToDate,
)
from comparison.simulation.zookeeper.model.preparing import Preparation
from comparison.simulation.zookeeper.model.protocol import CloseSession, CreateSession
from comparison.simulation.zookeeper.model.sessions import Limits, SessionTracker
from comparison.simulation.zookeeper.model.tree import CloseSessionTxn, Origin, Transaction

if TYPE_CHECKING:
    from comparison.simulation.zookeeper.model.clients import ClientService
    from comparison.simulation.zookeeper.model.history import History
    from comparison.simulation.zookeeper.model.messages import Effect
    from comparison.simulation.zookeeper.model.protocol import Write


class Phase(Enum):
    """How far a new leader has come."""

    DISCOVERY = auto()  #: waits for a majority to follow it
    SYNCHRONIZATION = auto()  #: its epoch is chosen; followers take over its log
    BROADCAST = auto()  #: a majority has its log; it serves


@dataclass(slots=True)
class _Follower:
    link: int
    accepted_epoch: int
    last_zxid: int
    heard_ms: int
    is_synced: bool = False


@dataclass(slots=True)
class _Outstanding:
    """A proposal that is not committed yet, and the syncs that wait for it."""

    txn: Transaction
    acks: set[int]
    syncs: list[Origin] = field(default_factory=list)


class Leader:
    """See the module. `tick` returns False once it has lost its majority."""

    def __init__(
        self,
        number: int,
        peers: tuple[int, ...],
        limits: Limits,
        history: History,
        clients: ClientService,
        effects: list[Effect],
    ) -> None:
        self.phase = Phase.DISCOVERY
        self.tracker = SessionTracker(limits.tick_ms)
        self._number = number
        self._majority = (len(peers) + 1) // 2 + 1
        self._limits = limits
        self._history = history
        self._clients = clients
        self._effects = effects
        self._preparation = Preparation(history.tree, self.tracker.check)
        self._followers: dict[int, _Follower] = {}
        self._outstanding: deque[_Outstanding] = deque()
        self._epoch = 0
        self._zxid = 0  #: of the last write
        self._begins_by_ms = 0
        self._next_ping_ms = 0

    def start(self, now_ms: int) -> None:
        self._begins_by_ms = now_ms + self._limits.init_limit * self._limits.tick_ms
        self._discover(now_ms)

    # -- followers -----------------------------------------------------------------------------------------------------

    def hear(self, now_ms: int, sender: int, link: int, message: ToLeader) -> None:
        if isinstance(message, FollowerInfo):
            self._followers[sender] = follower = _Follower(link, message.accepted_epoch, message.last_zxid, now_ms)
            if self.phase is Phase.DISCOVERY:
                self._discover(now_ms)
            else:
                self._synchronize(sender, follower)
            return
        found = self._followers.get(sender)
        if found is None or found.link != link:
            return  # from an earlier connection
        found.heard_ms = now_ms
        match message:
            case AckLeader(_, zxid):
                self._synced(now_ms, sender, found, zxid)
            case Ack(zxid):
                self._acknowledged(now_ms, sender, zxid)
            case Forward(origin, session_id, write):
                self.submit(now_ms, origin, session_id, write)
            case AskSync(origin):
                self.sync(origin)
            case Revalidate(connection, session_id, timeout_ms):
                is_valid = self._revalidated(now_ms, sender, session_id, timeout_ms)
                self._send(sender, Revalidated(connection, session_id, is_valid))
            case Touched(sessions):
                for session_id, timeout_ms in sessions.items():
                    self.tracker.touch(session_id, timeout_ms, now_ms)

    def lost(self, peer: int) -> None:
        """A follower has closed its connection."""
        self._followers.pop(peer, None)

    def _discover(self, now_ms: int) -> None:
        if len(self._followers) + 1 < self._majority:
            return
        epochs = [self._history.accepted_epoch, *(one.accepted_epoch for one in self._followers.values())]
        self._epoch = self._history.accepted_epoch = max(epochs) + 1
        # A server alone counts on.
        self._zxid = self._epoch << COUNTER_BITS if self._majority > 1 else self._history.tree.applied
        self.phase = Phase.SYNCHRONIZATION
        for number, follower in self._followers.items():
            self._synchronize(number, follower)
        self._begin(now_ms)

    def _synchronize(self, number: int, follower: _Follower) -> None:
        since = self._history.shared_with(follower.last_zxid)
        self._send(number, Synchronize(self._epoch, since, self._history.after(since)))

    def _synced(self, now_ms: int, number: int, follower: _Follower, zxid: int) -> None:
        follower.is_synced = True
        if self.phase is Phase.BROADCAST:
            self._send(number, UpToDate(self._history.tree.applied))
            self._acknowledged(now_ms, number, zxid)
        else:
            self._begin(now_ms)

    def _begin(self, now_ms: int) -> None:
        """With a majority that has all of the log, all of it is committed, and time begins anew for all sessions."""
        synced = [number for number, follower in self._followers.items() if follower.is_synced]
        if len(synced) + 1 < self._majority:
            return
        self.phase = Phase.BROADCAST
        self._history.current_epoch = self._epoch
        for txn in self._history.after(self._history.tree.applied):
            self._history.tree.apply(txn)
        for session_id, timeout_ms in self._history.tree.sessions.items():
            self.tracker.track(session_id, timeout_ms, now_ms)
        self._next_ping_ms = now_ms + self._limits.tick_ms // 2
        for number in synced:
            self._send(number, UpToDate(self._history.tree.applied))
        self._clients.serve(now_ms, self)

    def _has_majority(self, now_ms: int) -> bool:
        """Whether the majority was heard of within the limit."""
        limit_ms = self._limits.sync_limit * self._limits.tick_ms
        heard = [one for one in self._followers.values() if one.is_synced and now_ms - one.heard_ms < limit_ms]
        return len(heard) + 1 >= self._majority

    # -- writes --------------------------------------------------------------------------------------------------------

    def submit(self, now_ms: int, origin: Origin | None, session_id: int, write: Write) -> None:
        """Decide a write and propose it; refused ones, too, so that they are answered in their turn."""
        self._zxid += 1
        owner = origin.server if origin is not None else 0
        if isinstance(write, CreateSession):
            self.tracker.track(session_id, write.timeout_ms, now_ms, owner)
        change = self._preparation.decide(self._zxid, session_id, owner, write)
        if isinstance(write, CloseSession):
            self.tracker.close(session_id)
        txn = Transaction(self._zxid, now_ms, session_id, change, origin)
        self._history.append(txn)
        if self._majority == 1:
            self._apply(now_ms, txn)
            return
        self._outstanding.append(_Outstanding(txn, {self._number}))
        for number in self._followers:
            self._send(number, Proposal(txn))

    def _acknowledged(self, now_ms: int, follower: int, zxid: int) -> None:
        """A follower's log has everything up to there."""
        for proposal in self._outstanding:
            if proposal.txn.zxid > zxid:
                break
            proposal.acks.add(follower)
        while self._outstanding and len(self._outstanding[0].acks) >= self._majority:
            proposal = self._outstanding.popleft()
            for number in self._followers:
                self._send(number, Commit(proposal.txn.zxid))
            self._apply(now_ms, proposal.txn)
            for origin in proposal.syncs:
                self._answer_sync(origin)

    def _apply(self, now_ms: int, txn: Transaction) -> None:
        applied = self._history.tree.apply(txn)
        self._preparation.applied(txn.zxid)
        if isinstance(txn.change, CloseSessionTxn):
            self.tracker.remove(txn.session_id)
        self._clients.applied(now_ms, txn, applied)

    def sync(self, origin: Origin) -> None:
        if self._outstanding:
            self._outstanding[-1].syncs.append(origin)
        else:
            self._answer_sync(origin)

    def _answer_sync(self, origin: Origin) -> None:
        if origin.server == self._number:
            self._clients.completed(0, origin)
        else:
            self._send(origin.server, Synced(origin))

    # -- sessions ------------------------------------------------------------------------------------------------------

    def touch(self, now_ms: int, session_id: int, timeout_ms: int) -> bool:
        return self.tracker.touch(session_id, timeout_ms, now_ms)

    def revalidate(self, now_ms: int, connection: int, session_id: int, timeout_ms: int) -> None:
        is_valid = self._revalidated(now_ms, self._number, session_id, timeout_ms)
        self._clients.revalidated(now_ms, connection, session_id, is_valid=is_valid)

    def _revalidated(self, now_ms: int, owner: int, session_id: int, timeout_ms: int) -> bool:
        if not self.tracker.touch(session_id, timeout_ms, now_ms):
            return False
        self.tracker.move(session_id, owner)
        return True

    # -- time ----------------------------------------------------------------------------------------------------------

    @property
    def deadline_ms(self) -> int | None:
        if self.phase is not Phase.BROADCAST:
            return self._begins_by_ms
        deadlines = [self.tracker.deadline_ms, self._next_ping_ms if self._majority > 1 else None]
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def tick(self, now_ms: int) -> bool:
        if self.phase is not Phase.BROADCAST:
            return now_ms < self._begins_by_ms
        for session_id in self.tracker.expire(now_ms):
            self.submit(now_ms, None, session_id, CloseSession())
        if now_ms < self._next_ping_ms:
            return True
        # Between two pings, a follower may be lost and come back (Leader.lead).
        self._next_ping_ms = now_ms + self._limits.tick_ms // 2
        for number in self._followers:
            self._send(number, LeaderPing())
        return self._has_majority(now_ms)

    def _send(self, number: int, message: ToFollower) -> None:
        if (follower := self._followers.get(number)) is not None:
            self._effects.append(SendToPeer(number, follower.link, message))
