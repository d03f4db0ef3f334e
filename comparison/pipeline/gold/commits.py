"""Commits with the partition's owner, in the order in which the authority saw them.

Every commit gets the owner at that moment by the authority, the group's generation, and whether the sender was known. A
write while the partition has no owner is not stale, but it may still move an offset back.

There are two kinds of refusal. A commit is *fenced* if it carries an old generation or an unknown member id. The
refusal of a member of the group between two generations is the protocol's ordinary "not now". In a KIP-848 group every
member has an epoch of its own, so a commit is old by that one; and a member whose epoch rose while its commit was under
way is refused as ordinarily, unless the commit is from before it joined.

Between processes of different boots a commit is stale or old, or moves back, only if it does wherever within the
tolerance its moment lies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from comparison.pipeline.gold.last_before import LastBefore, Rows
from comparison.pipeline.measured import Acting
from comparison.pipeline.measured_offsets import FinalOffsets
from comparison.pipeline.silver.arrays import (
    NOWHERE,
    as_of,
    codes,
    ends,
    integers,
    previous,
    running,
    starts,
    taken,
    together,
)
from comparison.pipeline.silver.naming import WHERE, Names, is_another, keys_of
from comparison.pipeline.silver.offsets import FINAL, REFUSED, RESET, STARTED, WRITTEN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from comparison.pipeline.silver.context import Context, GroupMoment

#: Errors for a sender that may not, or no longer, commit: Kafka's names, and those of `server`.
FENCING_ERRORS = frozenset(
    {
        "ILLEGAL_GENERATION",
        "UNKNOWN_MEMBER_ID",
        "FENCED_INSTANCE_ID",
        "FENCED_MEMBER_EPOCH",
        "STALE_MEMBER_EPOCH",
        "UNKNOWN_CONSUMER",
        "PARTITION_NOT_ASSIGNED",
    }
)
#: The states of a group between two generations.
BETWEEN_GENERATIONS = frozenset({"PreparingRebalance", "CompletingRebalance"})
ACCEPTED = "accepted"
#: One row a commit, as judged; `owner` is the partition's at that moment, null where it had none.
COMMIT_SCHEMA = pa.schema(
    [
        *WHERE,
        ("t_ns", pa.int64()),
        ("offset", pa.int64()),
        ("by", pa.string()),
        ("epoch", pa.int64()),
        ("outcome", pa.string()),  #: accepted, or the error it was refused with
        ("owner", pa.string()),
        ("is_stale", pa.bool_()),
        ("is_old", pa.bool_()),
        ("is_fenced", pa.bool_()),
        ("moved_back_by", pa.int64()),
    ]
)
#: A commit is judged when it arrives and recorded when it is durable, so a generation that began less than this before
#: the record does not make it old.
IN_FLIGHT_NS = 100_000_000

_NO_EPOCH, _NEVER = -1, np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Judged:
    """The commits, starts of deliveries and resets of some partitions, in order, with what was true of each."""

    rows: pa.Table  #: OFFSET_SCHEMA, of these kinds
    owner: list[str | None]  #: None: nobody
    is_stale: NDArray[np.bool_]
    moved_back_by: NDArray[np.int64]  #: 0: it did not move back
    is_old: NDArray[np.bool_]
    is_fenced: NDArray[np.bool_]
    starts_behind: NDArray[np.bool_]
    resets_behind: NDArray[np.bool_]  #: auto.offset.reset set a position there

    def commits(self) -> pa.Table:
        """COMMIT_SCHEMA."""
        rows = self.rows.append_column("owner", pa.array(self.owner, pa.string()))
        outcome = pa.compute.if_else(pa.compute.equal(rows["kind"], WRITTEN), ACCEPTED, rows["error"])
        judged_as = {
            "is_stale": self.is_stale,
            "is_old": self.is_old,
            "is_fenced": self.is_fenced,
            "moved_back_by": self.moved_back_by,
        }
        columns = {name: rows[name] for name in rows.column_names} | judged_as | {"outcome": outcome}
        table = pa.table({name: columns[name] for name in COMMIT_SCHEMA.names}, schema=COMMIT_SCHEMA)
        return table.filter(pa.compute.is_in(rows["kind"], pa.array([WRITTEN, REFUSED])))


def judged(offsets: pa.Table, naming: pa.Table, context: Context) -> Judged:
    """Judge every commit, start of deliveries and reset; `offsets` and `naming` are those of some partitions, whole."""
    offsets = offsets.filter(pa.compute.is_in(offsets["kind"], pa.array([WRITTEN, REFUSED, STARTED, RESET])))
    both = pa.concat_tables([table.select(["group", "topic", "partition"]) for table in (offsets, naming)])
    keys, _ = keys_of(both)
    mine, named_keys = keys[: len(offsets)], keys[len(offsets) :]
    order = np.lexsort((integers(offsets["seq"]), integers(offsets["t_ns"]), mine))
    offsets, mine = offsets.take(order), mine[order]
    t_ns, seq = integers(offsets["t_ns"]), integers(offsets["seq"])
    kinds = np.array(offsets["kind"].to_pylist(), dtype=object)
    written = kinds == WRITTEN
    named = as_of((mine, t_ns, seq), (named_keys, integers(naming["t_ns"]), integers(naming["seq"])))
    owner_names = naming["owner"].to_pylist()
    owner = [(owner_names[row] or None) if row != NOWHERE else None for row in named.tolist()]
    by = offsets["by"].to_pylist()
    offset = integers(offsets["offset"])
    of_group = _GroupHistory(context.moments, offsets, t_ns, seq)
    is_behind = offset < _accepted_before(mine, t_ns, offset, written)
    epoch = integers(offsets["epoch"], null=_NO_EPOCH)
    fencing = np.array([error in FENCING_ERRORS for error in offsets["error"].to_pylist()], dtype=np.bool_)
    found = Judged(
        rows=offsets,
        owner=owner,
        # To a coordinator an 0.8 consumer is no member: it signs with its client id, which is the group's name.
        is_stale=np.array(
            [
                sender != group and is_another(named_owner, sender)
                for named_owner, sender, group in zip(owner, by, offsets["group"].to_pylist(), strict=True)
            ],
            dtype=np.bool_,
        ),
        moved_back_by=_moved_back_by(mine, offset, written),
        is_old=written & (epoch >= 0) & (epoch < of_group.generation),
        is_fenced=(kinds == REFUSED) & fencing & ~of_group.is_too_early,
        starts_behind=(kinds == STARTED) & is_behind,
        resets_behind=(kinds == RESET) & is_behind,
    )
    if context.boots:
        _acquit(
            found, Rows(mine, t_ns, seq, _boots(offsets["process"].to_pylist(), context)), naming, named_keys, context
        )
    return found


def _boots(processes: Sequence[str], context: Context) -> NDArray[np.int64]:
    """The numbers of the processes' boots."""
    number = {boot: place for place, boot in enumerate(sorted({*context.boots.values()}))}
    return _column([number.get(context.boots.get(process, ""), len(number)) for process in processes])


