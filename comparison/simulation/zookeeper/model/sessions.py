"""The leader's clock of sessions: who is alive, by which server each came last, and whose time is over.

Expiry is rounded up to the next tick, as SessionTrackerImpl and ExpiryQueue do it: a session ends between its timeout
and one tick later. Touching it moves it to a later tick, so a tick that comes looks only at its own sessions.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from comparison.simulation.zookeeper.model.java import random_bytes
from comparison.simulation.zookeeper.model.protocol import Code

#: ZooKeeperServer.superSecret: a password follows from its session id.
_SECRET = 0xB3415C00
_PASSWORD_BYTES = 16
_LOW_64 = (1 << 64) - 1


def password_of(session_id: int) -> bytes:
    """ZooKeeperServer.generatePasswd."""
    return random_bytes(session_id ^ _SECRET, _PASSWORD_BYTES)


def first_session_id(server: int, now_ms: int) -> int:
    """The id of a server's first session after its start, signed (SessionTrackerImpl.initializeNextSessionId)."""
    number = (now_ms << 24 & _LOW_64) >> 8 | server << 56
    return number - (1 << 64) if number >> 63 else number


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The settings of servers on which sessions and quorums depend (zoo.cfg), with the lab's values."""

    tick_ms: int = 500
    min_session_ms: int = 200
    max_session_ms: int = 60_000
    init_limit: int = 10  #: ticks that a follower may take to follow its leader
    sync_limit: int = 6  #: ticks of silence between a leader and a follower

    def granted(self, timeout_ms: int) -> int:
        return min(max(timeout_ms, self.min_session_ms), self.max_session_ms)


@dataclass(slots=True)
class _Tracked:
    timeout_ms: int
    owner: int
    expires_ms: int = 0
    is_closing: bool = False


@dataclass(slots=True)
class SessionTracker:
    """See the module. Owners are the numbers of servers."""

    tick_ms: int
    _tracked: dict[int, _Tracked] = field(default_factory=dict)
    #: Session ids by the tick at which they expire.
    _ticks: dict[int, dict[int, None]] = field(default_factory=dict)

    def track(self, session_id: int, timeout_ms: int, now_ms: int, owner: int = 0) -> None:
        """A session begins, or is known from before this leader's time."""
        self._tracked[session_id] = _Tracked(timeout_ms, owner)
        self._put_off(session_id, timeout_ms, now_ms)

    def touch(self, session_id: int, timeout_ms: int, now_ms: int) -> bool:
        """A sign of life. Returns whether there is such a session."""
        tracked = self._tracked.get(session_id)
        if tracked is None or tracked.is_closing:
            return False
        self._put_off(session_id, timeout_ms, now_ms)
        return True

    def check(self, session_id: int, owner: int) -> Code:
        """Whether the session may write over this server."""
        tracked = self._tracked.get(session_id)
        if tracked is None or tracked.is_closing:
            return Code.SESSION_EXPIRED
        if not tracked.owner:
            tracked.owner = owner
        return Code.OK if tracked.owner == owner else Code.SESSION_MOVED

    def move(self, session_id: int, owner: int) -> None:
        """Its client has connected to this server."""
        self._tracked[session_id].owner = owner

    def close(self, session_id: int) -> None:
        """Its end is decided."""
        if (tracked := self._tracked.get(session_id)) is not None:
            tracked.is_closing = True

    def remove(self, session_id: int) -> None:
        """Its end is in the tree."""
        if (tracked := self._tracked.pop(session_id, None)) is not None:
            self._leave_tick(session_id, tracked.expires_ms)

    @property
    def deadline_ms(self) -> int | None:
        """When the next session may expire."""
        return min(self._ticks, default=None)

    def expire(self, now_ms: int) -> list[int]:
        """The sessions whose time is over; they are closing from now on."""
        over = [
            session_id
            for tick in sorted(tick for tick in self._ticks if tick <= now_ms)
            for session_id in self._ticks.pop(tick)
        ]
        for session_id in over:
            self._tracked[session_id].is_closing = True
        return over

    def _put_off(self, session_id: int, timeout_ms: int, now_ms: int) -> None:
        tracked = self._tracked[session_id]
        expires_ms = ((now_ms + timeout_ms) // self.tick_ms + 1) * self.tick_ms
        if expires_ms == tracked.expires_ms:
            return
        self._leave_tick(session_id, tracked.expires_ms)
        tracked.expires_ms = expires_ms
        self._ticks.setdefault(expires_ms, {})[session_id] = None

    def _leave_tick(self, session_id: int, expires_ms: int) -> None:
        if (tick := self._ticks.get(expires_ms)) is not None:
            tick.pop(session_id, None)
            if not tick:
                del self._ticks[expires_ms]
