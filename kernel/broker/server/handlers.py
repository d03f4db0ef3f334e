"""What a request handler is given and gives back; the server calls handlers and knows nothing else of them.

A handler is a plain function. It may answer at once with a mapping (the short way: no task, no waiting), or
return an awaitable of one; the connection then reads no further request until the answer is there, because
Kafka answers each connection in order. `None` means that no response is sent (Produce with acks=0). Raising a
`ProtocolError` closes the connection, the only way in which Kafka's protocol refuses some requests.

Where a mapping is an answer, so is `Encoded`: bytes that the handler has made by itself, because they are many, or
the same for many. So are `Rows`, for what may be long: it is made and encoded in pieces.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from kernel.wire.versions import Api

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kernel.broker.server.budget import Claim
    from kernel.wire.codec import Reader


#: Rows with which an answer counts as long.
ROWS_AT_ONCE = 50


class RequestContext(NamedTuple):
    """Who asks. `host` is the peer's address without its port; `client_id` is '' when the client gave none."""

    connection_id: int
    client_id: str
    host: str
    api: Api
    version: int
    correlation_id: int


class Encoded(NamedTuple):
    """A response's bytes behind its correlation id: a flexible header's tags, then the body in its version."""

    tail: bytes


class Claiming(dict[str, Any]):
    """An answer that is large; `claim` is for its bytes, and ends when the answer is dropped, however that happens."""

    __slots__ = ("claim",)

    def __init__(self, answer: Mapping[str, Any], claim: Claim) -> None:
        super().__init__(answer)
        self.claim = claim


class Rows(NamedTuple):
    """A long answer, made and encoded a few rows at a time, between which others are served.

    `rows` are those of the array `name`, which lies in the answer itself; `head` has the other fields. They are made
    one after another, so that what an early row was made of may have changed when a late one is made.
    """

    head: Mapping[str, Any]
    name: str
    rows: Iterator[Mapping[str, Any]]


def in_rows(head: Mapping[str, Any], name: str, rows: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | Rows:
    """An answer of which nobody knows how long it is: a short one is there at once."""
    iterator = iter(rows)
    first = list(itertools.islice(iterator, ROWS_AT_ONCE))
    if len(first) < ROWS_AT_ONCE:
        return {**head, name: first}
    return Rows(head, name, itertools.chain(first, iterator))


Answer = Mapping[str, Any] | Encoded | Rows | None
Given = TypeVar("Given")


class Later(Awaitable[Given]):
    """An answer that comes later, for what thousands wait for at once: no task, no future, no turn of the loop.

    Whoever returned it gives the answer, once, and never from inside a handler: the server sends it there and then,
    and may go on with the connection's next request.
    """

    __slots__ = ("_answer", "_is_lost", "_lose", "_take")

    def __init__(self) -> None:
        self._take: Callable[[Given], object] | None = None
        self._lose: Callable[[], object] | None = None
        self._answer: tuple[Given] | None = None
        self._is_lost = False

    def give(self, answer: Given) -> None:
        """The answer is there."""
        assert self._answer is None, "an answer is given once"
        self._answer = (answer,)
        if self._take is not None:
            self._take(answer)

    def lose(self) -> None:
        """A mistake of ours has lost the answer: nobody is to wait for it any longer."""
        self._is_lost = True
        if self._lose is not None:
            self._lose()

    def when_given(self, take: Callable[[Given], object], lose: Callable[[], object] | None = None) -> None:
        """Call `take(answer)` as soon as there is one, or `lose()` when there will be none; one only may ask."""
        assert self._take is None, "somebody waits for this answer already"
        self._take, self._lose = take, lose
        if self._answer is not None:
            take(self._answer[0])
        elif self._is_lost and lose is not None:
            lose()

    def __await__(self) -> Generator[Any, None, Given]:
        future: asyncio.Future[Given] = asyncio.get_running_loop().create_future()
        self.when_given(lambda answer: None if future.done() else future.set_result(answer), future.cancel)
        return future.__await__()


def lost() -> Later[Any]:
    """The answer of a request for which there will be none: its connection is closed."""
    later: Later[Any] = Later()
    later.lose()
    return later


Handler = Callable[[RequestContext, Any], Answer | Awaitable[Answer]]
#: What answers one request again, as `Encoded.tail`; None: not that shortly any more, call the handler.
Again = Callable[[], bytes | None]
Repeat = Callable[[RequestContext, Any], Again | None]


@runtime_checkable
class Repeatable(Protocol):
    """A handler of Heartbeat that can answer the same bytes without having them decoded each time.

    `repeat` is asked when a heartbeat has been answered; None: the next one is to be handled like the first.
    """

    def __call__(self, context: RequestContext, body: Any) -> Answer | Awaitable[Answer]: ...

    def repeat(self, context: RequestContext, body: Any) -> Again | None: ...


HandlerTable = dict[Api, Handler]


class ReadByHand:
    """A handler that is given another body than kio's: `readers`, by version, make it (`codec.Reader`).

    For the messages of which thousands come at once.
    """

    def __init__(self, handle: Handler, readers: Mapping[int, Reader]) -> None:
        self.handle = handle
        self.readers = readers

    def __call__(self, context: RequestContext, body: Any) -> Answer | Awaitable[Answer]:
        return self.handle(context, body)


def readers_of(table: HandlerTable) -> dict[tuple[int, int], Reader]:
    """By API and version."""
    return {
        (api, version): reader
        for api, handler in table.items()
        if isinstance(handler, ReadByHand)
        for version, reader in handler.readers.items()
    }
