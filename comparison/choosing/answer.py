"""A choice as a whole: what was asked, what each design costs, what that comes to, and what it leaves out."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import msgspec

from comparison.choosing.advice import advice, answering_command, in_a_client, left_out
from comparison.choosing.choice import (  # msgspec reads the annotations
    EVENTS,
    Chooser,
    DesignCosts,
    Group,
    Tolerated,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comparison.choosing.costs import Costs


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """The sweep behind a choice."""

    command: list[str]
    made: str
    versions: dict[str, str]
    simulated: bool
    seeds: list[int]
    runs_of_each: list[int]  #: scenario, design and size: the numbers of runs that there are, ascending


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The question and the answer."""

    command: str  #: that gives the same
    group: Group
    events: dict[str, float]  #: a week
    tolerated: Tolerated
    source: Source
    designs: list[DesignCosts]
    advice: str
    why: str  #: what led to the advice, and who is not advised
    in_a_client: dict[str, str]  #: what gives a client of today the designs that it can have, if anything is known
    answered_by: str  #: the sweep that would answer what nobody can say; '' if everything is said
    left_out: list[str]


def choice_of(
    costs: Costs,
    group: Group,
    events: Mapping[str, float],
    tolerated: Tolerated,
    *,
    designs: Sequence[str] = (),
    of: str = "",
) -> Choice:
    """Choose by a table of costs; `of` is the folder of the sweep, '' for the table that is kept."""
    chooser = Chooser(costs)
    found = [chooser.week(each, group, events, tolerated) for each in designs or chooser.designs]
    unknown = any(figure.bounds is None for each in found for figure in each.figures.values())
    advised, why = advice(found, tolerated)
    return Choice(
        command=_command(group, events, tolerated, designs, of),
        group=group,
        events={each.name: events[each.name] for each in EVENTS if events.get(each.name)},
        tolerated=tolerated,
        source=Source(
            command=costs.command,
            made=costs.made,
            versions=costs.versions,
            simulated=costs.simulated,
            seeds=costs.seeds,
            runs_of_each=sorted({cell.runs + cell.failed for cell in costs.cells}),
        ),
        designs=found,
        advice=advised,
        why=why,
        in_a_client=in_a_client(each.design for each in found if each.is_known),
        answered_by=answering_command(events, group, [each.design for each in found]) if unknown else "",
        left_out=left_out(costs),
    )


def _command(group: Group, events: Mapping[str, float], tolerated: Tolerated, designs: Sequence[str], of: str) -> str:
    """With every number, so that other defaults change nothing."""
    words = ["rebalance-lab", "choose"]
    for each in EVENTS:
        words += [f"--{each.name}", f"{_exact(events.get(each.name, 0))}/week"]
    words += ["--members", f"{group.members}", "--partitions", f"{group.partitions}", "--rate", _exact(group.rate)]
    words += ["--slowest-record", f"{_exact(group.slowest_record_s)}s"]
    if tolerated.repeats is not None:
        words += ["--tolerated-repeats", f"{_exact(tolerated.repeats)}/week"]
    if tolerated.standstill_s is not None:
        words += ["--tolerated-standstill", f"{_exact(tolerated.standstill_s)}s"]
    if designs:
        words += ["--design", ",".join(designs)]
    return shlex.join([*words, *(["--from", of] if of else [])])


def _exact(number: float) -> str:
    """As an option takes it."""
    return f"{number:.6f}".rstrip("0").rstrip(".")
