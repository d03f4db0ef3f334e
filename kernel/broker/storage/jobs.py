"""Jobs for the writer's thread. Every job has a future, completed on the event loop."""

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
    """Store batches; returns an `AppendResult`. Before that, `advance` gets the acknowledged end and the transactions
    open there.
    """

    term: Term
    batches: Sequence[AppendBatch]
    advance: Callable[[int, OpenTransactions], None]
    future: asyncio.Future[object]

    def acknowledged(self, result: object) -> None:
        """Called on the event loop before the future completes, even if its waiter was cancelled."""
        assert isinstance(result, AppendResult)
        if not result.duplicate:
            self.advance(result.last_offset + 1, result.transactions)


@dataclass(slots=True, eq=False)
class Upsert:
    """Store and delete pairs, in order; returns the offset after them, which `advance` gets first."""

    term: Term
    pairs: Sequence[tuple[bytes, bytes | None]]
    timestamp_ms: int
    advance: Callable[[int], None]
    future: asyncio.Future[object]

    def acknowledged(self, end_offset: object) -> None:
        """As `Append.acknowledged`."""
        assert isinstance(end_offset, int)
        self.advance(end_offset)


@dataclass(slots=True, eq=False)
class TakeOver:
    """Begin a term; returns a `Term`."""

    request: TermRequest
    future: asyncio.Future[object]


@dataclass(slots=True, eq=False)
class Trim:
    """Durably delete what lies before `start`, or before the beginning of `chain`; returns None."""

    term: Term
    chain: Chain
    start: int
    future: asyncio.Future[object]

    def acknowledged(self) -> None:
        """Called on the event loop, which alone reads and changes these two."""
        self.term.chain, self.term.start_offset = self.chain, self.start


@dataclass(slots=True, eq=False)
class Forget:
    """Delete our rows of a deleted topic; returns None."""

    topic_id: UUID
    future: asyncio.Future[object]


@dataclass(slots=True, eq=False)
class Index:
    """Create the index for reading pairs by offset; returns None, even if there is no room for it."""

    future: asyncio.Future[object]


@dataclass(slots=True, eq=False)
class Room:
    """Leave the file no room to grow, or lift that again; returns None."""

    full: bool
    future: asyncio.Future[object]


@dataclass(slots=True, eq=False)
class Stop:
    """The writer's last job: it ends after this one."""

    future: asyncio.Future[object]


Job = Append | Upsert | TakeOver | Trim | Forget | Index | Room | Stop
#: A job with its result or its error.
JobResult = tuple[Job, object, StorageError | None]
