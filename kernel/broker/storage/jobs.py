"""What the event loop asks of the writer's thread. Every job has a future, answered on the event loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel.broker.storage.errors import StorageError
from kernel.records.batches import AppendResult

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from kernel.broker.storage.chain import Chain
    from kernel.broker.storage.terms import Term, TermRequest
    from kernel.records.batches import AppendBatch
    from kernel.records.transactions import OpenTransactions


@dataclass(slots=True, eq=False)
class Append:
    """Store batches; answered with an `AppendResult`. `advance` is told the acknowledged end and the transactions that
    are open there, first.
    """

    term: Term
    batches: Sequence[AppendBatch]
    advance: Callable[[int, OpenTransactions], None]
    future: asyncio.Future[object]

    def acknowledged(self, result: object) -> None:
        """On the event loop, before the future is answered, also when nobody waits for it any more."""
        assert isinstance(result, AppendResult)
        if not result.duplicate:
            self.advance(result.last_offset + 1, result.transactions)


@dataclass(slots=True, eq=False)
class Upsert:
    """Store and delete pairs, in order; answered with the offset behind them, which `advance` is told first."""

    term: Term
    pairs: Sequence[tuple[bytes, bytes | None]]
    timestamp_ms: int
    advance: Callable[[int], None]
    future: asyncio.Future[object]

    def acknowledged(self, end_offset: object) -> None:
        """As of `Append`."""
        assert isinstance(end_offset, int)
        self.advance(end_offset)


@dataclass(slots=True, eq=False)
class TakeOver:
    """Begin a term; answered with a `Term`."""

    request: TermRequest
    future: asyncio.Future[object]


@dataclass(slots=True, eq=False)
class Trim:
    """Give up what lies before `start` or before the chain's begin, durably; answered with None."""

    term: Term
    chain: Chain
    start: int
    future: asyncio.Future[object]

    def acknowledged(self) -> None:
        """On the event loop, which alone reads and changes these two."""
        self.term.chain, self.term.start_offset = self.chain, self.start


@dataclass(slots=True, eq=False)
class Forget:
    """Delete our rows of a topic that is no more; answered with None."""

    topic_id: UUID
    future: asyncio.Future[object]


@dataclass(slots=True, eq=False)
class Index:
    """Somebody begins to read pairs by offset; answered with None, also when there is no room for an index."""

    future: asyncio.Future[object]


@dataclass(slots=True, eq=False)
class Stop:
    """The last job."""

    future: asyncio.Future[object]


Job = Append | Upsert | TakeOver | Trim | Forget | Index | Stop
#: A job, and what becomes of its future: a result, or an error.
JobResult = tuple[Job, object, StorageError | None]
