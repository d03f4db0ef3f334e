"""What `rebalance-lab settings` prints: a list for a terminal of 80 columns, one setting in full, or JSON."""

from __future__ import annotations

import textwrap
from itertools import groupby
from typing import TYPE_CHECKING, Any

from comparison.scenarios.plan.presets import PRESETS
from comparison.scenarios.plan.setting_rows import BROKERS
from kernel.designs import DESIGN_NAMES
from kernel.settings import written

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from comparison.scenarios.plan.setting_rows import Row

WIDTH = 80
_LABEL = 10


def listed(rows: Iterable[Row]) -> Iterator[str]:
    """Lines: each part of a run with its settings, their defaults and what they do."""
    for number, (part, of_part) in enumerate(groupby(rows, key=lambda row: row.part)):
        settings = list(of_part)
        designs = sorted({design for row in settings for design in row.designs}, key=DESIGN_NAMES.index)
        if number:
            yield ""
        yield from _wrapped(part if part == BROKERS else f"{part} ({', '.join(designs)})", "  ", "")
        for row in settings:
            some = "" if set(row.designs) == set(designs) else f" ({', '.join(row.designs)})"
            yield f"  {row.setting.name} = {written(row.setting.default)}"
            yield from _wrapped(row.setting.doc + some, "      ")


def in_full(row: Row) -> Iterator[str]:
    """Lines: all there is to know about one setting of one part."""
    setting = row.setting
    yield from _wrapped(f"{setting.name}, of {of_whom(row)}", "")
    yield ""
    yield from _wrapped(sentence(setting.doc), "  ")
    yield ""
    for label, text in facts(row):
        yield from _wrapped(text, " " * (_LABEL + 2), f"  {label:<{_LABEL}}")
    yield f"  {'shown by':<{_LABEL}}{_continued(command(row))}"


def command(row: Row) -> str:
    return f"rebalance-lab {row.setting.shown_by}"


def facts(row: Row) -> Iterator[tuple[str, str]]:
    """(label, text) of what is known about a setting, in the order of interest."""
    setting = row.setting
    yield "values", setting.allowed + (f", in {setting.unit}" if setting.unit else "")
    yield "default", default_of(row)
    yield "era", row.era
    more = (("Kafka", kafka_of(row)), ("advice", setting.advice))
    for label, text in (*more, ("see also", ", ".join(setting.see)), ("source", row.source)):
        if text:
            yield label, text


def of_whom(row: Row) -> str:
    """The part that has a setting, with the designs."""
    if row.part != BROKERS:
        return f"the members of {in_words(row.designs)}"
    return BROKERS if row.designs == DESIGN_NAMES else f"brokers; it matters to {in_words(row.designs)}"


def default_of(row: Row) -> str:
    """Our default, why it is not Kafka's, and what runs set instead, with all presets unless some are named."""
    default = text = written(row.setting.default)
    if row.setting.differs:
        text += f" ({row.setting.differs})"
    by_values: dict[str, list[str]] = {}
    for preset, values in row.in_runs.items():
        if set(values.values()) != {default}:
            by_values.setdefault(_values(values), []).append(preset)
    runs = ", ".join(
        f"{values} with {' or '.join(presets)}" if len(presets) < len(PRESETS) else values
        for values, presets in by_values.items()
    )
    return f"{text}; in a run {runs}" if runs else text


def kafka_of(row: Row) -> str:
    """Kafka's default, release by release; '' if it has no such setting."""
    history = row.history
    if not history:
        return ""
    until = row.setting.until
    if len(history) == 1:
        ((release, value),) = history
        return f"{value}, {release} to {until}" if until else f"{value} since {release}"
    return ", ".join(f"{value} since {release}" for release, value in history) + (f"; until {until}" if until else "")


def as_json(row: Row) -> dict[str, Any]:
    setting = row.setting
    return {
        "name": setting.name,
        "of": row.part,
        "designs": list(row.designs),
        "does": setting.doc,
        "values": setting.allowed,
        "unit": setting.unit,
        "default": written(setting.default),
        "differs": setting.differs,
        "in_runs": {preset: dict(values) for preset, values in row.in_runs.items()},
        "era": row.era,
        "kafka": dict(row.history),
        "until": setting.until,
        "advice": setting.advice,
        "see": list(setting.see),
        "source": row.source,
        "shown_by": command(row),
    }


def in_words(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def sentence(text: str) -> str:
    """With a full stop, and a capital unless it begins with a name."""
    first = text.partition(" ")[0].rstrip(",;:")
    return (text[:1].upper() + text[1:] if first.isalpha() else text) + ("" if text.endswith(".") else ".")


def _values(values: Mapping[str, str]) -> str:
    """One value, if it is the same in all designs; otherwise each with its designs."""
    by_value: dict[str, list[str]] = {}
    for design, value in values.items():
        by_value.setdefault(value, []).append(design)
    if len(by_value) == 1:
        return next(iter(by_value))
    return ", ".join(f"{value} ({', '.join(designs)})" for value, designs in by_value.items())


def _continued(line: str) -> str:
    """A command that is too long for its line, in several that a shell takes as one."""
    if _LABEL + 2 + len(line) <= WIDTH:
        return line
    indent = "\n" + " " * (_LABEL + 4)
    return f" \\{indent}--".join(line.split(" --"))


def _wrapped(text: str, indent: str, first: str | None = None) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
