"""A timeline as a Mermaid gantt chart: a section for each member's phases, and one for each partition.

Mermaid's unit is the millisecond: shorter bars are drawn as one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from comparison.report.timeline import Span, Timeline

#: Mermaid's colours of bars: `crit` stands out, `done` is pale, '' is the default.
_TAGS = {"stop": "crit", "release": "crit", "backoff": "crit", "detect": "done", "decide": "done"}


def gantt(drawn: Timeline) -> str:
    """The diagram's text. The axis is seconds since the timeline's beginning."""
    text = [
        "---",
        "displayMode: compact",
        "---",
        "gantt",
        "    dateFormat x",
        "    axisFormat %S.%L s",
    ]
    for member, phases in drawn.phases.items():
        if phases:
            text.append(f"    section {_plain(member)}")
            text += [_bar(drawn, span, span.what, _TAGS.get(span.what, "active")) for span in phases]
    for partition in drawn.partitions:
        text.append(f"    section {_plain(partition)}")
        text += _bars(drawn, drawn.named.get(partition, ()), drawn.authority, "done")
        text += _bars(drawn, drawn.delivered.get(partition, ()), "delivers", "active")
    return "\n".join(text) + "\n"


def _bars(drawn: Timeline, spans: Iterable[Span], what: str, tag: str) -> list[str]:
    return [_bar(drawn, span, f"{span.what} {what}", tag) for span in spans]


def _bar(drawn: Timeline, span: Span, label: str, tag: str) -> str:
    began = (span.began_ns - drawn.began_ns) // 1_000_000
    ended = max(began + 1, (span.ended_ns - drawn.began_ns) // 1_000_000)
    return f"    {_plain(label)} :{tag}, {began}, {ended}"


def _plain(text: str) -> str:
    """The text without Mermaid's own syntax."""
    return "".join(" " if char in ":;#,\n" else char for char in text)
