"""Two results compared: the whole document, which `diff --format json` prints and every other form shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from comparison.differences.bounds import Bound, Judged, over
from comparison.differences.circumstances import Circumstance, circumstances, doubts
from comparison.differences.figures import FigureDifference, figure_differences
from comparison.differences.places import Place
from comparison.differences.verdicts import (
    PromiseDifference,
    VerdictDifference,
    promise_differences,
    verdict_differences,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from comparison.results.result import Result
    from comparison.results.run import Run

#: It goes up with every change that a reader could notice.
SCHEMA_VERSION = 2


class Side(NamedTuple):
    """One of the two results, with what is known of how it was made."""

    name: str
    folder: str
    result: Result
    commands: Sequence[Mapping[str, Any]]  #: as command.json has them
    described: Mapping[str, Any]  #: the scenarios by name, as their runs describe them


class SideShown(msgspec.Struct, frozen=True, kw_only=True):
    """What a side is."""

    name: str
    folder: str
    commands: list[list[str]]


class PairDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario in a design, before and after."""

    place: Place
    repeats: tuple[int, int]
    figures: list[FigureDifference]
    promises: list[PromiseDifference]  #: those of which something else became
    verdicts: list[VerdictDifference]  #: those that changed


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """What differs, and what of it is worse than allowed."""

    schema_version: int
    before: SideShown
    after: SideShown
    doubts: list[str]
    circumstances: list[Circumstance]
    pairs: list[PairDifference]
    only_before: list[Place]
    only_after: list[Place]
    bounds: list[Bound]
    worse: list[Judged]
    unknown: list[Judged]  #: whether it is worse; empty without bounds


def compared(before: Side, after: Side, bounds: Sequence[Bound] = ()) -> Difference:
    """Compare two results; without `bounds`, nothing is judged. They have a scenario and design in common at least."""
    first, second = by_column(before.result), by_column(after.result)
    common = {key: (first[key], second[key]) for key in first if key in second}
    assert common, "nothing in common"
    pairs = [
        PairDifference(
            place=place,
            repeats=(len(runs[0]), len(runs[1])),
            figures=figure_differences(*runs),
            promises=promise_differences(*runs),
            verdicts=verdict_differences(*runs),
        )
        for place, runs in common.items()
    ]
    both = list(common.values())
    differing = circumstances(both, (before.commands, after.commands))
    only_before = [key for key in first if key not in second]
    worse, unknown = _judged(pairs, only_before, bounds)
    return Difference(
        schema_version=SCHEMA_VERSION,
        before=_shown(before),
        after=_shown(after),
        doubts=doubts(both, differing, _changed(before.described, after.described, common), (before.name, after.name)),
        circumstances=differing,
        pairs=pairs,
        only_before=only_before,
        only_after=[key for key in second if key not in first],
        bounds=list(bounds),
        worse=worse,
        unknown=unknown,
    )


def by_column(result: Result) -> dict[Place, list[Run]]:
    """The runs of each scenario and design, in the order of the result."""
    found: dict[Place, list[Run]] = {}
    for run in result.runs:
        found.setdefault(Place(run.scenario, run.design), []).append(run)
    return found


def _shown(side: Side) -> SideShown:
    given = (command for each in side.commands if isinstance(command := each.get("command"), list))
    # A copy of a result has the command of the folder that its runs are in, too.
    commands = dict.fromkeys(tuple(map(str, command)) for command in given if command)
    return SideShown(name=side.name, folder=side.folder, commands=list(map(list, commands)))


def _changed(before: Mapping[str, Any], after: Mapping[str, Any], common: Iterable[Place]) -> list[str]:
    """The scenarios that do something else on each side."""
    names = dict.fromkeys(place.scenario for place in common)
    both = [name for name in names if name in before and name in after]
    return [name for name in both if before[name].get("steps") != after[name].get("steps")]


def _judged(
    pairs: Sequence[PairDifference], missing: Sequence[Place], bounds: Sequence[Bound]
) -> tuple[list[Judged], list[Judged]]:
    """What is worse than the bounds allow, and of what that is not known."""
    worse: list[Judged] = []
    unknown: list[Judged] = []
    if not bounds:
        return worse, unknown
    unknown += [Judged(place=place, what="", bound="", why="was not run after") for place in missing]
    for pair in pairs:
        named = [(each.promise, each) for each in pair.promises] + [(each.check, each) for each in pair.verdicts]
        for what, each in named:
            judged = Judged(place=pair.place, what=what, bound="")
            if each.became_worse:
                worse.append(judged)
            elif each.became_unknown:
                unknown.append(msgspec.structs.replace(judged, why="has become unknown"))
        found = over(pair.place, pair.figures, bounds)
        worse += found[0]
        unknown += found[1]
    return worse, unknown
