"""Settings by Kafka's names: tables of implemented settings, and a common parser of `key=value`.

`resolve` handles a broker's `--set` and a scenario's `-c` alike. It parses and checks the settings of the table, warns
of those that Kafka has but we do not implement, and raises `ConfigurationError` with the closest name for any other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kernel.errors import ConfigurationError
from kernel.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting: Kafka's name, a parser, the default, and a line for the help text."""

    name: str
    parse: Callable[[str], object]
    default: object
    doc: str
    valid: Callable[[object], str | None] = field(default=lambda _: None)  #: returns an error message, or None


def boolean(text: str) -> bool:
    """`true` or `false` in any case, as Kafka reads them."""
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise ValueError("must be true or false")
    return lowered == "true"


def in_range(low: int, high: int) -> Callable[[object], str | None]:
    """A check that an integer is in a range."""

    def check(value: object) -> str | None:
        assert isinstance(value, int)
        return None if low <= value <= high else f"must be between {low} and {high}"

    return check


def one_of(*words: str) -> Callable[[object], str | None]:
    """A check that a value is one of the given words."""

    def check(value: object) -> str | None:
        if value in words:
            return None
        return f"must be one of {', '.join(words)}{did_you_mean(str(value), words)}"

    return check


def split_pairs(pairs: Iterable[str]) -> dict[str, str]:
    """Parse `key=value` strings into a mapping; the last value of a key wins, as on Kafka's command lines."""
    given: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise ConfigurationError(f"{pair!r} is not a setting. Use key=value")
        given[key.strip()] = value.strip()
    return given


def resolve(
    table: Mapping[str, Setting], given: Mapping[str, str], *, known_elsewhere: frozenset[str] = frozenset()
) -> tuple[dict[str, object], list[str]]:
    """The values of all settings in `table`, and warnings for the user.

    Raises `ConfigurationError` for an unknown name or an invalid value.
    """
    values = {name: setting.default for name, setting in table.items()}
    warnings = []
    for name, text in given.items():
        setting = table.get(name)
        if setting is None:
            if name in known_elsewhere:
                warnings.append(f"{name} is a Kafka setting that rebalance-lab does not implement: ignored")
                continue
            asked = did_you_mean(name, [*table, *known_elsewhere])
            raise ConfigurationError(f"unknown setting {name!r}{asked or '. Use a name that Kafka has'}")
        values[name] = _parsed(setting, text)
    return values, warnings


def _parsed(setting: Setting, text: str) -> object:
    try:
        value = setting.parse(text)
    except ValueError as error:
        why = "must be a whole number" if setting.parse is int else error
        raise ConfigurationError(f"{setting.name}={text!r}: {why}") from error
    complaint = setting.valid(value)
    if complaint is not None:
        raise ConfigurationError(f"{setting.name}={text!r}: {complaint}")
    return value
