"""The SQLite files: one per broker incarnation, written by that incarnation only and read by all brokers.

Tables: `term` has one row for each leadership that this incarnation has begun; all other rows belong to a term. `batch`
has record batches, `producer` the state of idempotent producers and the start of their open transactions, `aborted`
the transactions that read_committed skips, `pair` the compacted pairs of a KeyValueLog, each at the offset of its last
write (a NULL value is a tombstone). WAL mode: readers never wait for the writer, not even for one that was stopped
(SIGSTOP) inside a transaction.

Commits are handed to the operating system, not synced: they survive kill -9 of every broker, but a power cut may lose
the last moments, as with a single Kafka broker. What a later term builds on is synced first.
"""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kernel.broker.storage.epochs import make_claim
from kernel.broker.storage.errors import StorageFailed
from kernel.platform.syncing import is_syncing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FOLDER = "incarnations"
SUFFIX = ".sqlite"

#: How long a reader waits for a lock. Readers need one for instants only; see `walTryBeginRead` in SQLite's wal.c.
_READ_TIMEOUT_S = 5.0
#: The write-ahead log is checkpointed after this many pages of 4 KiB, and its file truncated to the limit below.
_WAL_PAGES = 2_000
_WAL_BYTES_MAX = 16 * 1024 * 1024
#: Connections that one thread keeps open, one per incarnation file.
_OPEN_FILES_MAX = 16

#: `PRAGMA user_version`: files written before transactions were supported have 0, and contain none.
_WITH_TRANSACTIONS = 1
_SCHEMA = f"""
PRAGMA user_version = {_WITH_TRANSACTIONS};
CREATE TABLE term (
    term INTEGER PRIMARY KEY, topic_id TEXT NOT NULL, partition INTEGER NOT NULL, leader_epoch INTEGER NOT NULL,
    attempt INTEGER NOT NULL, start INTEGER NOT NULL, chain TEXT NOT NULL,
    UNIQUE (topic_id, partition, leader_epoch, attempt));
CREATE TABLE batch (
    term INTEGER NOT NULL, base_offset INTEGER NOT NULL, last_offset INTEGER NOT NULL,
    max_timestamp_ms INTEGER NOT NULL, payload BLOB NOT NULL, PRIMARY KEY (term, base_offset));
CREATE TABLE producer (
    term INTEGER NOT NULL, producer_id INTEGER NOT NULL, producer_epoch INTEGER NOT NULL, batches TEXT NOT NULL,
    coordinator_epoch INTEGER NOT NULL, transaction_start INTEGER, PRIMARY KEY (term, producer_id)) WITHOUT ROWID;
CREATE TABLE aborted (
    term INTEGER NOT NULL, producer_id INTEGER NOT NULL, first_offset INTEGER NOT NULL, last_offset INTEGER NOT NULL,
    last_stable_offset INTEGER NOT NULL, PRIMARY KEY (term, last_offset)) WITHOUT ROWID;
CREATE TABLE pair (
    term INTEGER NOT NULL, key BLOB NOT NULL, value BLOB, at_offset INTEGER NOT NULL, timestamp_ms INTEGER NOT NULL,
    PRIMARY KEY (term, key)) WITHOUT ROWID;
CREATE INDEX tombstone_by_time ON pair (term, timestamp_ms) WHERE value IS NULL;
"""


_TABLES = ("term", "batch", "producer", "aborted", "pair")
#: SQLite's own limits.
_PAGE_BYTES_MAX, _PAGES_MAX = 65_536, 4_294_967_294

#: For reading pairs by offset. Created at the first such read: it makes every write a fifth more expensive.
PAIRS_BY_OFFSET = "CREATE INDEX IF NOT EXISTS pair_by_offset ON pair (term, at_offset)"


#: SQLite errors that no disk can cause: our statements, or our use of its interface, are wrong.
MISUSES = (
    sqlite3.ProgrammingError,
    sqlite3.InterfaceError,
    sqlite3.IntegrityError,
    sqlite3.DataError,
    sqlite3.NotSupportedError,
)


@contextmanager
def faults_named(doing: str) -> Iterator[None]:
    """Turn SQLite's and the system's errors into `StorageFailed`, with what was being done and what to check.

    Except `MISUSES`: they are bugs.
    """
    try:
        yield
    except MISUSES:
        raise
    except (sqlite3.Error, OSError) as error:
        raise StorageFailed(
            f"cannot {doing}: {error}. Is the data directory writable, is there room on its disk, and does the"
            " process's file size limit (ulimit -f) allow for it? Nothing acknowledged is lost."
        ) from error


