"""One member's rebalance as a Markdown table: step by step, with what its trace shows and what the step is for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.report.diagrams.markdown import code, escaped
from comparison.report.history.exchanges import member_lines, purpose
from comparison.screen.counted import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.report.history.group_history import GroupHistory, MemberRebalance
    from comparison.report.history.steps import Line


def walkthrough(history: GroupHistory, rebalance: MemberRebalance) -> str:
    """A heading, the table and a line of totals. Times are milliseconds since the table's first row."""
    lines = member_lines(history, rebalance)
    rows = _rows(lines)
    zero_ns = lines[0].began_ns
    length_ms = (rebalance.ended_ns - rebalance.began_ns) / 1e6
    text = [
        f"### {escaped(f'{rebalance.member.name}: {rebalance.trigger}')}",
        "",
        "| ms | step | what it is for | in the trace |",
        "|---:|---|---|---|",
        *_table_rows(history, rows, zero_ns),
        "",
        f"{_cost(history, rebalance, lines)}, {_attempts(rebalance)}; the rebalance itself took {length_ms:.1f} ms.",
    ]
    return "\n".join(text) + "\n"


def _cost(history: GroupHistory, rebalance: MemberRebalance, lines: Sequence[Line]) -> str:
    if history.coordinated:
        return f"{counted(rebalance.requests(), 'request')} to the coordinator"
    reads, writes = rebalance.operations()
    refused = sum(line.count for line in lines if line.kind == "refused")
    return f"{reads} reads, {writes} writes ({refused} refused)"


def _attempts(rebalance: MemberRebalance) -> str:
    outcome = rebalance.outcome or "cut off by the end of the trace"
    return f"{counted(len(rebalance.attempts), 'attempt')}, {outcome}"


def _rows(lines: Sequence[Line]) -> list[list[Line]]:
    """Consecutive lines of one step make one row; a line without a step is its own row."""
    rows: list[list[Line]] = []
    for line in lines:
        if rows and line.step and rows[-1][0].step == line.step:
            rows[-1].append(line)
        else:
            rows.append([line])
    return rows


def _table_rows(history: GroupHistory, rows: Sequence[Sequence[Line]], zero_ns: int) -> list[str]:
    """The table's rows as text; under a coordinator, a step's purpose is given once."""
    explained: set[str] = set()
    found = []
    for row in rows:
        step = row[0].step
        why = "" if step in explained and history.coordinated else purpose(history, step)
        explained.add(step)
        named = step if history.coordinated or step[:1] == "R" else ""
        shown = "<br>".join(_shown(line, zero_ns) for line in row)
        found.append(f"| {_ms(row[0].began_ns, zero_ns)} | {named} | {why} | {shown} |")
    return found


def _ms(ns: int, zero_ns: int) -> str:
    return f"{(ns - zero_ns) / 1e6:.1f}"


def _shown(line: Line, zero_ns: int) -> str:
    if line.kind in ("did", "notified"):
        return f"*{escaped(line.what)}*"
    who = "a broker" if line.broker < 0 else f"broker {line.broker}"
    if line.kind in ("broker", "asks"):
        return f"{code(line.what)} to {who}" + (f" x {line.count}" if line.count > 1 else "")
    if line.kind == "answer":
        return f"{who} at {_ms(line.began_ns, zero_ns)}: {code(line.what)}"
    return code(line.what)
