"""The rounds of a whole group, and the phases of its members' rebalances; plain Python on the events that mark them.

A *round* is one rebalance of the group. Under a coordinator it lasts from the moment that the coordinator prepares a
generation until that generation's assignment is stored. In a KIP-848 group each epoch of the group is a round: from the
moment that it rises until every member has reconciled to it, or it rises again. Without a coordinator, overlapping
rebalances of a group's members form a round, so that a member that is notified a little later belongs to the same one.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import groupby
from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from comparison.pipeline.measured import GroupChanged, MemberPhase, Round
from comparison.results.keys import WHOLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from comparison.ownership.groups import Memberships
    from comparison.pipeline.measured import GroupEvent

_NO_MORE: Mapping[str, Sequence[Any]] = MappingProxyType({})
#: The states of a group that a round goes through, by Kafka's names.
PREPARING, COMPLETING, STABLE = "PreparingRebalance", "CompletingRebalance", "Stable"
#: The same of a KIP-848 group, which may also go from epoch to epoch without leaving `Stable`.
ASSIGNING, RECONCILING = "Assigning", "Reconciling"


def phases_of(rows: Iterable[Mapping[str, Any]], memberships: Memberships) -> list[MemberPhase]:
    """The phases of members' rebalances (kernel.trace.events.PHASES), from the events that begin and end them.

    A phase lasts until the next one or the end of its attempt; one that never ended is left out. Between attempts a
    member is in no phase. What a member did before it received its id counts for the next id of its stream.
    """
    by_stream: defaultdict[tuple[str, int | None], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        by_stream[row["process"], row["stream"]].append(row)
    by_member: defaultdict[tuple[str, str | None], list[Mapping[str, Any]]] = defaultdict(list)
    for (process, _), events in by_stream.items():
        member = None
        for row in sorted(events, key=itemgetter("seq"), reverse=True):
            member = row["member"] if row["member"] is not None else member
            by_member[process, member].append(row)
    found = []
    for (process, member), events in by_member.items():
        end_ns = next_ns = None
        group = memberships.group(process, member)
        for row in sorted(events, key=itemgetter("seq"), reverse=True):
            until_ns, phase = (end_ns, WHOLE) if row["kind"] == "rebalance_started" else (next_ns, row.get("phase"))
            if phase is not None and until_ns is not None:
                found.append(
                    MemberPhase(
                        process=process,
                        member=member,
                        phase=phase,
                        from_ns=row["t_ns"],
                        until_ns=until_ns,
                        group=group,
                    )
                )
            next_ns = row["t_ns"]
            if row["kind"] == "rebalance_ended":
                end_ns = row["t_ns"]
    return sorted(found, key=attrgetter("from_ns", "process", "until_ns"))


#: One row a round; generation, members and `gathered_ns` are those of a coordinator's.
ROUND_SCHEMA = pa.schema(
    [
        ("round", pa.int64()),
        ("group", pa.string()),
        ("from_ns", pa.int64()),
        ("gathered_ns", pa.int64()),
        ("until_ns", pa.int64()),
        ("generation", pa.int64()),
        ("members", pa.int64()),
    ]
)


def round_table(rounds: Sequence[Round]) -> pa.Table:
    """ROUND_SCHEMA."""
    return _table_of(rounds, ROUND_SCHEMA, {"round": range(len(rounds))})


def _table_of(values: Sequence[Any], schema: pa.Schema, more: Mapping[str, Sequence[Any]] = _NO_MORE) -> pa.Table:
    """A row for each value, and a column for each attribute of it that the schema names."""
    columns = {name: more[name] if name in more else list(map(attrgetter(name), values)) for name in schema.names}
    return pa.table(columns, schema=schema)


#: One row a phase of a member's rebalance, WHOLE included; `member` is null when the member never learned its id.
PHASE_SCHEMA = pa.schema(
    [
        ("group", pa.string()),
        ("process", pa.string()),
        ("member", pa.string()),
        ("phase", pa.string()),
        ("from_ns", pa.int64()),
        ("until_ns", pa.int64()),
    ]
)


def phase_table(phases: Sequence[MemberPhase]) -> pa.Table:
    """PHASE_SCHEMA."""
    return _table_of(phases, PHASE_SCHEMA)


def whole_rounds(rounds: Iterable[Round]) -> dict[str, tuple[tuple[int, int], ...]]:
    """When the rounds that have ended began and ended, by group."""
    found: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for each in rounds:
        if each.until_ns is not None:
            found[each.group].append((each.from_ns, each.until_ns))
    return {group: tuple(sorted(of_one)) for group, of_one in found.items()}


def rounds_of(group: Sequence[GroupEvent], phases: Sequence[MemberPhase]) -> list[Round]:
    """The rounds in order: a coordinator's generations, a KIP-848 group's epochs, or, without a coordinator,
    overlapping rebalances of members.
    """
    changed = [event for event in group if isinstance(event, GroupChanged)]
    if not changed:
        return _stretches(phases)
    by_group: defaultdict[str, list[GroupChanged]] = defaultdict(list)
    for event in changed:
        by_group[event.group].append(event)
    return _in_order(each for of_group in by_group.values() for each in _of_group(of_group))


def _of_group(changed: Sequence[GroupChanged]) -> Iterator[Round]:
    """A group may change its type: then both kinds of rounds follow each other."""
    has_epochs = False  # until its states say so
    of_type = []
    for event in changed:
        if event.state in (ASSIGNING, RECONCILING):
            has_epochs = True
        elif event.state in (PREPARING, COMPLETING):
            has_epochs = False
        of_type.append(has_epochs)
    if not any(event.state in (PREPARING, COMPLETING) for event in changed):
        of_type = [True in of_type] * len(of_type)  # the first member of a KIP-848 group begins with `Stable`
    for by_epochs, events in groupby(zip(of_type, changed, strict=True), key=itemgetter(0)):
        yield from (_epochs if by_epochs else _generations)([event for _, event in events])


def _epochs(changed: Sequence[GroupChanged]) -> Iterator[Round]:
    now: Round | None = None
    epoch: int | None = None
    for event in changed:
        has_members = event.state in (ASSIGNING, RECONCILING, STABLE)
        if now is not None and (event.generation != epoch or not has_members):
            yield replace(now, until_ns=event.t_ns if has_members else None)
            now = None
        if event.generation != epoch and has_members:
            now = Round(event.t_ns, None, generation=event.generation, members=event.members, group=event.group)
        if event.state == STABLE and now is not None:
            yield replace(now, until_ns=event.t_ns)
            now = None
        if has_members:  # a coordinator that has been replaced may say so late
            epoch = event.generation
    if now is not None:
        yield now


def _generations(changed: Sequence[GroupChanged]) -> Iterator[Round]:
    now: Round | None = None
    for event in changed:
        if event.state == PREPARING and (now is None or now.gathered_ns is not None):
            if now is not None:  # restarted before its assignment was stored
                yield replace(now, until_ns=event.t_ns)
            now = Round(event.t_ns, None, group=event.group)
        elif event.state == COMPLETING:
            begun = now or Round(event.t_ns, None, group=event.group)
            now = replace(begun, gathered_ns=event.t_ns, generation=event.generation, members=event.members)
        elif event.state not in (PREPARING, COMPLETING) and now is not None:
            if now.gathered_ns is not None:
                yield replace(now, until_ns=event.t_ns if event.state == STABLE else None)
            now = None
    if now is not None and now.gathered_ns is not None:
        yield now


def _stretches(phases: Iterable[MemberPhase]) -> list[Round]:
    found: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for each in sorted((each for each in phases if each.phase == WHOLE), key=attrgetter("from_ns")):
        mine = found[each.group]
        if mine and each.from_ns <= mine[-1][1]:
            mine[-1] = mine[-1][0], max(mine[-1][1], each.until_ns)
        else:
            mine.append((each.from_ns, each.until_ns))
    return _in_order(Round(*ends, group=group) for group, stretches in found.items() for ends in stretches)


def _in_order(rounds: Iterable[Round]) -> list[Round]:
    return sorted(rounds, key=lambda each: (each.from_ns, each.group))