def _acquit(found: Judged, asked: Rows, naming: pa.Table, named_keys: NDArray[np.int64], context: Context) -> None:
    """Take back what is not certain, for the clocks of different boots leave it open what was last before a commit."""
    tolerance_ns = context.tolerance_ns
    places = (integers(naming["t_ns"]), integers(naming["seq"]), _boots(naming["process"].to_pylist(), context))
    named, owners = LastBefore(Rows(named_keys, *places), tolerance_ns), naming["owner"].to_pylist()
    by = found.rows["by"].to_pylist()
    for row in np.flatnonzero(found.is_stale).tolist():
        last = named.of(asked, row)
        found.is_stale[row] = bool(last) and all(is_another(owners[each] or None, by[row]) for each in last)
    written = np.flatnonzero(np.array(found.rows["kind"].to_pylist(), dtype=object) == WRITTEN)
    before = LastBefore(asked.taken(written), tolerance_ns, inclusive=False)
    offset = integers(found.rows["offset"])
    for row in np.flatnonzero(found.moved_back_by).tolist():
        last = before.of(asked, row)
        found.moved_back_by[row] = max(0, int(offset[written[last]].min() - offset[row])) if last else 0
    if found.is_old.any():
        _acquit_old(found, asked, context)


def _acquit_old(found: Judged, asked: Rows, context: Context) -> None:
    fences = _fences(context.moments)
    mine, whose = _of_whom(found.rows, fences)
    known = Rows(
        whose,
        _column([each.t_ns for each in fences]) + IN_FLIGHT_NS,
        _column([each.seq for each in fences]),
        _boots([each.process for each in fences], context),
    )
    begun = LastBefore(known, context.tolerance_ns)
    epoch = integers(found.rows["epoch"], null=_NO_EPOCH)
    for row in np.flatnonzero(found.is_old).tolist():
        last = begun.of(asked._replace(keys=mine), row)
        found.is_old[row] = bool(last) and all(epoch[row] < _number(fences[each]) for each in last)


