"""In which circumstances two results differ: settings, versions, machine, seeds, clock; and what makes that doubtful.

Settings are those that took effect, by Kafka's names, so that a preset, `--session-timeout` and `--set` show alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from comparison.differences.figures import have_same_seeds
from comparison.differences.places import Place
from comparison.results.keys import COMPLETE
from comparison.results.metrics import REPEATS_MIN
from comparison.screen.number_ranges import number_ranges

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from comparison.results.run import Run

    #: The runs of a scenario in a design, before and after.
    Pair = tuple[Sequence[Run], Sequence[Run]]

#: Parameters that say the same as the settings in effect, name the run, or follow from the scenario.
_NOT_SHOWN = (
    *("scenario", "design", "seed", "simulated", "time_limit_s", "observed", "counts_predicted"),
    *("session_timeout_ms", "session_ms", "strategy"),
)
CLOCK, SEEDS, REPEATS = "clock", "seeds", "repeats"
IMPLEMENTATION, MACHINE = "implementation", "machine"
NOT_SET = "default"
#: Of figures that are alike, one in 126 differs by chance with so many.
REPEATS_ADVISED = 5


class Circumstance(msgspec.Struct, frozen=True, kw_only=True):
    """Something that differs. `where` says in which pairs it does; empty: in all."""

    what: str
    before: str
    after: str
    where: list[Place] = []


def circumstances(pairs: Sequence[Pair], commands: tuple[Sequence[Any], Sequence[Any]]) -> list[Circumstance]:
    """What differs between the pairs, what a user chose first; and between the commands that made their runs."""
    found: dict[tuple[str, str, str], list[Place]] = {}
    for before, after in pairs:
        first, second = _facts(before), _facts(after)
        for what in {**first, **second}:
            values = first.get(what, NOT_SET), second.get(what, NOT_SET)
            if values[0] != values[1]:
                found.setdefault((what, *values), []).append(Place(before[0].scenario, before[0].design))
    shown = [
        Circumstance(what=what, before=before, after=after, where=where if len(where) < len(pairs) else [])
        for (what, before, after), where in found.items()
    ]
    made = [_made_by(each) for each in commands]
    for what in {**made[0], **made[1]}:
        values = made[0].get(what, ""), made[1].get(what, "")
        if all(values) and values[0] != values[1]:
            shown.append(Circumstance(what=what, before=values[0], after=values[1]))
    return shown


def _facts(runs: Sequence[Run]) -> dict[str, str]:
    """What is true of these repeats, in display order."""
    parameters = runs[0].parameters
    given = _table(parameters.get("settings"))
    effective = {
        **_table(parameters.get("member_settings")),
        **{f"{name} (brokers)": value for name, value in _table(parameters.get("broker_settings")).items()},
    }
    seeds = sorted(run.seed for run in runs)
    return {
        CLOCK: "virtual" if parameters.get("simulated") else "real",
        **{
            name: f"{value:g}" if isinstance(value, float) else str(value)
            for name, value in parameters.items()
            if name not in _NOT_SHOWN and isinstance(value, str | int | float)
        },
        **{name: str(value) for name, value in given.items()},
        **{name: str(value) for name, value in effective.items() if name.removesuffix(" (brokers)") not in given},
        IMPLEMENTATION: ", ".join(sorted({each for run in runs for each in run.implementations})),
        REPEATS: str(len(runs)),
        SEEDS: number_ranges(seeds, " to "),
    }


def _table(value: object) -> Mapping[str, object]:
    """What a damaged file has in the place of a table is none."""
    return value if isinstance(value, dict) else {}


def _made_by(commands: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Versions and machine of some commands; of several with different ones, all."""
    found: dict[str, dict[str, None]] = {}
    for command in commands:
        for name, version in _table(command.get("versions")).items():
            found.setdefault(name, {})[str(version)] = None
        told = _table(command.get("machine"))
        machine, cores = " ".join(str(value) for name, value in told.items() if name != "cores"), told.get("cores")
        found.setdefault(MACHINE, {})[f"{machine}, {cores} cores" if cores else machine] = None
    return {name: ", ".join(filter(None, values)) for name, values in found.items()}


def doubts(
    pairs: Sequence[Pair], differing: Sequence[Circumstance], changed: Iterable[str], names: tuple[str, str]
) -> list[str]:
    """What makes the comparison doubtful, in sentences.

    `changed` are scenarios that do something else on each side; `names` are those of the sides.
    """
    differ = {each.what for each in differing}
    found = []
    if CLOCK in differ:
        found.append(
            "one side is simulated, the other is not: virtual time and a modelled network against a real machine. "
            "Counts compare, times do not"
        )
    elif MACHINE in differ and not all(
        run.parameters.get("simulated") for pair in pairs for runs in pair for run in runs
    ):
        found.append("the machines differ, and times depend on the machine")
    if IMPLEMENTATION in differ:
        found.append("members or brokers are of another implementation: what one cannot observe is unknown")
    found += [f"{each} does not do the same on both sides: its steps differ" for each in changed]
    found += [text for pair in pairs for runs, side in zip(pair, names, strict=True) for text in _bad(runs, side)]
    fewest = min((len(runs) for pair in pairs if not have_same_seeds(*pair) for runs in pair), default=REPEATS_MIN)
    if fewest < REPEATS_MIN:
        each = "one run of each" if fewest == 1 else f"{fewest} runs of each"
        found.append(
            f"{each}: figures that depend on chance, marked with ?, may differ by chance. Repeat both with "
            f"--repeat {REPEATS_ADVISED}"
        )
    return found


def _bad(runs: Sequence[Run], side: str) -> Iterator[str]:
    """What is wrong with these repeats."""
    where = f"{side}, {Place(runs[0].scenario, runs[0].design)}"
    broken = [run for run in runs if run.outcome != COMPLETE]
    damaged = [run for run in runs if run.problems and run not in broken]
    for some, what in ((broken, "did not go to the end"), (damaged, "have damaged traces")):
        if some:
            seeds = number_ranges([run.seed for run in some], " to ")
            yield f"{where}: {len(some)} of {len(runs)} runs {what} (seed {seeds})"
