"""Fill the last chapter of `settings.md` with all settings of all designs, from the tables that the parsers read
(`comparison.scenarios.plan.setting_rows`). A test compares them.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING

from comparison.cli.setting_text import default_of, in_words, kafka_of, sentence
from comparison.scenarios.plan.setting_rows import BROKERS, elsewhere, rows
from docs.generators.pages import DOCS, filled
from kernel.designs import DESIGN_NAMES
from kernel.settings import written

if TYPE_CHECKING:
    from collections.abc import Container, Sequence
    from pathlib import Path

    from comparison.scenarios.plan.setting_rows import Row

PAGE = DOCS / "settings.md"
#: What may be the name of a setting, with a value or without.
_NAME = re.compile(r"(?<![\w.])(?P<name>[a-z]+(?:\.[a-z0-9]+)+)(?:=[a-z0-9_-]+)?(?![\w.]*\w)")
#: Values that the default shows to be numbers, flags or texts.
_PLAIN = re.compile(r"-?\d+ or more|true or false|a text")


def files() -> dict[Path, str]:
    found = sorted(rows(), key=_place)
    names = Counter(row.setting.name for row in found)
    parts = (_part(list(of_part), names) for _, of_part in groupby(found, key=_heading))
    tail = (
        f"{len(elsewhere())} further settings of Kafka's consumers and brokers are known by name and have no effect "
        "here, which a warning says. A topic's own settings are in [Administration](administration.md).\n"
    )
    return {PAGE: filled(PAGE, {"settings": "\n\n".join([*parts, tail])})}


def _place(row: Row) -> tuple[bool, int]:
    """Where a setting stands: parts in their order, of brokers first what matters to the most designs."""
    return (True, -len(row.designs)) if row.part == BROKERS else (False, 0)


def _heading(row: Row) -> str:
    """The part that has a setting; of brokers, with the designs that it matters to."""
    if row.part != BROKERS:
        return row.part.capitalize()
    return "Brokers" if row.designs == DESIGN_NAMES else f"Brokers, for {in_words(row.designs)}"


def _part(of_part: list[Row], names: Counter[str]) -> str:
    first = of_part[0]
    designs = [design for design in DESIGN_NAMES if any(design in row.designs for row in of_part)]
    eras = Counter(_era(row) for row in of_part if _is_same(row))
    usual = next((era for era, count in eras.items() if count * 2 > eras.total() > 2), "")
    said = [] if first.part == BROKERS else [f"Of {_quoted(designs)}."]
    said += [f"Where nothing is said of Kafka, its default is the same, {usual}."] if usual else []
    near = {row.setting.name for row in of_part}
    entries = (_entry(row, row.designs == tuple(designs), names, near, usual) for row in of_part)
    return "\n\n".join(filter(None, [f"### {_heading(first)}", " ".join(said), *entries]))


def _entry(row: Row, of_all: bool, names: Counter[str], near: Container[str], usual: str) -> str:
    """What a setting does, its defaults, and what to choose, with those of other parts that belong to it."""
    setting = row.setting
    only = "" if of_all else f"Only of {_quoted(row.designs)}."
    says = " ".join(filter(None, (only, sentence(setting.doc))))
    mentioned = {name["name"] for name in _NAME.finditer(f"{says} {setting.advice}")}
    others = [name for name in setting.see if name not in mentioned and name not in near]
    advice = setting.advice + (f" See also {in_words(others)}." if others else "")
    says, advice = (_NAME.sub(lambda name: _link(name, names), text) for text in (says, advice))
    lines = (
        textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)
        for text in (f"{says} {_facts(row, usual)}", advice)
    )
    return "\n\n".join([f"#### `{setting.name}`", *lines])


def _facts(row: Row, usual: str) -> str:
    """Default, values, Kafka's defaults if they are not the usual ones of the part, and where they come from."""
    setting = row.setting
    if _is_same(row):
        kafka = "" if _era(row) == usual else f"Kafka {_era(row)}"
    else:
        kafka = f"Kafka: {kafka_of(row)}" if row.history else "Ours"
    values = "" if _PLAIN.fullmatch(setting.allowed) or setting.allowed in setting.doc else f"Values: {setting.allowed}"
    return "*" + ". ".join(filter(None, (f"Default {default_of(row)}", values, kafka, setting.source))) + ".*"


def _is_same(row: Row) -> bool:
    """Kafka has always had our default."""
    return len(row.history) == 1 and row.history[0][1] == written(row.setting.default)


def _era(row: Row) -> str:
    """As `since 0.9`."""
    return row.era.replace("Kafka ", "")


def _quoted(designs: Sequence[str]) -> str:
    return in_words([f"`{design}`" for design in designs])


def _link(found: re.Match[str], names: Counter[str]) -> str:
    """A name, or name=value, that leads to the setting, unless several parts have one of this name."""
    name = found["name"]
    if name not in names:
        return found.group()
    return f"[`{found.group()}`](#{name.replace('.', '')})" if names[name] == 1 else f"`{found.group()}`"