def _fences(moments: Sequence[GroupMoment]) -> list[GroupMoment]:
    """What tells old commits from others: in groups that give their members epochs those, else the generations."""
    with_epochs = {each.group for each in moments if each.epoch is not None}
    return [each for each in moments if (each.epoch if each.group in with_epochs else each.state) is not None]


def _number(fence: GroupMoment) -> int:
    return (fence.generation or 0) if fence.epoch is None else fence.epoch


def _of_whom(rows: pa.Table, fences: Sequence[GroupMoment]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Keys of the rows, and of the fences that hold for them: of the sender, or of its whole group."""
    names = Names()
    groups, senders = names.column(rows["group"]), names.column(rows["by"])
    (everybody,) = names.numbers([""])
    with_epochs = names.numbers(sorted({each.group for each in fences if each.epoch is not None}))
    senders = np.where(np.isin(groups, with_epochs), senders, everybody)
    known = names.numbers([each.group for each in fences]), names.numbers([each.member or "" for each in fences])
    both = together(*(np.concatenate(pair) for pair in zip((groups, senders), known, strict=True)))
    return both[: len(rows)], both[len(rows) :]


def _moved_back_by(keys: NDArray[np.int64], offset: NDArray[np.int64], written: NDArray[np.bool_]) -> NDArray[np.int64]:
    """By how many records each commit moved the committed offset back; rows are in order."""
    rows = np.flatnonzero(written)
    before = previous(starts(keys[rows]))
    back = np.zeros(len(keys), dtype=np.int64)
    back[rows] = np.where(before == NOWHERE, 0, np.maximum(0, offset[rows][before] - offset[rows]))
    return back


def _accepted_before(
    keys: NDArray[np.int64], t_ns: NDArray[np.int64], offset: NDArray[np.int64], written: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """The offset committed last before each row. A commit accepted shortly before may have come after it was read."""
    rows = np.flatnonzero(written)
    found = as_of((keys, t_ns - IN_FLIGHT_NS), (keys[rows], t_ns[rows]))
    return taken(offset[rows], found, np.iinfo(np.int64).min)


class _GroupHistory:
    """The state of the group, and of the sender, at each of some rows."""

    def __init__(
        self, moments: Sequence[GroupMoment], rows: pa.Table, t_ns: NDArray[np.int64], seq: NDArray[np.int64]
    ) -> None:
        names = Names()
        groups, senders = names.column(rows["group"]), names.column(rows["by"])
        changed = [each for each in moments if each.state is not None]
        members = [each for each in moments if each.member is not None]
        at = _column([each.t_ns for each in changed])
        order = _column([each.seq for each in changed])
        of_group = names.numbers([each.group for each in changed])
        # A new generation counts only after the commits in flight at its start.
        fences = _fences(moments)
        mine, fenced = _of_whom(rows, fences)
        begun = _column([each.t_ns for each in fences]) + IN_FLIGHT_NS, _column([each.seq for each in fences])
        later = as_of((mine, t_ns, seq), (fenced, *begun))
        self.generation = taken(_column([_number(each) for each in fences]), later, np.iinfo(np.int64).min)
        between = np.array([each.state in BETWEEN_GENERATIONS for each in changed], dtype=np.bool_)
        is_between = taken(between, as_of((groups, t_ns, seq), (of_group, at, order)), otherwise=False)
        known = np.array([each.member_is_known for each in members], dtype=np.bool_)
        whose = names.numbers([each.group for each in members]), names.numbers([each.member for each in members])
        count = len(rows)
        both = together(*(np.concatenate(pair) for pair in zip((groups, senders), whose, strict=True)))
        when = (_column([each.t_ns for each in members]), _column([each.seq for each in members]))
        latest = as_of((both[:count], t_ns, seq), (both[count:], *when))
        # In a group with epochs, a commit that a member sent since it joined is at most too early or too late.
        since = taken(_column(_first_epochs(members)), latest, _NEVER)
        of_member = np.isin(groups, names.numbers([each.group for each in fences if each.epoch is not None]))
        since_joined = integers(rows["epoch"], null=_NO_EPOCH) >= since
        self.is_too_early = taken(known, latest, otherwise=False) & np.where(of_member, since_joined, is_between)


def _first_epochs(members: Sequence[GroupMoment]) -> list[int]:
    """At each moment, the first epoch that the member has had since it joined; _NEVER before it has any."""
    first: dict[tuple[str, str | None], int] = {}
    found = []
    for each in members:
        who = each.group, each.member
        if each.epoch is None:
            first.pop(who, None)
        found.append(first.get(who, _NEVER) if each.epoch is None else first.setdefault(who, each.epoch))
    return found


def _column(values: Sequence[int]) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def final_offsets(offsets: pa.Table) -> FinalOffsets | None:
    """Partitions whose committed offset was read at the end, how many of them were behind the last commit accepted by
    then, and how many beyond the end of their log; None if none was read.
    """
    keys, _ = keys_of(offsets)
    order = np.lexsort((integers(offsets["seq"]), integers(offsets["t_ns"]), keys))
    offsets, keys = offsets.take(order), keys[order]
    kinds = np.array(offsets["kind"].to_pylist(), dtype=object)
    t_ns, offset, end = integers(offsets["t_ns"]), integers(offsets["offset"]), integers(offsets["end"])
    final, written = np.flatnonzero(kinds == FINAL), np.flatnonzero(kinds == WRITTEN)
    final = final[np.append(keys[final][1:] != keys[final][:-1], True)] if len(final) else final  # the last one of each
    if not len(final):
        return None
    # A commit this shortly before the reading may have come after it.
    found = as_of((keys[final], t_ns[final] - IN_FLIGHT_NS), (keys[written], t_ns[written]))
    accepted = taken(offset[written], found, np.iinfo(np.int64).min)
    return FinalOffsets(
        read=len(final), behind=int((offset[final] < accepted).sum()), beyond=int((offset[final] > end[final]).sum())
    )


def acting_of(offsets: pa.Table, naming_by: pa.Table) -> list[Acting]:
    """Stretches in which one broker alone accepted what belongs to a group; both ends are moments of acceptance.

    `naming_by` has group, process, t_ns and seq of the owners that brokers named.
    """
    writes = offsets.filter(
        pa.compute.and_(pa.compute.equal(offsets["kind"], WRITTEN), pa.compute.equal(offsets["role"], "broker"))
    )
    columns = ["group", "process", "t_ns", "seq"]
    rows = pa.concat_tables([writes.select(columns), naming_by.select(columns)])
    groups, group_names = codes(rows["group"])
    processes, process_names = codes(rows["process"])
    is_write = np.arange(len(rows)) < len(writes)
    order = np.lexsort((integers(rows["seq"]), integers(rows["t_ns"]), groups))
    groups, processes, t_ns = groups[order], processes[order], integers(rows["t_ns"])[order]
    first = starts(groups, processes)
    commits = running(is_write[order].astype(np.int64), first)
    begins, lasts = ends(first)
    return [
        Acting(
            group=str(group_names[groups[begin]]),
            process=str(process_names[processes[begin]]),
            from_ns=int(t_ns[begin]),
            until_ns=int(t_ns[end]),
            commits=int(commits[end]),
        )
        for begin, end in zip(begins.tolist(), lasts.tolist(), strict=True)
    ]
