"""A follower: takes over its leader's log, acknowledges proposals, applies what is committed (Follower, Learner)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from comparison.simulation.zookeeper.model.messages import (
    Ack,
    AckLeader,
    AskSync,
    Commit,
    FollowerInfo,
    Forward,
    LeaderPing,
    NotLeading,
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

if TYPE_CHECKING:
    from comparison.simulation.zookeeper.model.clients import ClientService
    from comparison.simulation.zookeeper.model.history import History
    from comparison.simulation.zookeeper.model.messages import Effect
    from comparison.simulation.zookeeper.model.protocol import Write
    from comparison.simulation.zookeeper.model.sessions import Limits
    from comparison.simulation.zookeeper.model.tree import Origin, Transaction

#: Until it connects to its leader again, which did not lead yet (zookeeper.leaderConnectDelayDuringRetryMs).
RETRY_MS = 100


class Follower:
    """See the module. `tick` returns False once it gives its leader up."""

    def __init__(
        self,
        leader: int,
        link: int,
        limits: Limits,
        history: History,
        clients: ClientService,
        effects: list[Effect],
    ) -> None:
        self.leader = leader
        self.is_serving = False
        self._link = link
        self._limits = limits
        self._history = history
        self._clients = clients
        self._effects = effects
        self._unapplied: deque[Transaction] = deque()
        self._touched: dict[int, int] = {}
        self._retry_ms: int | None = None
        self._gives_up_ms = 0

    def start(self, now_ms: int) -> None:
        self._gives_up_ms = now_ms + self._limits.init_limit * self._limits.tick_ms
        self._connect()

    def _connect(self) -> None:
        self._retry_ms = None
        self._send(FollowerInfo(self._history.accepted_epoch, self._history.last_zxid))

    def hear(self, now_ms: int, link: int, message: ToFollower) -> None:
        if link != self._link:
            return  # from an earlier connection
        if isinstance(message, NotLeading):
            self._retry_ms = now_ms + RETRY_MS
            return
        limit = self._limits.sync_limit if self.is_serving else self._limits.init_limit
        self._gives_up_ms = now_ms + limit * self._limits.tick_ms
        match message:
            case Synchronize(epoch, since, transactions):
                self._take_over(epoch, since, transactions)
            case UpToDate(zxid):
                self._commit(now_ms, zxid)
                self.is_serving = True
                self._clients.serve(now_ms, self)
            case Proposal(txn):
                self._history.append(txn)
                self._unapplied.append(txn)
                self._send(Ack(txn.zxid))
            case Commit(zxid):
                self._commit(now_ms, zxid)
            case Synced(origin):
                self._clients.completed(now_ms, origin)
            case Revalidated(connection, session_id, is_valid):
                self._clients.revalidated(now_ms, connection, session_id, is_valid=is_valid)
            case LeaderPing():
                touched, self._touched = self._touched, {}
                self._send(Touched(touched))

    def _take_over(self, epoch: int, since: int, transactions: tuple[Transaction, ...]) -> None:
        history = self._history
        history.truncate(since)
        for txn in transactions:
            history.append(txn)
        history.accepted_epoch = history.current_epoch = epoch
        self._unapplied = deque(history.after(history.tree.applied))
        self._send(AckLeader(epoch, history.last_zxid))

    def _commit(self, now_ms: int, zxid: int) -> None:
        while self._unapplied and self._unapplied[0].zxid <= zxid:
            txn = self._unapplied.popleft()
            self._clients.applied(now_ms, txn, self._history.tree.apply(txn))

    # -- for its clients -----------------------------------------------------------------------------------------------

    def submit(self, _now_ms: int, origin: Origin, session_id: int, write: Write) -> None:
        self._send(Forward(origin, session_id, write))

    def sync(self, origin: Origin) -> None:
        self._send(AskSync(origin))

    def touch(self, _now_ms: int, session_id: int, timeout_ms: int) -> bool:
        """It does not know which sessions have ended: it goes on answering reads."""
        self._touched[session_id] = timeout_ms
        return True

    def revalidate(self, _now_ms: int, connection: int, session_id: int, timeout_ms: int) -> None:
        self._send(Revalidate(connection, session_id, timeout_ms))

    # -- time ----------------------------------------------------------------------------------------------------------

    @property
    def deadline_ms(self) -> int:
        return self._gives_up_ms if self._retry_ms is None else min(self._retry_ms, self._gives_up_ms)

    def tick(self, now_ms: int) -> bool:
        if self._retry_ms is not None and now_ms >= self._retry_ms:
            self._connect()
        return now_ms < self._gives_up_ms

    def _send(self, message: ToLeader) -> None:
        self._effects.append(SendToPeer(self.leader, self._link, message))
