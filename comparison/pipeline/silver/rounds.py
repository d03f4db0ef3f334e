"""The rounds of a whole group, and the phases of its members' rebalances; plain Python on the events that mark them.

A *round* is one rebalance of the group. Under a coordinator it lasts from the moment that the coordinator prepares a
generation until that generation's assignment is stored. Without one, overlapping rebalances of a group's members form a
round, so that a member that is notified a little later belongs to the same round.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from comparison.pipeline.measured import GroupChanged, MemberPhase, Round

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from comparison.pipeline.measured import GroupEvent
    from comparison.pipeline.silver.groups import Memberships

#: The pseudo phase that is a whole rebalance, from its start to its end.
WHOLE = "rebalance"
_NO_MORE: Mapping[str, Sequence[Any]] = MappingProxyType({})
#: The states of a group that a round goes through, by Kafka's names.
PREPARING, COMPLETING, STABLE = "PreparingRebalance", "CompletingRebalance", "Stable"


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


def rounds_of(group: Sequence[GroupEvent], phases: Sequence[MemberPhase]) -> list[Round]:
    """The rounds in order: a coordinator's generations, or overlapping rebalances of members without a coordinator."""
    changed = [event for event in group if isinstance(event, GroupChanged)]
    return _generations(changed) if changed else _stretches(phases)


def _generations(changed: Sequence[GroupChanged]) -> list[Round]:
    found: list[Round] = []
    open_: dict[str, Round] = {}
    for event in changed:
        now = open_.get(event.group)
        if event.state == PREPARING and (now is None or now.gathered_ns is not None):
            if now is not None:  # restarted before its assignment was stored
                found.append(replace(now, until_ns=event.t_ns))
            open_[event.group] = Round(event.t_ns, None, group=event.group)
        elif event.state == COMPLETING:
            begun = open_.get(event.group, Round(event.t_ns, None, group=event.group))
            open_[event.group] = replace(
                begun, gathered_ns=event.t_ns, generation=event.generation, members=event.members
            )
        elif event.state not in (PREPARING, COMPLETING) and now is not None:
            del open_[event.group]
            if now.gathered_ns is not None:
                found.append(replace(now, until_ns=event.t_ns if event.state == STABLE else None))
    found += [each for each in open_.values() if each.gathered_ns is not None]
    return _in_order(found)


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
