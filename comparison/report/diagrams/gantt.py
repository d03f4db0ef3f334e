"""A timeline as a Mermaid gantt chart: a section for each member's phases, and one for each partition.

Mermaid's unit is the millisecond: shorter bars are drawn as one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.designs import ZOOKEEPER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from comparison.report.view.model import Holding, RunView, Stretch

#: Mermaid's colours of bars: `crit` stands out, `done` is pale, '' is the default.
_TAGS = {"stop": "crit", "release": "crit", "backoff": "crit", "detect": "done", "decide": "done"}


def gantt(view: RunView) -> str:
    """The diagram's text. The axis is seconds since the timeline's beginning."""
    text = [
        "---",
        "displayMode: compact",
        "---",
        "gantt",
        "    dateFormat x",
        "    axisFormat %S.%L s",
    ]
    for member in view.members:
        if phases := [each for each in view.phases if each.member == member]:
            text.append(f"    section {_plain(member)}")
            text += [_bar(view, each, each.phase, _TAGS.get(each.phase, "active")) for each in phases]
    authority = "owner node" if view.design == ZOOKEEPER else view.authority
    for lane in view.partitions:
        text.append(f"    section {_plain(lane.name)}")
        text += _bars(view, lane.named, authority, "done")
        text += _bars(view, lane.delivering, "delivers", "active")
    return "\n".join(text) + "\n"


def _bars(view: RunView, holdings: Iterable[Holding], what: str, tag: str) -> list[str]:
    return [_bar(view, each, f"{each.member} {what}", tag) for each in holdings]


def _bar(view: RunView, stretch: Stretch, label: str, tag: str) -> str:
    began, ended = (int(round(at_ms - view.began_ms, 6)) for at_ms in (stretch.from_ms, stretch.until_ms))
    ended = max(began + 1, ended)
    return f"    {_plain(label)} :{tag}, {began}, {ended}"


def _plain(text: str) -> str:
    """The text without Mermaid's own syntax."""
    return "".join(" " if char in ":;#,\n" else char for char in text)
