"""The network between nodes: connections as their operating systems hold them, with a delay that the seed draws.

Bytes of one direction arrive in order. What has arrived waits in the receiver's buffer, also while it is frozen, and
a sender whose receiver does not read can send no more than a window. A node that ends closes its connections. All
nodes have the address 127.0.0.1, so a port belongs to the whole world.
"""

from __future__ import annotations

import errno
from collections import deque
from contextvars import Context, copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from comparison.scenarios.plan.links import Kind
from comparison.simulation.node import CURRENT, PROXIED
from kernel.errors import EnvironmentFault
from kernel.platform.ports import LOOPBACK

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from comparison.scenarios.plan.links import Delay
    from comparison.simulation.node import Node

#: Bytes that may be on their way, or have arrived unread, in one direction.
WINDOW = 1 << 20
_FIRST_PORT, _FIRST_DESCRIPTOR = 20_000, 100


class Timeline(Protocol):
    """What the network needs of the loop."""

    now_ns: int

    def at_ns(self, when_ns: int, what: Callable[..., object], *arguments: Any) -> None: ...

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> object: ...

    def create_future(self) -> asyncio.Future[Any]: ...


class Endpoint:
    """One end of a connection. Its owner sets `on_change`, which is called when there is more to read or room to send.

    The methods of a socket that never blocks: `send` and `recv` raise `BlockingIOError`, or `OSError` after a reset.
    """

    __slots__ = (
        "_arrived_ns",
        "_received",
        "_unread",
        "is_closed",
        "is_ended",
        "is_full",
        "is_reset",
        "is_shut",
        "kind",
        "network",
        "node",
        "on_change",
        "peer",
        "port",
        "unacknowledged",
    )
    peer: Endpoint

    def __init__(self, network: Network, node: Node, port: int, kind: Kind) -> None:
        self.network = network
        self.node = node
        self.kind = kind  #: by which its packets are delayed
        self.port = port
        self.on_change: Callable[[], None] | None = None
        self.is_closed = False  #: by its owner
        self.is_shut = False  #: no more is sent
        self.is_ended = False  #: no more will arrive
        self.is_reset = False
        self.is_full = False  #: its owner has been refused
        self.unacknowledged = 0  #: bytes sent that the peer has not read
        self._received: deque[bytes] = deque()
        self._unread = 0
        self._arrived_ns = 0  #: when what was sent last arrives
        node.sockets[self] = None

    @property
    def is_readable(self) -> bool:
        return bool(self._received) or self.is_ended or self.is_reset

    @property
    def is_writable(self) -> bool:
        return self.unacknowledged < WINDOW or self.is_reset

    def has_room(self, size: int) -> bool:
        """Whether so many bytes can be sent at once, without an error."""
        return self.unacknowledged + size <= WINDOW and not self.is_reset and not self.is_shut

    def send(self, data: bytes | bytearray | memoryview) -> int:
        """How many bytes were taken."""
        if self.is_reset:
            raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
        if self.is_shut:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")
        room = WINDOW - self.unacknowledged
        if room <= 0:
            self.is_full = True
            raise BlockingIOError
        length = min(len(data), room)
        self.is_full = length < len(data)
        sent = data if type(data) is bytes and not self.is_full else bytes(data[:length])
        self.unacknowledged += length
        if self.node.is_frozen:
            self.node.held.append(partial(self._carry, self.peer._arrive, sent))
        else:
            self._carry(self.peer._arrive, sent)
        return length

    def recv(self, size: int) -> bytes:
        """Up to `size` bytes, as one packet or several joined; b"" at the end of the stream."""
        if self.is_reset:
            raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
        received = self._received
        if not received:
            if self.is_ended:
                return b""
            raise BlockingIOError
        data = received.popleft()
        if received and len(data) < size:
            pieces, length = [data], len(data)
            while received and length < size:
                pieces.append(received.popleft())
                length += len(pieces[-1])
            data = b"".join(pieces)
        if len(data) > size:
            received.appendleft(data[size:])
            data = data[:size]
        self._unread -= len(data)
        self.peer._acknowledged(len(data))
        return data

    def shut(self) -> None:
        """Send the end of the stream. Idempotent."""
        if not self.is_shut and not self.is_reset:
            self.is_shut = True
            self._carry(self.peer._end)

    def close(self) -> None:
        """Close both directions: with a reset if something is unread, as TCP does. Idempotent."""
        if self.is_closed:
            return
        self.is_closed = True
        self.node.sockets.pop(self, None)
        if self._unread:
            self.is_shut = True
            self._carry(self.peer._reset)
        else:
            self.shut()
        self._received.clear()
        self.on_change = None

    def _carry(self, arrive: Callable[..., None], *what: bytes) -> None:
        network = self.network
        loop = network.loop
        self._arrived_ns = max(loop.now_ns + network.delay_ns(self.kind, self.peer.kind), self._arrived_ns)
        loop.at_ns(self._arrived_ns, arrive, *what)

    def _arrive(self, data: bytes) -> None:
        if self.is_closed:
            if not self.is_reset:
                self.is_reset = True
                self._carry(self.peer._reset)
            return
        self._received.append(data)
        self._unread += len(data)
        self._changed()

    def _end(self) -> None:
        self.is_ended = True
        self._changed()

    def _reset(self) -> None:
        self.is_reset = self.is_ended = True
        self._received.clear()
        self._changed()

    def _acknowledged(self, size: int) -> None:
        self.unacknowledged -= size
        if self.is_full and self.is_writable:
            self.is_full = False
            self._changed()

    def _changed(self) -> None:
        if self.on_change is not None:
            self.on_change()


