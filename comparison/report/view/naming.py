"""Short names of members: `m1`, or `m1-0` for one of several in a process, and what else a table calls the same one."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from comparison.screen.natural_order import natural
from comparison.screen.number_ranges import number_ranges
from comparison.screen.printable import printable
from kernel.decimals import decimal
from kernel.designs import RECONCILING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from comparison.report.view.model import RunView

#: A name with more letters than these is shortened: it has to fit into a bar.
LETTERS_MAX = 12
#: A longer list of partitions is a number.
LISTED_MAX = 80
#: A partition's name: its topic's, and its number.
_NUMBERED = re.compile(r"(.*)-([0-9]{1,18})")
#: The suffix of a restarted process: m3, m3.2, m3.3.
_LATER_LIFE = re.compile(r"\.\d+$")
#: What a coordinator appends to a client's id; a member that joins again gets another.
_UUID = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


def place_of(name: str) -> str:
    """The member without the number of its life: m3 for m3.2, m3-0 for m3.2-0."""
    process, dash, stream = name.partition("-")
    return _LATER_LIFE.sub("", process) + dash + stream


def numbering(design: str) -> str:
    """What numbers the rebalances of a group."""
    return "epoch" if design in RECONCILING else "generation"


def named(partitions: Iterable[str], *, short: bool) -> str:
    """`0-2, 7` of one topic, `orders-0-2` of several."""
    found = []
    for topic, numbers in _numbers(partitions):
        text = number_ranges(numbers)
        found.append(text if short else f"{topic} {text}")
    return "; ".join(found)


def listed(partitions: Sequence[str]) -> str:
    """`orders-2, orders-5 to orders-7`, as the lanes name them, or as a number of many that are not neighbours."""
    ranges = [(topic, each) for topic, found in _numbers(partitions) for each in number_ranges(found).split(", ")]
    text = ", ".join(f"{topic}-{each.replace('-', f' to {topic}-')}" for topic, each in ranges)
    count = len(set(partitions))
    return text if len(text) <= LISTED_MAX or count == 1 else f"{count:,} partitions"


def _numbers(partitions: Iterable[str]) -> list[tuple[str, list[int]]]:
    """Of each topic."""
    by_topic: defaultdict[str, list[int]] = defaultdict(list)
    for name in partitions:
        if parts := _NUMBERED.fullmatch(name):
            by_topic[parts[1]].append(int(parts[2]))
    return [(topic, by_topic[topic]) for topic in sorted(by_topic, key=natural)]


def names_explained(views: Iterable[RunView]) -> list[str]:
    """What the parts of these members' names mean; empty if they are names of processes only."""
    members = sorted({member for view in views for member in view.members}, key=natural)
    numbered = next((name for name in members if re.search(r"-\d+$", name)), "")
    restarted = next((name for name in members if _LATER_LIFE.search(name.partition("-")[0])), "")
    found = []
    if numbered:
        process = numbered.rpartition("-")[0]
        found.append(
            f"{numbered}, {process}-1 and so on are members of the process {process}, or streams of its member, beside "
            "each other or one after the other; each owns partitions of its own"
        )
    if restarted:
        found.append(f"{restarted} is {place_of(restarted)} after it was started again; its lane is the same")
    return found


class MemberNames:
    """The short names of one run's members, by all their names in the tables."""

    def __init__(self, owners: Iterable[str], started: Iterable[Mapping[str, Any]]) -> None:
        """`owners` are `process/member/stream`; `started` has the process, member and stream of each that started."""
        places = [(str(row["process"]), str(row["member"] or ""), int(row["stream"] or 0)) for row in started]
        places += sorted(map(_parted, owners))
        units: dict[str, dict[tuple[str, int], None]] = {}
        for process, member, stream in places:
            units.setdefault(process, {})[_client(member), stream] = None
        self._short: dict[str, str] = {}
        self._by_unit: dict[tuple[str, str, int], str] = {}
        for process in sorted(units, key=natural):
            for number, unit in enumerate(units[process]):
                self._by_unit[process, *unit] = self._shortened(
                    process if len(units[process]) == 1 else f"{process}-{number}"
                )
        self._by_member: dict[str, dict[int, str]] = {}
        for process, member, stream in places:
            self._by_member.setdefault(member, {})[stream] = self._by_unit[process, _client(member), stream]
        self._members = dict.fromkeys(self._by_unit.values())

    @property
    def members(self) -> tuple[str, ...]:
        """Everyone who started, owned, or was named as an owner."""
        return tuple(self._members)

    @property
    def full(self) -> dict[str, str]:
        """The full names of those that had to be shortened."""
        return {short: printable(long) for long, short in self._short.items() if short != long}

    def of_owner(self, owner: str) -> str:
        """Of `process/member/stream`."""
        process, member, stream = _parted(owner)
        return self._by_unit.get((process, _client(member), stream)) or self._shortened(process)

    def of_authority(self, owner: str) -> str:
        """Of a member id, or of a thread's id `<consumer id>-<n>`."""
        consumer, _, number = owner.rpartition("-")
        streams = self._by_member.get(owner) or self._by_member.get(consumer) or {}
        stream = 0 if owner in self._by_member else decimal(number) or 0
        name = streams.get(stream) or next(iter(streams.values()), "") or self._shortened(owner)
        self._members[name] = None
        return name

    def of_member(self, member: str | None, process: str = "") -> str:
        """Of a member id, the first of its streams; of its process if it has no id yet."""
        streams = self._by_member.get(member or "", {}) if member else {}
        return next(iter(streams.values()), "") or self._shortened(process or member or "?")

    def of_whole(self, member: str | None, process: str = "") -> str:
        """Of a member id; of its process if it has several streams."""
        streams = self._by_member.get(member or "", {})
        return next(iter(streams.values())) if len(streams) == 1 else self._shortened(process or member or "?")

    def _shortened(self, name: str) -> str:
        if name not in self._short:
            shown = printable(name)
            short = shown if len(shown) <= LETTERS_MAX else f"…{shown[1 - LETTERS_MAX :]}"
            if short in self._short.values():
                short = f"#{len(self._short) + 1}"
            self._short[name] = short
        return self._short[name]


def _parted(owner: str) -> tuple[str, str, int]:
    process, _, rest = owner.partition("/")
    member, _, stream = rest.rpartition("/")
    return process, member, decimal(stream) or 0


def _client(member: str) -> str:
    return _UUID.sub("", member)
