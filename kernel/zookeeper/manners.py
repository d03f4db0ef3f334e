"""What a client does when its connection breaks: kazoo's manners, and those of ZooKeeper's Java client.

Kafka's ZooKeeper consumer shows the difference: how long a member that has expired keeps delivering, and what it sends
first when it is back. Source: ClientCnxn, ClientCnxnSocketNIO and StaticHostProvider of ZooKeeper 3.4.6, ZkClient 0.3.

- *Pauses before connecting again*: 100 ms after the socket was closed (ClientCnxnSocketNIO.cleanup), then up to a
  second at random unless no connection was ever made (SendThread.run), then another second if the next server is the
  one that it was connected to last (StaticHostProvider.next), as it always is with one server. kazoo tries again
  within 0.1 s. After an expiry ZkClient creates a new client, whose first attempt follows at once.
- *A frozen client drops what its socket holds*: it looks at the clock after it has read a frame's length and before it
  reads the frame, so if it heard nothing for two thirds of the session timeout, it disconnects first. Notifications
  that arrived while the process was stopped are never delivered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.clock import NS_PER_MS

if TYPE_CHECKING:
    from random import Random

    from kernel.clock import Clock

#: A server as kazoo names it: address and port.
Server = tuple[str, int]

_AFTER_A_FAILURE_S = 0.1
_AT_RANDOM_S = 1.0
_SAME_SERVER_S = 1.0


class KazooManners:
    """kazoo's. The thread that connects calls it, except for `heard` and `is_late`."""

    #: kazoo's own wait after a round over all servers (s), and the factor by which it grows, up to a second
    retry_delay_s: float = 0.05
    retry_backoff: float = 2

    def pause_s(self, server: Server) -> float:
        """How long to wait before the next attempt to connect, which goes to `server`."""
        return 0.0

    def opened(self) -> None:
        """The server has accepted a connection."""

    def greeted(self, session_timeout_ms: int) -> None:
        """The server has answered the greeting; 0: the session has expired."""

    def heard(self) -> None:
        """Bytes have arrived from the server."""

    def is_late(self) -> bool:
        """Whether to disconnect although there may be something to read."""
        return False


class JavaManners(KazooManners):
    """Those of the Java client; without `random`, it connects again as soon as kazoo does."""

    def __init__(self, random: Random | None, clock: Clock) -> None:
        if random is not None:
            self.retry_delay_s, self.retry_backoff = 0.02, 1
        self._random = random
        self._clock = clock
        self._heard_ns = 0  #: on the monotonic clock, which also runs while the process is stopped
        self._silence_max_ns = 0
        self._forget()

    def _forget(self) -> None:
        self._attempted = False
        self._opened = False
        self._next: Server | None = None
        self._last: Server | None = None  #: connected last; before that, the first server tried

    def pause_s(self, server: Server) -> float:
        if self._random is None:
            return 0.0
        pause_s = _AFTER_A_FAILURE_S if self._attempted else 0.0
        if self._opened:
            pause_s += _AT_RANDOM_S * self._random.random()
        if server == self._last:
            pause_s += _SAME_SERVER_S
        if self._last is None:
            self._last = server
        self._attempted, self._next = True, server
        return pause_s

    def opened(self) -> None:
        self._opened = True

    def greeted(self, session_timeout_ms: int) -> None:
        self.heard()
        self._silence_max_ns = session_timeout_ms * NS_PER_MS * 2 // 3
        if session_timeout_ms > 0:
            self._last = self._next
        else:
            self._forget()

    def heard(self) -> None:
        self._heard_ns = self._clock.monotonic_ns()

    def is_late(self) -> bool:
        return self._clock.monotonic_ns() - self._heard_ns > self._silence_max_ns
