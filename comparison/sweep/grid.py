"""The grid of a sweep: its axes, and how often each combination of their values is run.

An axis is named like an option of `run` (`members`, `session-timeout`) or like a Kafka setting
(`rebalance.max.retries`). `--grid KEY=V1,V2` gives one on the command line, the table `[grid]` of a TOML file several;
an axis of the command line replaces the file's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from comparison.own_scenarios import names_of
from comparison.scenarios.plan.catalogue import COMPARED_DESIGNS, designs_named
from comparison.scenarios.plan.configuration import check
from comparison.scenarios.plan.links import canonical
from comparison.scenarios.plan.parameters import SEED_MAX, LargeParameters, Parameters
from comparison.scenarios.plan.presets import preset_named
from kernel.errors import ConfigurationError
from kernel.suggestions import unknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Value = int | float | str

SCENARIO, DESIGN, PRESET, LINK = "scenario", "design", "preset", "link"
MEMBERS, PARTITIONS = "members", "partitions"
#: Axes that are numbers: an option of `run` without its dashes, and the parameter that it sets.
SESSION_TIMEOUT = "session-timeout"
NUMBERS: Mapping[str, str] = MappingProxyType(
    {
        "members": "members",
        "partitions": "partitions",
        "topics": "topics",
        "streams": "streams",
        "rate": "rate",
        "brokers": "brokers",
        "time-limit": "time_limit_s",
        SESSION_TIMEOUT: "session_timeout_ms",
    }
)
WORDS = (SCENARIO, DESIGN, PRESET, LINK)
#: Axes in the order of folders and tables; settings follow.
NAMED = (*WORDS, *NUMBERS)
#: How often: names in a file, and options on the command line.
COUNTS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {"seed": (0, SEED_MAX), "seeds": (1, 200), "repeats": (1, 200)}
)
#: More runs would take weeks: a mistake.
RUNS_MAX = 20_000

#: So many partitions for each member.
_TIMES_MEMBERS = re.compile(rf"([1-9][0-9]{{0,3}})\*{MEMBERS}")
_RANGE = re.compile(r"([0-9]{1,18})\.\.([0-9]{1,18})(?:([*+])([0-9]{1,18}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """What a sweep varies."""

    axes: Mapping[str, tuple[Value, ...]]  #: in the order in which they were given
    seed: int = 1  #: the first one
    seeds: int = 1  #: runs of each cell with seeds SEED, SEED+1, ...
    repeats: int = 1  #: runs of each cell with each seed
    metrics: tuple[str, ...] = field(default=())  #: shown first; they change no run

    def overridden(self, axes: Mapping[str, tuple[Value, ...]], **given: int | None) -> Grid:
        """This grid with other axes instead of its own, and other counts unless they are None."""
        counts = {name: value for name, value in given.items() if value is not None}
        return replace(self, axes={**self.axes, **axes}, **counts)  # type: ignore[arg-type]  # counts are integers

    @property
    def factor(self) -> int:
        """How many runs each cell has: seeds times repeats."""
        return self.seeds * self.repeats


def complete(grid: Grid) -> Grid:
    """The grid with its axes in their order, scenarios and designs included.

    Raises `ConfigurationError` without a scenario, or for a setting with two meanings.
    """
    if SCENARIO not in grid.axes:
        raise ConfigurationError("the grid has no scenario. Add --grid scenario=join, or scenario to [grid]")
    axes = {DESIGN: COMPARED_DESIGNS, **grid.axes}
    settings = [name for name in axes if name not in NAMED]
    return replace(grid, axes={name: axes[name] for name in (*NAMED, *settings) if name in axes})


def axes_from(pairs: Iterable[str], *, simulated: bool = False) -> dict[str, tuple[Value, ...]]:
    """Parse `--grid` options of a live or a simulated sweep. Raises `ConfigurationError`, which names the option."""
    axes: dict[str, tuple[Value, ...]] = {}
    for pair in pairs:
        name, equals, values = pair.partition("=")
        name = name.strip()
        if not equals or not name:
            raise ConfigurationError(f"--grid {pair!r} is not an axis. Use KEY=VALUE or KEY=VALUE,VALUE")
        if name in axes:
            raise ConfigurationError(f"--grid {name} is given twice. List all its values once, as {name}=V1,V2")
        axes[name] = axis(
            name, [part for part in (part.strip() for part in values.split(",")) if part], simulated=simulated
        )
    return axes


def axis(name: str, values: Iterable[Value], *, simulated: bool = False) -> tuple[Value, ...]:
    """The checked values of one axis, each once; a range is expanded.

    Raises `ConfigurationError` for an unknown name or an impossible value.
    """
    expanded = [each for value in values for each in _expanded(name, value)]
    if not expanded:
        raise ConfigurationError(f"{name} has no values. Write {name}=V1,V2")
    if name == DESIGN:
        return designs_named([str(value) for value in expanded])
    return tuple(dict.fromkeys(_checked(name, value, simulated=simulated) for value in expanded))


def _expanded(name: str, value: Value) -> Iterable[Value]:
    """`2..16*2` is 2, 4, 8, 16; `2..8+3` is 2, 5, 8; `2..4` is 2, 3, 4."""
    match = _RANGE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return [value]
    low, high, step = int(match[1]), int(match[2]), int(match[4] or 1)
    grows = step > 1 and low > 0 if match[3] == "*" else step > 0
    if low > high or not grows:
        raise ConfigurationError(f"{name}={value} is no range. Use LOW..HIGH, LOW..HIGH+STEP or LOW..HIGH*FACTOR")
    found = []
    while low <= high:
        found.append(low)
        if len(found) > RUNS_MAX:
            raise ConfigurationError(f"{name}={value} has more than {RUNS_MAX} values. Use a larger step")
        low = low * step if match[3] == "*" else low + step
    return found


def _checked(name: str, value: Value, *, simulated: bool) -> Value:
    if name == SCENARIO:
        return names_of([str(value)])[0]
    if name == PRESET:
        return preset_named(str(value)).name
    if name == LINK:
        if not simulated:
            raise ConfigurationError(
                f"{name}={value} has no effect on real processes. Add --simulated, or leave it out"
            )
        return canonical([str(value)])
    if name == PARTITIONS and (each := _TIMES_MEMBERS.fullmatch(str(value))):
        return f"{int(each[1])}*{MEMBERS}"
    if name in NUMBERS:
        return _number(name, value, LargeParameters() if simulated else Parameters())
    if "." not in name:
        hint = f"Use one of {', '.join(NAMED)}, or a Kafka setting"
        raise ConfigurationError(unknown("axis", name, NAMED, hint=hint))
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if warnings := check({name: text}):
        raise ConfigurationError(warnings[0].replace(": ignored", ", so that all its values would be alike"))
    return text


def partitions_of(value: Value, members: int) -> int:
    """The partitions that a value of their axis means for so many members."""
    each = _TIMES_MEMBERS.fullmatch(str(value))
    return int(value) if each is None else int(each[1]) * members


def _number(name: str, value: Value, parameters: Parameters) -> Value:
    """A parameter's value within its range."""
    parse = float if name == "time-limit" else int
    if isinstance(value, bool) or (isinstance(value, float) and parse is int):
        raise ConfigurationError(f"{name}={value}: must be a whole number")
    try:
        number = parse(value)
    except ValueError:
        raise ConfigurationError(f"{name}={value}: must be a whole number") from None
    parameters.overridden(**{NUMBERS[name]: number})
    return int(number) if number == int(number) else number


def count(name: str, value: object) -> int:
    """A checked `seed`, `seeds` or `repeats`."""
    low, high = COUNTS[name]
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ConfigurationError(f"{name} is {value!r}: must be a whole number between {low} and {high}")
    return value