class ListeningSocket:
    """A port on which a node listens. `accepted` is called in the context in which it was opened."""

    def __init__(self, network: Network, number: int, accepted: Callable[[Endpoint], None]) -> None:
        self.port = number
        self.node = CURRENT.get()
        self._network = network
        self._accepted = accepted
        self._context = copy_context()
        self.node.sockets[self] = None

    def admit(self, endpoint: Endpoint) -> None:
        context = self._context
        if self.node.kind is Kind.RUNNER:
            context = context.copy()
            context.run(PROXIED.set, endpoint.peer.kind)
        self._network.loop.call_soon(self._accepted, endpoint, context=context)

    def close(self) -> None:
        self.node.sockets.pop(self, None)
        self._network.close_port(self)


class Network:
    """All connections of a world."""

    def __init__(self, loop: Timeline, delay_ns: Delay) -> None:
        self.loop = loop
        self.delay_ns = delay_ns
        #: The accepted connections by their descriptors, by which a broker knows them.
        self.by_descriptor: dict[int, Endpoint] = {}
        self._ports: dict[int, ListeningSocket] = {}
        self._next_port = _FIRST_PORT
        self._next_descriptor = _FIRST_DESCRIPTOR

    def descriptor(self, endpoint: Endpoint) -> int:
        """A new descriptor for a connection."""
        self._next_descriptor += 1
        self.by_descriptor[self._next_descriptor] = endpoint
        return self._next_descriptor

    def ports_of(self, node: Node) -> frozenset[int]:
        """The local ports of a node's connections."""
        return frozenset(socket.port for socket in node.sockets if isinstance(socket, Endpoint))

    def free_port(self) -> int:
        """One that nobody has had."""
        self._next_port += 1
        return self._next_port

    def listen(self, number: int, accepted: Callable[[Endpoint], None]) -> ListeningSocket:
        """Listen on a port, or with 0 on a free one. Raises `EnvironmentFault` if it is in use."""
        if number in self._ports:
            raise EnvironmentFault(f"cannot listen on {LOOPBACK}:{number}: {errno.errorcode[errno.EADDRINUSE]}")
        listening = ListeningSocket(self, number or self.free_port(), accepted)
        self._ports[listening.port] = listening
        return listening

    def close_port(self, listening: ListeningSocket) -> None:
        if self._ports.get(listening.port) is listening:
            del self._ports[listening.port]

    async def connect(self, number: int) -> Endpoint:
        """Our end of a new connection. Raises `ConnectionRefusedError` if nobody listens when the first packet arrives.

        A frozen node's machine accepts for it.
        """
        node, loop = CURRENT.get(), self.loop
        kind = PROXIED.get(node.kind) if node.kind is Kind.RUNNER else node.kind
        answer: asyncio.Future[Endpoint | None] = loop.create_future()

        def ask() -> None:
            port = self._ports.get(number)
            ours = None
            if port is not None and node.is_alive:
                ours = Endpoint(self, node, self.free_port(), kind)
                theirs = Endpoint(self, port.node, number, port.node.kind)
                ours.peer, theirs.peer = theirs, ours
                port.admit(theirs)
            loop.at_ns(loop.now_ns + (self.delay_ns(port.node.kind, kind) if port is not None else 0), tell, ours)

        def tell(ours: Endpoint | None) -> None:
            if not answer.done():
                answer.set_result(ours)
            elif ours is not None:
                ours.close()

        asked = self._ports.get(number)
        loop.at_ns(loop.now_ns + (self.delay_ns(kind, asked.node.kind) if asked is not None else 0), ask)
        endpoint = await answer
        if endpoint is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        return endpoint
