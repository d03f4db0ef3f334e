"""Turns ZooKeeper's transaction log into a trace after the run: what ZooKeeper itself held.

So no observer takes part in the herd. Times come from the transactions (wall clock, milliseconds) and are converted
to the monotonic clock by one pair of readings. The epoch of an owner is the zxid of its node's creation.

The writer of an offset is found by its session: the member whose id node was created in that session at any time,
since a returning member commits before it registers again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from kernel.clock import NS_PER_MS, SystemClock
from kernel.decimals import signed_decimal
from kernel.trace.writer import TraceIdentity, TraceWriter
from kernel.zookeeper import paths

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from comparison.scenarios.testbed.observed_offsets import OffsetWrite
    from kernel.clock import Clock
    from kernel.zookeeper.paths import GroupPartition


class Transaction(Protocol):
    """One transaction of the log (kernel.zookeeper.txnlog)."""

    @property
    def zxid(self) -> int: ...
    @property
    def session(self) -> int: ...
    @property
    def cxid(self) -> int: ...
    @property
    def time_ms(self) -> int: ...
    @property
    def op(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def data(self) -> bytes | None: ...
    @property
    def removed_paths(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class ObservedEvent:
    """One event, with ZooKeeper's wall-clock time."""

    time_ms: int
    kind: str
    fields: Mapping[str, Any]


def session_name(session: int) -> str:
    """A session id as ZooKeeper prints it."""
    return f"0x{session & (2**64 - 1):x}"


class Observed:
    """Turns transactions, in order, into events. `members` maps sessions to their members."""

    def __init__(self, members: Mapping[int, str]) -> None:
        self._members = members
        self._owners: dict[str, tuple[str, int]] = {}  # owner node -> thread id, zxid
        self._ids: dict[str, int] = {}  # id node -> session

    def events_of(self, transaction: Transaction) -> Iterator[ObservedEvent]:
        """The events of one transaction; none if it is not about groups."""
        if transaction.op == "closeSession":
            # When the server expires a session, closeSession has no request number of the client.
            reason = "session" if transaction.cxid == 0 else "leave"
            for path in transaction.removed_paths:
                yield from self._gone(transaction, path, reason)
            return
        if transaction.op == "delete":
            reason = "leave" if paths.parse_member_id(transaction.path) else "delete"
            yield from self._gone(transaction, transaction.path, reason)
        elif transaction.op in ("create", "setData"):
            yield from self._written(transaction, transaction.path)

    def _written(self, transaction: Transaction, path: str) -> Iterator[ObservedEvent]:
        text = (transaction.data or b"").decode("utf-8", errors="replace")
        session = session_name(transaction.session)
        if member := paths.parse_member_id(path):
            if transaction.op == "create":
                self._ids[path] = transaction.session
                group, consumer_id = member
                joined = {"group": group, "id": consumer_id, "session": session}
                yield ObservedEvent(transaction.time_ms, "group_member_joined", joined)
        elif partition := paths.parse_owner(path):
            self._owners[path] = (text, transaction.zxid)
            fields = _partition(partition) | {"owner": text, "epoch": transaction.zxid, "session": session}
            yield ObservedEvent(transaction.time_ms, "authority_named", fields)
        elif (partition := paths.parse_offset(path)) and (offset := signed_decimal(text)) is not None:
            by = self._members.get(transaction.session, f"session:{session}")
            fields = {"offset": offset, "by": by, "epoch": transaction.zxid, "session": session}
            yield ObservedEvent(transaction.time_ms, "offset_written", _partition(partition) | fields)

    def _gone(self, transaction: Transaction, path: str, reason: str) -> Iterator[ObservedEvent]:
        if member := paths.parse_member_id(path):
            session = session_name(self._ids.pop(path, transaction.session))
            group, consumer_id = member
            fields: dict[str, object] = {"group": group, "id": consumer_id, "reason": reason, "session": session}
            yield ObservedEvent(transaction.time_ms, "group_member_left", fields)
        elif (partition := paths.parse_owner(path)) and path in self._owners:
            owner, zxid = self._owners.pop(path)
            fields = _partition(partition) | {"owner": owner, "epoch": zxid, "reason": reason}
            yield ObservedEvent(transaction.time_ms, "authority_cleared", fields)


def _partition(partition: GroupPartition) -> dict[str, object]:
    return {"group": partition.group, "topic": partition.topic, "partition": partition.partition}


def members_by_session(transactions: Iterable[Transaction]) -> dict[int, str]:
    """The member that was registered in each session; the first one if there were several."""
    members: dict[int, str] = {}
    for transaction in transactions:
        if transaction.op == "create" and (member := paths.parse_member_id(transaction.path)):
            _, consumer_id = member
            members.setdefault(transaction.session, consumer_id)
    return members


class ReplayClock:
    """A clock that is set to the wall-clock time of a transaction."""

    def __init__(self, *, monotonic_ns: int, wall_ms: int) -> None:
        self._ahead_ns = monotonic_ns - wall_ms * NS_PER_MS
        self._wall_ms = wall_ms

    def monotonic_ns(self) -> int:
        return self._wall_ms * NS_PER_MS + self._ahead_ns

    def wall_ms(self) -> int:
        return self._wall_ms

    def stand_at(self, wall_ms: int) -> None:
        self._wall_ms = wall_ms


class MonotonicReplay:
    """The same for times of the monotonic clock, with one pair of the system's readings."""

    def __init__(self, system: Clock) -> None:
        self._ahead_ns = system.monotonic_ns() - system.wall_ms() * NS_PER_MS
        self._ns = system.monotonic_ns()

    def monotonic_ns(self) -> int:
        return self._ns

    def wall_ms(self) -> int:
        return (self._ns - self._ahead_ns) // NS_PER_MS

    def stand_at_ns(self, ns: int) -> None:
        self._ns = ns


def write_offsets(writes: Sequence[OffsetWrite], path: Path, identity: TraceIdentity, group: str) -> None:
    """Write the trace of a group's offsets in a ZooKeeper that is not ours."""
    clock = MonotonicReplay(SystemClock())
    writer = TraceWriter(path, identity, clock=clock)
    for write in writes:
        clock.stand_at_ns(write.ns)
        writer.emit(
            "offset_written",
            cause=f"zxid:{write.zxid}",
            group=group,
            topic=write.partition.topic,
            partition=write.partition.partition,
            offset=write.offset,
            by=write.by,
            epoch=write.zxid,
        )
    writer.close()


def write_observed(transactions: Iterable[Transaction], path: Path, identity: TraceIdentity, clock: ReplayClock) -> int:
    """Write the observer's trace to `path`; its number of events."""
    kept = list(transactions)
    observed = Observed(members_by_session(kept))
    writer = TraceWriter(path, identity, clock=clock)
    count = 0
    for transaction in kept:
        for event in observed.events_of(transaction):
            clock.stand_at(event.time_ms)
            cause = f"zxid:{transaction.zxid}"
            writer.emit(event.kind, cause=cause, **event.fields)
            count += 1
    writer.close()
    return count
