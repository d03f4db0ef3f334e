"""One member's rebalance as a Markdown table: step by step, with what its trace shows beside what the step is for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.report.steps import PURPOSES, lines_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.report.steps import Line
    from comparison.report.story import MemberRebalance, Story


def walkthrough(story: Story, rebalance: MemberRebalance) -> str:
    """A heading, the table and a line of totals. Times are milliseconds since the table's first row."""
    lines = lines_of(story, rebalance)
    rows = _rows(lines)
    zero_ns = lines[0].began_ns
    reads, writes = rebalance.operations()
    refused = sum(line.count for line in lines if line.kind == "refused")
    length_ms = (rebalance.ended_ns - rebalance.began_ns) / 1e6
    text = [
        f"### {rebalance.member.name}: {rebalance.trigger}",
        "",
        "| ms | step | what it is for | in the trace |",
        "|---:|---|---|---|",
        *(_row(row, zero_ns) for row in rows),
        "",
        f"{reads} reads, {writes} writes ({refused} refused), {_attempts(rebalance)}; the rebalance itself took "
        f"{length_ms:.1f} ms.",
    ]
    return "\n".join(text) + "\n"


def _attempts(rebalance: MemberRebalance) -> str:
    number = len(rebalance.attempts)
    return f"{number} attempt{'' if number == 1 else 's'}, {rebalance.outcome or 'cut off by the end of the trace'}"


def _rows(lines: Sequence[Line]) -> list[list[Line]]:
    """Lines of one step that follow one another are one row; what has no step is one by itself."""
    rows: list[list[Line]] = []
    for line in lines:
        if rows and line.step and rows[-1][0].step == line.step:
            rows[-1].append(line)
        else:
            rows.append([line])
    return rows


def _row(row: Sequence[Line], zero_ns: int) -> str:
    step = row[0].step
    shown = "<br>".join(_shown(line) for line in row)
    return f"| {(row[0].began_ns - zero_ns) / 1e6:.1f} | {_named(step)} | {PURPOSES.get(step, '')} | {shown} |"


def _named(step: str) -> str:
    return step if step[:1] == "R" else ""


def _shown(line: Line) -> str:
    what = line.what.replace("|", "\\|")
    if line.kind in ("did", "told"):
        return f"*{what}*"
    if line.kind == "broker":
        who = "a broker" if line.broker < 0 else f"broker {line.broker}"
        return f"`{what}` to {who}" + (f" x {line.count}" if line.count > 1 else "")
    return f"`{what}`"
