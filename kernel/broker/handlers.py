"""What a request handler is given and gives back; the server calls handlers and knows nothing else of them.

A handler is a plain function. It may answer at once with a mapping (the short way: no task, no waiting), or
return an awaitable of one; the connection then reads no further request until the answer is there, because
Kafka answers each connection in order. `None` means that no response is sent (Produce with acks=0). Raising a
`ProtocolError` closes the connection, the only way in which Kafka's protocol refuses some requests.

Where a mapping is an answer, so is `Encoded`: bytes that the handler has made by itself, because they are many, or
the same for many.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

from kernel.wire.versions import Api


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


Answer = Mapping[str, Any] | Encoded | None
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
