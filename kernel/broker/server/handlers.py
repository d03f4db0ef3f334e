"""The interface between the server and its request handlers.

A handler is a plain function. It returns either a response (the fast path: no task, no waiting) or an awaitable of
one. While a response is pending the connection serves no further request, because Kafka answers the requests of a
connection in order. `None` sends no response (Produce with acks=0). Raising `ProtocolError` closes the connection,
which is the only way Kafka's protocol refuses some requests.

A response is a mapping of fields, or `Encoded` (bytes that the handler encoded itself, because there are many of them
or many clients get the same ones), or `Rows` (a long response, generated and encoded in chunks).
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from kernel.wire.versions import Api

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kernel.broker.server.budget import Reservation
    from kernel.wire.codec import Reader


#: A response of this many rows or more is long.
ROWS_AT_ONCE = 50


class RequestContext(NamedTuple):
    """The request's sender and header. `host` is the peer's address without its port; `client_id` may be ''."""

    connection_id: int
    client_id: str
    host: str
    api: Api
    version: int
    correlation_id: int


class Encoded(NamedTuple):
    """A response's bytes after its correlation id: the tags of a flexible header, then the body."""

    tail: bytes


class ReservedResponse(dict[str, Any]):
    """A large response and the memory reserved for it. Dropping the response, for any reason, frees the memory."""

    __slots__ = ("reservation",)

    def __init__(self, response: Mapping[str, Any], reservation: Reservation) -> None:
        super().__init__(response)
        self.reservation = reservation


class Rows(NamedTuple):
    """A long response, generated and encoded a few rows at a time; other clients are served in between.

    `rows` yields the elements of the top-level array `name`, and None for work that led to no element; `head` has the
    other fields. State that the rows are generated from may change between an early row and a late one.
    """

    head: Mapping[str, Any]
    name: str
    rows: Iterator[Mapping[str, Any] | None]


def in_rows(head: Mapping[str, Any], name: str, rows: Iterable[Mapping[str, Any] | None]) -> Mapping[str, Any] | Rows:
    """A response of unknown length: complete if it turns out short, `Rows` otherwise."""
    iterator = iter(rows)
    first = list(itertools.islice(iterator, ROWS_AT_ONCE))
    if len(first) < ROWS_AT_ONCE:
        return {**head, name: [row for row in first if row is not None]}
    return Rows(head, name, itertools.chain(first, iterator))


Response = Mapping[str, Any] | Encoded | Rows | None
Result = TypeVar("Result")


class DeferredResponse(Awaitable[Result]):
    """A response to be completed later. It costs no task, no future and no turn of the loop, so thousands may wait.

    Complete it exactly once, and never from inside a handler: the server sends the response immediately and may go
    on to the connection's next request.
    """

    __slots__ = ("_has_failed", "_on_failure", "_on_result", "_result")

    def __init__(self) -> None:
        self._on_result: Callable[[Result], object] | None = None
        self._on_failure: Callable[[], object] | None = None
        self._result: tuple[Result] | None = None
        self._has_failed = False

    def complete(self, result: Result) -> None:
        """Deliver the response."""
        assert self._result is None, "a response is completed once"
        self._result = (result,)
        if self._on_result is not None:
            self._on_result(result)

    def fail(self) -> None:
        """Stop the wait: an internal error has lost the response."""
        self._has_failed = True
        if self._on_failure is not None:
            self._on_failure()

    def on_complete(
        self, on_result: Callable[[Result], object], on_failure: Callable[[], object] | None = None
    ) -> None:
        """Call `on_result(response)` once it is complete, or `on_failure()` once it fails. Takes one listener only."""
        assert self._on_result is None, "this response has a listener already"
        self._on_result, self._on_failure = on_result, on_failure
        if self._result is not None:
            on_result(self._result[0])
        elif self._has_failed and on_failure is not None:
            on_failure()

    def __await__(self) -> Generator[Any, None, Result]:
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self.on_complete(lambda result: None if future.done() else future.set_result(result), future.cancel)
        return future.__await__()


def failed_response() -> DeferredResponse[Any]:
    """A response that has failed already: the server closes the connection."""
    response: DeferredResponse[Any] = DeferredResponse()
    response.fail()
    return response


Handler = Callable[[RequestContext, Any], Response | Awaitable[Response]]
#: Answers a repeated request, as `Encoded.tail`. None once the cache no longer holds: call the handler instead.
CachedResponse = Callable[[], bytes | None]
Repeat = Callable[[RequestContext, Any], CachedResponse | None]


@runtime_checkable
class Repeatable(Protocol):
    """A handler of heartbeats that can answer a repeated request without having it decoded again.

    The server calls `repeat` after answering a heartbeat at once. None: handle the next one like the first.
    """

    def __call__(self, context: RequestContext, body: Any) -> Response | Awaitable[Response]: ...

    def repeat(self, context: RequestContext, body: Any) -> CachedResponse | None: ...


HandlerTable = dict[Api, Handler]


class ReadByHand:
    """A handler whose request bodies are decoded by `readers`, by version, instead of kio (`codec.Reader`).

    For messages that arrive by the thousand.
    """

    def __init__(self, handle: Handler, readers: Mapping[int, Reader]) -> None:
        self.handle = handle
        self.readers = readers

    def __call__(self, context: RequestContext, body: Any) -> Response | Awaitable[Response]:
        return self.handle(context, body)


def readers_of(table: HandlerTable) -> dict[tuple[int, int], Reader]:
    """The hand-written readers of `table`, by API and version."""
    return {
        (api, version): reader
        for api, handler in table.items()
        if isinstance(handler, ReadByHand)
        for version, reader in handler.readers.items()
    }
