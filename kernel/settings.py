"""Settings by Kafka's names: tables of implemented settings, and a common parser of `key=value`.

A row of a table is all there is to know about a setting: the parsers read it, and so do `rebalance-lab settings` and
docs/settings.md. The tables are in `zkconsumer.settings`, `coordinator.client.setting_table` and that of its folders
`server` and `consumer`, and `kernel.broker.settings.setting_table`.

`resolve` handles a broker's `--set` and a scenario's `-c` alike. It parses and checks the settings of the table, warns
of those that Kafka has but we do not implement, and raises `ConfigurationError` with the closest name for any other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kernel.errors import ConfigurationError
from kernel.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

INT_MAX = 2**31 - 1
#: The last word of a name -> what its number counts.
_UNITS = {
    "ms": "ms",
    "minutes": "minutes",
    "hours": "hours",
    "bytes": "bytes",
    "records": "records",
    "partitions": "partitions",
    "chunks": "chunks",
    "retries": "tries",
    "fetchers": "fetchers",
    "factor": "replicas",
    "size": "members",
    "connections": "connections",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting: Kafka's name, a parser, the default, and what a user should know about it."""

    name: str
    parse: Callable[[str], object]
    default: object
    doc: str
    valid: Callable[[object], str | None] = field(default=lambda _: None)  #: returns an error message, or None
    form: str = ""  #: how its values are written, where parser and check do not say it
    #: Kafka's default by the release that brought it, the oldest first; empty: not one of Kafka's settings.
    kafka: Mapping[str, object] = field(default_factory=dict)
    until: str = ""  #: the last release of Kafka that has it; '' if the newest one does
    differs: str = ""  #: why our default is not Kafka's last one
    advice: str = ""  #: what to choose, and what it costs
    see: tuple[str, ...] = ()  #: names of settings that belong to it
    source: str = ""  #: KIPs, issues and files, beyond the table's own source
    shown_by: str = ""  #: a command, without `rebalance-lab`, in which it shows its effect

    @property
    def unit(self) -> str:
        """What its number counts; '' for words and plain numbers."""
        return "" if self.parse is boolean else _UNITS.get(self.name.removesuffix(".max").rpartition(".")[2], "")

    @property
    def allowed(self) -> str:
        """Its values, in words."""
        if self.form:
            return self.form
        if isinstance(self.valid, Range | Words):
            return str(self.valid)
        return "true or false" if self.parse is boolean else "a text"


def written(value: object) -> str:
    """A value as a user writes it."""
    if value is None or value in ("", ()):
        return "unset"
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def boolean(text: str) -> bool:
    """`true` or `false` in any case, as Kafka reads them."""
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise ValueError("must be true or false")
    return lowered == "true"


@dataclass(frozen=True, slots=True)
class Range:
    """A check that an integer is in a range."""

    low: int
    high: int = INT_MAX

    def __call__(self, value: object) -> str | None:
        assert isinstance(value, int)
        return None if self.low <= value <= self.high else f"must be between {self.low} and {self.high}"

    def __str__(self) -> str:
        return f"{self.low} or more" if self.high == INT_MAX else f"{self.low} to {self.high}"


@dataclass(frozen=True, slots=True)
class Words:
    """A check that a value is one of the given words."""

    words: tuple[str, ...]

    def __call__(self, value: object) -> str | None:
        if value in self.words:
            return None
        return f"must be one of {', '.join(self.words)}{did_you_mean(str(value), self.words)}"

    def __str__(self) -> str:
        return f"{', '.join(self.words[:-1])} or {self.words[-1]}"


def one_of(*words: str) -> Words:
    """A check that a value is one of the given words."""
    return Words(words)


def required(value: object) -> str | None:
    """A check that there is a value."""
    return None if value else "must not be empty"


def number(name: str, default: int | None, doc: str, *, low: int = 0, high: int = INT_MAX, **known: Any) -> Setting:
    """A setting that is a whole number."""
    return Setting(name=name, parse=int, default=default, doc=doc, valid=Range(low, high), **known)


def flag(name: str, default: bool | None, doc: str, **known: Any) -> Setting:
    """A setting that is `true` or `false`."""
    return Setting(name=name, parse=boolean, default=default, doc=doc, **known)


def text(name: str, default: str | None, doc: str, **known: Any) -> Setting:
    """A setting that is taken as it is written."""
    return Setting(name=name, parse=str, default=default, doc=doc, **known)


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
    table: Mapping[str, Setting],
    given: Mapping[str, str],
    *,
    known_elsewhere: frozenset[str] = frozenset(),
    required: Sequence[str] = (),
) -> tuple[dict[str, object], list[str]]:
    """The values of all settings in `table`, and warnings for the user.

    Raises `ConfigurationError` for an unknown name, an invalid value, or none where one is `required`.
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
            raise ConfigurationError(f"unknown setting {name!r}{asked or '. `rebalance-lab settings` lists them'}")
        values[name] = _parsed(setting, text)
    for name in required:
        if not values[name]:
            raise ConfigurationError(f"{name} is required. Set {name}=...")
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
