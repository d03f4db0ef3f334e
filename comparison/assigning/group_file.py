"""Reads a group from a TOML file, and reports everything that is wrong with it, each with its line.

strategies = ["range", "sticky"]
then = ["leave billing-3", "join late:orders"]

[topics]
orders = 48

[[members]]
name = "billing"
count = 12                # billing-0 to billing-11
topics = ["orders"]       # without: all

`docs/assignment.md` has the format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.assigning.group import MEMBERS_MAX, PARTITIONS_MAX, STREAMS_MAX, Group, GroupMember, Plan, checked_size
from comparison.assigning.notation import (
    check_new,
    checked_name,
    checked_topic,
    known,
    parse_step,
)
from comparison.assigning.strategies import chosen
from comparison.toml.files import FileReader, located_in, read_toml_text
from kernel.errors import ConfigurationError, SeveralErrors
from kernel.suggestions import unknown

if TYPE_CHECKING:
    from pathlib import Path

    from comparison.toml.places import Path as KeyPath

_KEYS = ("strategies", "then", "topics", "members")
_MEMBER_KEYS = ("name", "count", "topics", "streams", "instance")


def read_plan(path: Path) -> Plan:
    """The plan of a file. Raises `EnvironmentFault` if it cannot be read, `ConfigurationError` for its content."""
    return parse_plan(read_toml_text(path, "group"), str(path))


def parse_plan(text: str, name: str) -> Plan:
    """The plan in a TOML text; `name` is the file's. Raises `SeveralErrors`."""
    found = located_in(text, name, "docs/assignment.md")
    reader = _Reader(found)
    plan = reader.read()
    if plan is None:
        raise SeveralErrors(reader.texts(name))
    return plan


class _Reader(FileReader):
    def read(self) -> Plan | None:
        content = self._found.content
        for key in content:
            if key not in _KEYS:
                self._complain((key,), unknown("key", key, _KEYS))
        sizes = self._topics(content.get("topics"))
        members = self._members(content.get("members"), sizes)
        strategies = self._strategies(content.get("strategies", []))
        if self.complaints:
            return None
        group = Group(sizes, tuple(members))
        with self._complaining(()):
            checked_size(group)
        if self.complaints:
            return None
        steps = []
        for number, text in enumerate(self._texts(("then",), content.get("then", []))):
            verb, _, rest = text.strip().partition(" ")
            try:
                step, group = parse_step(verb, rest.strip(), group)
                steps.append(step)
            except ConfigurationError as error:
                self._complain(("then", number), str(error))
                break  # the group is not the one that later steps expect
        if self.complaints:
            return None
        return Plan(Group(sizes, tuple(members)), tuple(steps), strategies)

    # -- parts -------------------------------------------------------------------------------------------------------

    def _topics(self, table: object) -> dict[str, int]:
        sizes: dict[str, int] = {}
        if not isinstance(table, dict) or not table:
            self._complain(("topics",), "[topics] is missing. Write a topic a line, such as orders = 12")
            return sizes
        for name, size in table.items():
            with_size = self._number(("topics", name), size, 0, PARTITIONS_MAX)
            with self._complaining(("topics", name)):
                sizes[checked_topic(name)] = with_size
        return sizes

    def _members(self, tables: object, sizes: dict[str, int]) -> list[GroupMember]:
        members: list[GroupMember] = []
        if not isinstance(tables, list) or not tables:
            self._complain(("members",), '[[members]] is missing. Write a table for each, with name = "C0"')
            return members
        for number, table in enumerate(tables):
            path: KeyPath = ("members", number)
            if not isinstance(table, dict):
                self._complain(path, "not a table. Write [[members]]")
                continue
            for key in table:
                if key not in _MEMBER_KEYS:
                    self._complain((*path, key), unknown("key", key, _MEMBER_KEYS))
            new = self._alike(path, table, sizes)
            with self._complaining(path):
                check_new([*members, *new])
                members += new
        return members

    def _alike(self, path: KeyPath, table: dict[str, object], sizes: dict[str, int]) -> list[GroupMember]:
        """The members of one table: one, or `count` with numbers."""
        name, instance = (self._name((*path, key), table.get(key)) for key in ("name", "instance"))
        if "name" not in table:
            self._complain(path, "name is missing")
        topics = tuple(sizes)
        if "topics" in table:
            chosen_topics = self._texts((*path, "topics"), table["topics"])
            topics = tuple(dict.fromkeys(chosen_topics))
            for number, topic in enumerate(chosen_topics):
                with self._complaining((*path, "topics", number)):
                    known("topic", topic, sizes)
        streams = self._number((*path, "streams"), table.get("streams", 1), 1, STREAMS_MAX)
        count = self._number((*path, "count"), table.get("count", 1), 1, MEMBERS_MAX)
        suffixes = [f"-{number}" for number in range(count)] if "count" in table else [""]
        return [
            GroupMember(
                name=name + suffix, topics=topics, instance_id=instance + suffix if instance else None, streams=streams
            )
            for suffix in suffixes
        ]

    def _strategies(self, value: object) -> tuple[str, ...]:
        found: list[str] = []
        for number, name in enumerate(self._texts(("strategies",), value)):
            with self._complaining(("strategies", number)):
                found += chosen([name])
        return tuple(dict.fromkeys(found))

    # -- values ------------------------------------------------------------------------------------------------------

    def _name(self, path: KeyPath, value: object) -> str:
        if value is None:
            return ""
        if not isinstance(value, str):
            self._complain(path, f'{path[-1]} is {value!r:.60}. Use a text, such as "C0"')
            return ""
        with self._complaining(path):
            checked_name(value)
        return value

    def _number(self, path: KeyPath, value: object, least: int, most: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self._complain(path, f"{path[-1]} is {value!r:.60}. Use a whole number between {least} and {most}")
            return least
        return value

    def _texts(self, path: KeyPath, value: object) -> list[str]:
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            self._complain(path, f'{path[-1]} is not a list of texts. Write ["...", "..."]')
            return []
        return [str(each) for each in value]
