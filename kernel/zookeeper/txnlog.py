"""Read ZooKeeper's transaction log: every change in order, with its session and time in milliseconds.

It shows after a run what the ensemble stored, without an observer during the run. This reads ZooKeeper's files
(`log.<first zxid>` in `data/version-2`, jute records), because its own TxnLogToolkit prints times in whole seconds,
data as if it were UTF-8, and hardly anything of a transaction with parts. A test compares both.

Formats: `FileTxnLog` of 3.9 (header "ZKLG", version, database id; then checksum, length, record and end mark for each
transaction), `zookeeper.jute` for the records.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_FILE_HEADER = struct.Struct("!4siq")
_FRAME = struct.Struct("!qi")
_TXN_HEADER = struct.Struct("!qiqqi")
_END_MARK = b"B"

_MULTI, _ERROR, _CREATE_SESSION, _CLOSE_SESSION = 14, -1, -10, -11

#: ZooDefs.OpCode -> the name here; a container or a znode with a time to live is created like any other.
_OPS = {
    1: "create",
    15: "create",
    19: "create",
    21: "create",
    2: "delete",
    20: "delete",
    5: "setData",
    13: "check",
    7: "setACL",
    16: "reconfig",
    _ERROR: "error",
    _CREATE_SESSION: "createSession",
    _CLOSE_SESSION: "closeSession",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """A change. The parts of a multi are separate transactions with the same zxid; a failed multi is one `error`."""

    zxid: int
    session: int  #: the session that requested it
    cxid: int  #: the number of the request in its session; 0 if the server closed an expired session
    time_ms: int  #: the leader's wall clock, epoch milliseconds
    op: str  #: create, delete, setData, check, createSession, closeSession, setACL, reconfig, error
    path: str = ""
    data: bytes | None = None  #: for create and setData; None is null
    ephemeral: bool = False
    removed_paths: tuple[str, ...] = ()  #: for closeSession: the deleted ephemeral znodes


def read_transactions(data_dir: Path, since: int = 0) -> Iterator[Transaction]:
    """All transactions in a server's data directory, sorted by zxid. Best read after the server has stopped.

    `since` skips the files that end before this zxid. A torn record (a kill, a full disk) ends its file, as it does
    for ZooKeeper. Raises `FileNotFoundError` if there is no log, ValueError for a file that is not a transaction log.
    """
    logs = sorted((data_dir / "version-2").glob("log.*"), key=lambda log: int(log.suffix[1:], 16))
    if not logs:
        raise FileNotFoundError(f"no ZooKeeper transaction log in {data_dir}")
    last_zxid = 0
    # The files' names are those of their first zxids: the last one that is not later has `since`.
    begun = [log for log in logs if int(log.suffix[1:], 16) <= since]
    for log in logs[max(0, len(begun) - 1) :]:
        for records in _records(log):
            # A server that fell behind may repeat the end of one file at the start of the next.
            if records[0].zxid > last_zxid:
                last_zxid = records[0].zxid
                yield from records


def read_ensemble(data_dirs: Sequence[Path], since: int = 0) -> Iterator[Transaction]:
    """The transactions that a majority of the servers logged, sorted by zxid.

    This omits a change that only a cut-off leader logged. Gaps that a snapshot left on one server are filled from the
    others.
    """
    seen: Counter[int] = Counter()
    by_zxid: dict[int, list[Transaction]] = {}
    for data_dir in data_dirs:
        grouped: dict[int, list[Transaction]] = {}
        for transaction in read_transactions(data_dir, since):
            grouped.setdefault(transaction.zxid, []).append(transaction)
        seen.update(grouped.keys())
        by_zxid.update(grouped)
    for zxid in sorted(by_zxid):
        if seen[zxid] * 2 > len(data_dirs):
            yield from by_zxid[zxid]


def _records(log: Path) -> Iterator[list[Transaction]]:
    with log.open("rb") as file:
        head = file.read(_FILE_HEADER.size)
        if len(head) < _FILE_HEADER.size:
            return  # the server was killed while it created the file
        magic, version, _ = _FILE_HEADER.unpack(head)
        if magic != b"ZKLG" or version != 2:
            raise ValueError(f"{log} is not a ZooKeeper transaction log: it begins with {magic!r}, version {version}")
        while len(frame := file.read(_FRAME.size)) == _FRAME.size:
            checksum, length = _FRAME.unpack(frame)
            if length <= 0:
                return  # the file is padded with zeros
            record, end = file.read(length), file.read(1)
            if end != _END_MARK or zlib.adler32(record) != checksum:
                return
            yield _transactions(record)


def _transactions(record: bytes) -> list[Transaction]:
    session, cxid, zxid, time_ms, type_ = _TXN_HEADER.unpack_from(record)
    body = _Reader(record, _TXN_HEADER.size)
    if type_ != _MULTI:
        return [_transaction(body, type_, session, cxid, zxid, time_ms)]
    parts = [
        _transaction(_Reader(data or b"", 0), part, session, cxid, zxid, time_ms)
        for part, data in [(body.number(), body.buffer()) for _ in range(body.number())]
    ]
    # A failed part undoes all: the log lists them, but none was applied.
    if any(part.op == "error" for part in parts):
        return [Transaction(zxid=zxid, session=session, cxid=cxid, time_ms=time_ms, op="error")]
    return parts


def _transaction(body: _Reader, type_: int, session: int, cxid: int, zxid: int, time_ms: int) -> Transaction:
    path, data, ephemeral = "", None, False
    removed: tuple[str, ...] = ()
    op = _OPS.get(type_, f"op {type_}")
    if op == "create":
        path, data = body.text(), body.buffer()
        body.skip_acls()
        ephemeral = type_ in (1, 15) and body.flag()
    elif op == "setData":
        path, data = body.text(), body.buffer()
    elif op in ("delete", "check", "setACL"):
        path = body.text()
    elif op == "closeSession":
        removed = body.texts()
    return Transaction(
        zxid=zxid,
        session=session,
        cxid=cxid,
        time_ms=time_ms,
        op=op,
        path=path,
        data=data,
        ephemeral=ephemeral,
        removed_paths=removed,
    )


class _Reader:
    """Decodes the jute values of a record."""

    def __init__(self, record: bytes, offset: int) -> None:
        self._record = record
        self._offset = offset

    def number(self) -> int:
        (value,) = struct.unpack_from("!i", self._record, self._offset)
        self._offset += 4
        return int(value)

    def flag(self) -> bool:
        self._offset += 1
        return self._record[self._offset - 1] != 0

    def buffer(self) -> bytes | None:
        length = self.number()
        if length < 0:
            return None
        self._offset += length
        return self._record[self._offset - length : self._offset]

    def text(self) -> str:
        return (self.buffer() or b"").decode("utf-8", "replace")

    def texts(self) -> tuple[str, ...]:
        # Before 3.6 a closeSession had no body.
        if self._offset >= len(self._record):
            return ()
        return tuple(self.text() for _ in range(max(0, self.number())))

    def skip_acls(self) -> None:
        for _ in range(max(0, self.number())):
            self.number()
            self.text()
            self.text()