def create_file(path: Path) -> sqlite3.Connection:
    """Create a file with its claim (see epochs.py), and the only connection that may write it, one thread at a time.

    Raises FileExistsError if the file exists: an incarnation is not begun twice.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(exist_ok=False)
    # As a URI, so that `attached` may use one for the other file, too.
    connection = sqlite3.connect(path.absolute().as_uri(), uri=True, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {_synchronous()}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES_MAX}")
        connection.executescript(_SCHEMA)
        make_claim(path)
    except BaseException:
        connection.close()
        raise
    return connection


def fill_up(connection: sqlite3.Connection) -> None:
    """Leave the file no room, as when its disk is full: SQLite refuses what needs another page, and reads go on.

    Some rows would fit into pages that are not full. On a full disk they would not, since the write-ahead log cannot
    grow either, so a trigger of this connection has every new row ask for pages.
    """
    connection.execute("CREATE TABLE IF NOT EXISTS ballast (bytes BLOB)")
    sizes = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count")]
    pages, free = sizes
    connection.execute(f"PRAGMA max_page_count = {pages}")
    for table in _TABLES:
        connection.execute(
            f"CREATE TEMP TRIGGER IF NOT EXISTS full_{table} BEFORE INSERT ON main.{table} "
            f"BEGIN INSERT INTO ballast VALUES (zeroblob({(free + 2) * _PAGE_BYTES_MAX})); END"
        )


def make_room(connection: sqlite3.Connection) -> None:
    """Lift what `fill_up` did."""
    connection.execute(f"PRAGMA max_page_count = {_PAGES_MAX}")
    for table in _TABLES:
        connection.execute(f"DROP TRIGGER IF EXISTS temp.full_{table}")
    connection.execute("DROP TABLE IF EXISTS ballast")


def _synchronous() -> str:
    """SQLite syncs when it checkpoints the write-ahead log, unless nothing has to survive a power cut."""
    return "NORMAL" if is_syncing() else "OFF"


def open_reader(path: Path) -> sqlite3.Connection:
    """A connection that cannot write, not even checkpoint the write-ahead log. The file must exist."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro",
        uri=True,
        isolation_level=None,
        timeout=_READ_TIMEOUT_S,
        check_same_thread=False,
    )
    connection.execute("PRAGMA query_only = 1")
    return connection


def has_transactions(connection: sqlite3.Connection) -> bool:
    """Whether the file was written by a broker that supports transactions on data."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version >= _WITH_TRANSACTIONS


@contextmanager
def attached(writer: sqlite3.Connection, path: Path | None) -> Iterator[str]:
    """Attach the file at `path`, which must exist, read-only to the writer's connection; None attaches nothing.

    Yields the schema name for statements. Not inside a transaction: SQLite attaches and detaches outside of them.
    A transaction takes only a read lock on the attached file.
    """
    if path is None:
        yield "main"
        return
    writer.execute("ATTACH ? AS predecessor", (f"{path.absolute().as_uri()}?mode=ro",))
    try:
        yield "predecessor"
    finally:
        writer.execute("DETACH predecessor")


class SqliteTransaction:
    """BEGIN and COMMIT around a block; ROLLBACK if the block or the COMMIT fails."""

    def __init__(self, connection: sqlite3.Connection, *, sync: bool = False) -> None:
        self._connection = connection
        self._sync = sync and is_syncing()

    def __enter__(self) -> None:
        if self._sync:
            self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            if kind is None:
                self._connection.execute("COMMIT")
        finally:
            # SQLite rolls back some failed transactions itself.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            if self._sync:
                self._connection.execute("PRAGMA synchronous = NORMAL")


class ReaderPool:
    """Read connections of one thread; the least recently used is closed first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: OrderedDict[str, sqlite3.Connection] = OrderedDict()

    def get(self, file: str) -> sqlite3.Connection:
        connection = self._open.pop(file, None) or open_reader(self._folder / file)
        self._open[file] = connection
        if len(self._open) > _OPEN_FILES_MAX:
            self._open.popitem(last=False)[1].close()
        return connection

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()
