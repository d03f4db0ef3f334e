"""A replay as one HTML file: the playground's drawing, what it draws packed into the file, and its own controls.

The file loads nothing and runs its own script only. Its bytes are bounded: what would be more is shown in less detail
(`steps.DETAILS`), and the page says which. Without its script it has a table of what happened.
"""

from __future__ import annotations

import base64
import gzip
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from markupsafe import Markup
from msgspec.structs import replace

from comparison.playground import messages
from comparison.playground.live.first import first_group
from comparison.playground.web.files import machines, page_files
from comparison.replay.bundle import bundled
from comparison.replay.steps import DETAILS, LIMITS, folded
from comparison.report.drawing.palette import PALETTE
from comparison.report.markup import own_script_only, render
from comparison.screen.counted import counted
from comparison.screen.printable import printable_all
from kernel.designs import DESIGNS
from kernel.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.replay.captions import Caption
    from comparison.replay.columns import Column
    from comparison.replay.steps import Detail, Folded

#: The most bytes of a page.
BYTES_MAX = 3_000_000
#: The rows of the table that is there without the script; of more sentences the plainest are left out.
ROWS_MAX = 200
_SEVERITIES = (messages.Severity.ACT, messages.Severity.ALARM, messages.Severity.NOTICE, messages.Severity.INFO)


class Row(NamedTuple):
    """A sentence of the table."""

    seconds: str  #: since the first change or fault
    group: str
    text: str


def replay(
    columns: Sequence[Column],
    captions: Sequence[Caption] = (),
    damage: Sequence[str] = (),
    *,
    title: str = "",
    bytes_max: int = BYTES_MAX,
) -> str:
    """The whole file. `damage` says what of the traces could not be used. Raises `UserError` if it is too much."""
    for detail in DETAILS:
        text = _page(columns, captions, damage, detail, title)
        if len(text.encode()) <= bytes_max:
            return text
    raise UserError(
        f"a replay of this has more than {bytes_max:,} bytes, in its least detail too. "
        "Give fewer runs, or choose with --design"
    )


def _page(
    columns: Sequence[Column], captions: Sequence[Caption], damage: Sequence[str], detail: Detail, title: str
) -> str:
    groups = [_folded(each, detail) for each in columns]
    script = _script()
    change_ms = columns[0].change_ms
    rows, left_out = _rows(columns, groups)
    return str(
        render(
            "replay/web/page.html.j2",
            policy=own_script_only(script),
            script=Markup(script),  # ours
            style=Markup(_style()),
            **PALETTE,
            title=printable_all(title),
            groups=printable_all(", ".join(dict.fromkeys(each.label for each in columns))),
            about=printable_all([each.about for each in columns]),
            notes=printable_all(_notes(columns, groups, detail, damage)),
            data=_packed(columns, groups, captions),
            rows=printable_all([list(each) for each in rows]),
            left_out=left_out,
            change_s=change_ms / 1000,
        )
    )


def _folded(column: Column, detail: Detail) -> Folded:
    has_sessions = DESIGNS[column.design].zookeeper_sessions
    first = replace(first_group(column.design, column.rate), design=column.label)
    return folded(first, column.events, detail, znodes=has_sessions)


def _packed(columns: Sequence[Column], groups: Sequence[Folded], captions: Sequence[Caption]) -> str:
    """What the script draws, in base64: the first snapshot, and every column's steps in one order."""
    steps = sorted(
        (step.at_ms, place, number) for place, each in enumerate(groups) for number, step in enumerate(each.steps)
    )
    length_ms = max(each.length_ms for each in groups)
    data = {
        "first": messages.Snapshot(
            seq=0, at_ms=0, status=messages.Status.ENDED, limits=LIMITS, groups=tuple(each.first for each in groups)
        ),
        "steps": [
            (at_ms, place, step.says, step.mark, step.changes)
            for at_ms, place, number in steps
            for step in (groups[place].steps[number],)
        ],
        "length_ms": length_ms,
        "change_ms": int(columns[0].change_ms),  # as the steps' own times
        "captions": captions,
        "znodes": {each.first.design: each.znodes for each in groups},
        "designs": {column.label: column.design for column in columns},
        "machines": {column.label: machines().get(column.design, []) for column in columns},
    }
    return base64.b64encode(gzip.compress(msgspec.json.encode(data), 9, mtime=0)).decode()


def _notes(columns: Sequence[Column], groups: Sequence[Folded], detail: Detail, damage: Sequence[str]) -> list[str]:
    """What the reader has to know of how it was made."""
    later = [f"{each.label} {each.later_ms / 1000:.1f} s later" for each in columns if each.later_ms >= 1]
    frame_ms = max(each.frame_ms for each in groups)
    found = [f"Aligned at the first change or fault: {', '.join(later)} than in its own run."] if later else []
    found.append(
        f"Counts of records change every {frame_ms / 1000:g} s at most"
        + (f"; {detail.words}." if detail.words else ".")
    )
    found += damage
    found += [
        f"{column.label}: {counted(each.unfit, 'event')} left out, which contradict the others."
        for column, each in zip(columns, groups, strict=True)
        if each.unfit
    ]
    return found


def _rows(columns: Sequence[Column], groups: Sequence[Folded]) -> tuple[list[Row], int]:
    """The sentences of all groups in the order of time, at most ROWS_MAX; and how many are left out."""
    told = [
        (_SEVERITIES.index(sentence.severity), sentence.at_ms, column, sentence.text)
        for column, each in zip(columns, groups, strict=True)
        for sentence in each.sentences
    ]
    chosen = sorted(told, key=lambda each: each[:2])[:ROWS_MAX]
    rows = [
        Row(f"{(at_ms - column.change_ms) / 1000:.1f}", column.label, text)
        for _, at_ms, column, text in sorted(chosen, key=lambda each: each[1])
    ]
    return rows, len(told) - len(rows)


@cache
def _script() -> str:
    """The playground's modules and our own. What the moves of the machines are comes with the data."""
    folder = files(f"{__package__}.web")
    own = {each.name: each.read_text(encoding="utf-8") for each in folder.iterdir() if each.name.endswith(".js")}
    modules = {name: file.content.decode() for name, file in page_files().items() if name.endswith(".js")}
    return bundled("replay.js", {**modules, **own})


@cache
def _style() -> str:
    own = (files(f"{__package__}.web") / "replay.css").read_text(encoding="utf-8")
    given = page_files()
    return "".join([given["lanes.css"].content.decode(), given["page.css"].content.decode(), own])
