"""The network of a simulated run: how long packets take between two processes, and how long a process is at work.

A text says it, as `--link` takes it and a result keeps it: parts with commas between them.

- `loopback`, `zone`, `region`: how far processes are from each other, a preset of all delays.
- `1ms`, or `1ms±.5`: the delay of every packet, drawn evenly from .5 to 1.5 ms. `+-` says the same.
- `member-broker=1ms±.5`: that of packets between two kinds of processes, in both directions.
- `cost=20us±5`: how long a process is busy with each callback; without it, computing takes no time.
- `start=50ms±20`: how long a new process takes until it runs; without it, it is there at once.
- `disk=2ms±1`: how long a broker's disk takes for each group of writes; without it, they are stored at once.
- `priorities=3`: processes have drawn priorities, by which they take turns, and at so many moments one becomes the
  last, and slow for a while (`comparison.simulation.scheduling`); without it, who is ready comes in any order.

The runner, which produces as well, is beside everybody: its delays are those of `loopback` unless they are given. Its
proxies stand in the middle of links, and a packet goes on from one as from the process that sent it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from itertools import combinations_with_replacement
from types import MappingProxyType
from typing import TYPE_CHECKING

from kernel.errors import ConfigurationError
from kernel.suggestions import unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from random import Random

    #: Nanoseconds that the next packet takes from one kind of process to another.
    Delay = Callable[["Kind", "Kind"], int]

_UNITS: Mapping[str, int] = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_SAME_UNITS: Mapping[str, str] = {"µs": "us", "μs": "us"}
_NUMBER = r"([0-9]{1,9}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})"
_UNIT = "(s|ms|us|µs|μs|ns)"
_TIME = re.compile(rf"{_NUMBER} ?{_UNIT}(?: ?(?:±|\+-|\+/-) ?{_NUMBER} ?{_UNIT}?)?")
#: A longer delay outlasts every timer: a mistake.
_MOST_NS = 10 * _UNITS["s"]
_COST, _START, _DISK, PRIORITIES = "cost", "start", "disk", "priorities"
_PRIORITIES_MAX = 9
_EXAMPLES = "or a time such as 1ms±0.5, member-broker=1ms±0.5, cost=20us"


class Kind(StrEnum):
    """What a process runs; the delay between two of them depends on it."""

    MEMBER = "member"
    BROKER = "broker"
    ZOOKEEPER = "zookeeper"
    RUNNER = "runner"


#: The ends of each link, in the order in which it is written.
_PAIRS: Mapping[frozenset[Kind], tuple[Kind, Kind]] = {
    frozenset({one, other}): (one, other) for one, other in combinations_with_replacement(Kind, 2)
}


@dataclass(frozen=True, slots=True)
class Duration:
    """Evenly drawn from `ns - spread_ns` to `ns + spread_ns`."""

    ns: int
    spread_ns: int = 0

    def __str__(self) -> str:
        unit, size = _unit_of(self.ns)
        return _decimal(self.ns, size) + unit + (f"+-{_decimal(self.spread_ns, size)}" if self.spread_ns else "")

    @property
    def least_and_width(self) -> tuple[int, int]:
        """The least that is drawn, and how many values there are from there on."""
        return self.ns - self.spread_ns, 2 * self.spread_ns + 1


#: Between processes of one machine.
_ONE_MACHINE = Duration(60_000, 40_000)
#: Machines of one data centre answer after half a millisecond, and those of several centres of a region after two.
PRESETS: Mapping[str, Duration] = MappingProxyType(
    {
        "loopback": _ONE_MACHINE,
        "zone": Duration(250_000, 100_000),
        "region": Duration(1_000_000, 400_000),
    }
)
DEFAULT = "loopback"


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """The delays between kinds of processes, `usual` where none is given; as text, what `links_of` reads."""

    usual: Duration = _ONE_MACHINE
    between: Mapping[frozenset[Kind], Duration] = field(default_factory=dict)
    cost: Duration | None = None  #: of each callback
    start: Duration | None = None  #: of a new process
    disk: Duration | None = None  #: of each group of a broker's writes
    priorities: int = 0  #: how often one becomes the last; 0: there are none

    def __str__(self) -> str:
        named = [name for name, usual in PRESETS.items() if usual == self.usual]
        pairs = [f"{one}-{other}={self.between[ends]}" for ends, (one, other) in _PAIRS.items() if ends in self.between]
        times = ((_COST, self.cost), (_START, self.start), (_DISK, self.disk))
        work = [f"{name}={time}" for name, time in times if time is not None]
        priorities = [f"{PRIORITIES}={self.priorities}"] if self.priorities else []
        return ",".join([*(named or [str(self.usual)]), *pairs, *work, *priorities])

    def delay(self, one: Kind, other: Kind) -> Duration:
        """That of a packet between two processes, in either direction."""
        usual = _ONE_MACHINE if Kind.RUNNER in (one, other) else self.usual
        return self.between.get(frozenset({one, other}), usual)

    def delays(self, random: Random) -> Delay:
        """Draws the delay of each packet, in nanoseconds."""
        drawn = {(one, other): self.delay(one, other).least_and_width for one in Kind for other in Kind}
        draw = random.random

        def delay_ns(sender: Kind, receiver: Kind) -> int:
            least, width = drawn[sender, receiver]
            return least + int(draw() * width)

        return delay_ns

    def costs(self, random: Random) -> Callable[[], int] | None:
        """Draws how long callbacks take, in nanoseconds; None if they take no time."""
        return _drawn(self.cost, random)

    def starts(self, random: Random) -> Callable[[], int] | None:
        """Draws how long new processes take until they run, in nanoseconds; None if they are there at once."""
        return _drawn(self.start, random)

    def disks(self, random: Random) -> Callable[[], int] | None:
        """Draws how long groups of writes take, in nanoseconds; None if they are stored at once."""
        return _drawn(self.disk, random)


def _drawn(time: Duration | None, random: Random) -> Callable[[], int] | None:
    if time is None:
        return None
    least, width = time.least_and_width
    return lambda: least + int(random.random() * width)


LOOPBACK = Links()


def links_of(text: str) -> Links:
    """The links that a text says, see the module. Raises `ConfigurationError`."""
    usual: Duration | None = None
    between: dict[frozenset[Kind], Duration] = {}
    work: dict[str, Duration] = {}
    priorities = 0
    for part in filter(None, (part.strip() for part in text.split(","))):
        ends, equals, time = (each.strip() for each in part.partition("="))
        if not equals:
            if usual is not None:
                raise ConfigurationError(f"--link {part}: how far all processes are apart is said twice. Leave one out")
            usual = _usual(part)
        elif ends in (_COST, _START, _DISK):
            if ends in work:
                raise ConfigurationError(f"--link {ends} is given twice. Leave one out")
            work[ends] = _duration(part, time)
        elif ends == PRIORITIES:
            priorities = _priorities(part, time)
        else:
            pair = _pair(part, ends)
            if pair in between:
                raise ConfigurationError(f"--link {ends} is given twice. Leave one out")
            between[pair] = _duration(part, time)
    without = Links(usual=usual or _ONE_MACHINE)
    between = {ends: given for ends, given in between.items() if given != without.delay(*_PAIRS[ends])}
    timed = {name: said for name, said in work.items() if said.ns}
    return replace(without, between=between, priorities=priorities, **timed)


def canonical(texts: Iterable[str]) -> str:
    """What several texts say together, as one that is the same whenever they mean the same. Raises as `links_of`."""
    return str(links_of(",".join(texts)))


def _usual(part: str) -> Duration:
    if part in PRESETS:
        return PRESETS[part]
    if _TIME.match(part):
        return _duration(part, part)
    raise ConfigurationError(unknown("--link", part, PRESETS, hint=f"Use {', '.join(PRESETS)}, {_EXAMPLES}"))


def _priorities(part: str, number: str) -> int:
    if not re.fullmatch("[0-9]", number):
        raise ConfigurationError(f"--link {part}: use a number from 0 to {_PRIORITIES_MAX}")
    return int(number)


def _pair(part: str, ends: str) -> frozenset[Kind]:
    kinds = [*map(str, Kind)]
    names = ends.split("-")
    if len(names) != 2:
        known = f"two of {', '.join(kinds)} with a dash between them, {_COST}, {_START} or {_DISK}"
        raise ConfigurationError(f"--link {part}: {ends!r} is no link. Use {known}")
    for name in names:
        if name not in kinds:
            raise ConfigurationError(unknown(f"end of --link {part}:", name, kinds))
    return frozenset(map(Kind, names))


def _duration(part: str, text: str) -> Duration:
    match = _TIME.fullmatch(text)
    if match is None:
        raise ConfigurationError(f"--link {part}: {text!r} is no time. Use a number and ns, us, ms or s, as in 1ms±0.5")
    number, unit, spread, spread_unit = match.groups()
    found = Duration(_ns(number, unit), _ns(spread, spread_unit or unit) if spread else 0)
    if found.ns > _MOST_NS:
        raise ConfigurationError(f"--link {part}: {text} is too long. Use at most {Duration(_MOST_NS)}")
    if found.spread_ns > found.ns:
        raise ConfigurationError(
            f"--link {part}: the spread is more than the time. Use at most {Duration(found.ns, found.ns)}"
        )
    return found


def _ns(number: str, unit: str) -> int:
    return round(Fraction(number) * _UNITS[_SAME_UNITS.get(unit, unit)])


def _decimal(ns: int, size: int) -> str:
    whole, rest = divmod(ns, size)
    return f"{whole}.{rest:0{len(str(size)) - 1}}".rstrip("0").rstrip(".") if rest else str(whole)


def _unit_of(ns: int) -> tuple[str, int]:
    """The largest unit of which a duration is at least one, and its nanoseconds."""
    return next(((unit, size) for unit, size in _UNITS.items() if ns >= size), ("us", _UNITS["us"]))
