"""Which groups a run has, which of them each member is in, and which topics each of them reads.

Several groups may read one topic, and one process may have members of several. What a member does belongs to its own
group: the one in which its process started that member, or, where that was not traced, the only one in which its
process started any, or the only one of the run. Otherwise nobody can say, and it belongs to the group UNKNOWN, which
owns nothing and gets no records; whoever draws conclusions has to ask for it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from comparison.pipeline.silver.arrays import codes, together

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from comparison.pipeline.bronze.tables import Tables

_Value = TypeVar("_Value")
#: The group of what no group can be named for.
UNKNOWN = ""
_NAMING = ("member_started", "authority_named", "offset_written", "final_offset", "group_changed")
_NAMING_TOPICS = ("authority_named", "offset_written", "final_offset")


@dataclass(frozen=True, slots=True)
class NamedGroups:
    """The groups that a part of a run names, and the topics of theirs that it names; those of parts add up.

    Each is in order, without repeats.
    """

    groups: tuple[str, ...] = ()
    topics: tuple[tuple[str, str], ...] = ()  #: (group, topic)
    assigned: tuple[tuple[str, str | None, str], ...] = ()  #: (process, member, topic)

    def __or__(self, other: NamedGroups) -> NamedGroups:
        return NamedGroups(
            _ordered((*self.groups, *other.groups)),
            _ordered((*self.topics, *other.topics)),
            _ordered((*self.assigned, *other.assigned)),
        )


def _ordered(values: Iterable[_Value]) -> tuple[_Value, ...]:
    return tuple(sorted(set(values), key=repr))


def groups_of(tables: Tables) -> NamedGroups:
    """The groups that events name."""
    assigned: set[tuple[str, str | None, str]] = set()
    if "partitions_assigned" in tables:
        table = tables["partitions_assigned"]
        listed = table["partitions"].combine_chunks()
        rows = pc.list_parent_indices(listed)
        topics = pc.struct_field(pc.list_flatten(listed), "topic")
        assigned = _distinct({name: table[name].take(rows) for name in ("process", "member")} | {"topic": topics})
    return NamedGroups(
        _ordered(group for kind in _NAMING if kind in tables for group in pc.unique(tables[kind]["group"]).to_pylist()),
        _ordered(
            pair
            for kind in _NAMING_TOPICS
            if kind in tables
            for pair in _distinct({name: tables[kind][name] for name in ("group", "topic")})
        ),
        _ordered(assigned),
    )


def _distinct(columns: Mapping[str, Any]) -> set[tuple[Any, ...]]:
    found = pa.table(dict(columns)).group_by([*columns], use_threads=False).aggregate([])
    return set(zip(*(found[name].to_pylist() for name in columns), strict=True))


@dataclass(frozen=True, slots=True)
class Memberships:
    """Who is in which group of a run, and which topics the groups read."""

    names: tuple[str, ...] = ()  #: of all groups, in order
    _of_member: Mapping[tuple[str, str | None], str] = field(default_factory=dict)
    _of_process: Mapping[str, str] = field(default_factory=dict)
    _reading: Mapping[str, frozenset[str]] = field(default_factory=dict)  #: topics by group

    @classmethod
    def of(cls, started: Iterable[Mapping[str, Any]], named: NamedGroups) -> Memberships:
        """`started` are the run's `member_started` events, `named` the groups of all its events."""
        by_member: defaultdict[tuple[str, str | None], set[str]] = defaultdict(set)
        by_process: defaultdict[str, set[str]] = defaultdict(set)
        for row in started:
            by_member[row["process"], row["member"]].add(row["group"])
            by_process[row["process"]].add(row["group"])
        known = cls(
            tuple(sorted(named.groups)),
            {member: _only(groups) for member, groups in by_member.items()},
            {process: _only(groups) for process, groups in by_process.items()},
        )
        reading: defaultdict[str, set[str]] = defaultdict(set)
        for group, topic in named.topics:
            reading[group].add(topic)
        for process, member, topic in named.assigned:
            reading[known.group(process, member)].add(topic)
        return cls(
            known.names,
            known._of_member,
            known._of_process,
            {group: frozenset(topics) for group, topics in reading.items()},
        )

    def group(self, process: str | None, member: str | None) -> str:
        """The group of a member of a process; UNKNOWN if nobody can say."""
        if (process or "", member) in self._of_member:
            return self._of_member[process or "", member]
        if (process or "") in self._of_process:
            return self._of_process[process or ""]
        return self.names[0] if len(self.names) == 1 else UNKNOWN

    def column(self, table: pa.Table) -> pa.ChunkedArray:
        """The group of each row; `table` has the process and the member."""
        if len(self.names) <= 1:  # then it is the group of everything
            only = self.names[0] if self.names else UNKNOWN
            return pa.chunked_array([pa.repeat(pa.scalar(only, pa.string()), len(table))])
        processes, process_names = codes(table["process"])
        members, member_names = codes(table["member"])
        _, first, places = np.unique(together(processes, members), return_index=True, return_inverse=True)
        groups = [self.group(process_names[processes[row]], member_names[members[row]]) for row in first.tolist()]
        return pa.chunked_array([pa.array(groups, pa.string()).take(pa.array(places))])

    def readers(self, topic: str) -> tuple[str, ...]:
        """The groups that should have all of a topic.

        The only group reads everything. Of several, those that are named with the topic or with none at all; all of
        them if that is no group.
        """
        if len(self.names) <= 1:
            return self.names or (UNKNOWN,)
        found = tuple(name for name in self.names if topic in self._reading.get(name, {topic}))
        return found or self.names


def _only(groups: set[str]) -> str:
    return next(iter(groups)) if len(groups) == 1 else UNKNOWN
