"""How a looking server finds a leader (FastLeaderElection): everybody votes for the one whose log has come furthest.

A server that hears of a better vote takes it over and says so. Once a majority votes the same, it waits for better ones
for a while, and then the voters follow. One that comes late learns from the others whom they follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.simulation.zookeeper.model.messages import ElectionNotice, SendToPeer, ServerState, Vote

if TYPE_CHECKING:
    from comparison.simulation.zookeeper.model.messages import Effect

#: How long to wait for better votes (FastLeaderElection.finalizeWait), and at first for an answer at all.
FINALIZE_MS = 200
#: The longest pause between two notices. A real server waits up to a minute, but repeats its notice as soon as a
#: connection to a peer is there.
PAUSE_MS_MAX = 1600


class Election:
    """One server's search. `winner` is set once it is over."""

    def __init__(self, own: Vote, peers: tuple[int, ...], after_round: int, effects: list[Effect]) -> None:
        self.winner: int | None = None
        self.round = after_round + 1
        self.vote = own
        self._own = own
        self._peers = peers
        self._effects = effects
        self._votes = {own.server: own}
        #: Whom those vote for that are looking no more, and the one that leads.
        self._settled: dict[int, int] = {}
        self._leading: set[int] = set()
        self._decides_ms: int | None = None
        self._repeats_ms = 0
        self._pause_ms = FINALIZE_MS

    def start(self, now_ms: int) -> None:
        self._announce()
        self._repeats_ms = now_ms + self._pause_ms
        self._count(now_ms)

    def hear(self, now_ms: int, sender: int, notice: ElectionNotice) -> None:
        if notice.state is not ServerState.LOOKING:
            self._join(sender, notice)
            return
        if notice.round < self.round:
            self._tell(sender)
            return
        before, is_new = self.vote, sender not in self._votes
        if notice.round > self.round:
            self.round = notice.round
            self._votes.clear()
            self.vote = self._own
        self.vote = max(self.vote, notice.vote)
        self._votes[self._own.server] = self.vote
        self._votes[sender] = notice.vote
        if self.vote != before:
            self._decides_ms = None
            self._announce()
        elif is_new or notice.vote != self.vote:
            self._tell(sender)
        self._count(now_ms)

    def _join(self, sender: int, notice: ElectionNotice) -> None:
        self._settled[sender] = notice.vote.server
        if notice.state is ServerState.LEADING:
            self._leading.add(sender)
        leader = notice.vote.server
        followers = [server for server, followed in self._settled.items() if followed == leader]
        if leader in self._leading and len(followers) >= self._majority:
            self.round = max(self.round, notice.round)
            self.winner = leader

    def _count(self, now_ms: int) -> None:
        if list(self._votes.values()).count(self.vote) < self._majority:
            self._decides_ms = None
        elif self._decides_ms is None:
            self._decides_ms = now_ms + FINALIZE_MS

    @property
    def _majority(self) -> int:
        return (len(self._peers) + 1) // 2 + 1

    # -- time ----------------------------------------------------------------------------------------------------------

    @property
    def deadline_ms(self) -> int:
        return self._repeats_ms if self._decides_ms is None else min(self._decides_ms, self._repeats_ms)

    def tick(self, now_ms: int) -> None:
        if self._decides_ms is not None and now_ms >= self._decides_ms:
            self.winner = self.vote.server
        elif now_ms >= self._repeats_ms:
            self._announce()
            self._pause_ms = min(2 * self._pause_ms, PAUSE_MS_MAX)
            self._repeats_ms = now_ms + self._pause_ms

    def _announce(self) -> None:
        for peer in self._peers:
            self._tell(peer)

    def _tell(self, peer: int) -> None:
        notice = ElectionNotice(self.round, self.vote, ServerState.LOOKING)
        self._effects.append(SendToPeer(peer, 0, notice))
