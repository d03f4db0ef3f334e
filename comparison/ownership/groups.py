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

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_Value = TypeVar("_Value")
#: The group of what no group can be named for.
UNKNOWN = ""
#: The kinds of events that name a group, and a group with a topic.
NAMING = ("member_started", "authority_named", "offset_written", "final_offset", "group_changed")
NAMING_TOPICS = ("authority_named", "offset_written", "final_offset")


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
            ordered((*self.groups, *other.groups)),
            ordered((*self.topics, *other.topics)),
            ordered((*self.assigned, *other.assigned)),
        )


def ordered(values: Iterable[_Value]) -> tuple[_Value, ...]:
    """The values in order, without repeats."""
    return tuple(sorted(set(values), key=repr))


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

    @classmethod
    def of_events(cls, events: Iterable[Mapping[str, Any]]) -> Memberships:
        """Of all events of a run."""
        started, groups, topics, assigned = [], [], [], []
        for event in events:
            kind = event["kind"]
            if kind in NAMING:
                groups.append(event["group"])
            if kind in NAMING_TOPICS:
                topics.append((event["group"], event["topic"]))
            elif kind == "member_started":
                started.append(event)
            elif kind == "partitions_assigned":
                assigned += [(event["process"], event["member"], each["topic"]) for each in event["partitions"]]
        return cls.of(started, NamedGroups(ordered(groups), ordered(topics), ordered(assigned)))

    def group(self, process: str | None, member: str | None) -> str:
        """The group of a member of a process; UNKNOWN if nobody can say."""
        if (process or "", member) in self._of_member:
            return self._of_member[process or "", member]
        if (process or "") in self._of_process:
            return self._of_process[process or ""]
        return self.names[0] if len(self.names) == 1 else UNKNOWN

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
