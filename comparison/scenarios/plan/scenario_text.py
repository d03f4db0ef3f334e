"""Writes a scenario as a file that `comparison.scenarios.plan.scenario_file` reads: what differs from the defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from comparison.scenarios.plan.catalogue import CATALOGUE
from comparison.scenarios.plan.fields import default_of, has_default
from comparison.scenarios.plan.step_names import name_of
from comparison.screen.printable import printable
from comparison.toml.places import written

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from comparison.scenarios.plan.scenario import Scenario

_LINE_MAX = 110
#: Written as tables, after everything else.
_TABLES = ("steps", "like", "checks", "only_promises")


_HEAD = ("rebalance-lab run FILE; docs/own-scenarios.md has the format.",)


def as_file(
    scenario: Scenario, head: Sequence[str] = _HEAD, comments: Mapping[int, Sequence[str]] = MappingProxyType({})
) -> str:
    """The text of a scenario's file. A scenario of the catalogue is judged as itself, under any name.

    `head` are comments at the beginning, `comments` those before each step. They are escaped: each stays one line.
    """
    lines = [*_comments(head), *([""] if len(head) > 1 else [])]
    changed = {name: value for name, value in _changed(scenario) if name not in _TABLES}
    lines += [line for name, value in changed.items() if not _is_table(value) for line in _pair(name, value)]
    for name, value in changed.items():
        if _is_table(value):
            lines += ["", f"[{name}]", *_pairs(value)]
    ours = scenario.name in CATALOGUE
    like, checks = scenario.like or (scenario.name if ours else ""), () if ours else scenario.checks
    expected = {"like": like, "checks": checks, "only_promises": scenario.only_promises}
    expected = {name: value for name, value in expected.items() if value}
    if expected:
        lines += ["", "[expectations]", *_pairs(expected)]
    for number, step in enumerate(scenario.steps):
        if said := comments.get(number):
            lines += ["", *_comments(said)]
        lines += ["", "[[steps]]", f'step = "{name_of(type(step))}"', *_pairs(dict(_changed(step)))]
    return "\n".join(lines) + "\n"


def _comments(texts: Sequence[str]) -> list[str]:
    return [f"# {printable(text)}" for text in texts]


def _changed(value: Any) -> Iterator[tuple[str, Any]]:
    """The fields whose values are not the defaults."""
    for field in fields(value):
        own = getattr(value, field.name)
        if not has_default(field) or own != default_of(field):
            yield field.name, dict(_changed(own)) if hasattr(own, "__dataclass_fields__") else own


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping)


def _pairs(table: Mapping[Any, Any]) -> list[str]:
    return [line for name, value in table.items() for line in _pair(str(name), value)]


def _pair(name: str, value: object) -> list[str]:
    key = name if name.replace("_", "").isalnum() and name.isascii() else written(name)
    line = f"{key} = {_value(value)}"
    if isinstance(value, tuple) and (len(value) > 1 or len(line) > _LINE_MAX) and isinstance(value[0], str):
        return [f"{key} = [", *(f"    {_value(each)}," for each in value), "]"]
    return [line]


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return written(value)
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(name)} = {_value(each)}" for name, each in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    assert isinstance(value, tuple), value
    return f"[{', '.join(map(_value, value))}]"


def _key(name: object) -> str:
    text = str(name)
    return text if text.replace("_", "").isalnum() and text.isascii() else written(text)
