"""`fuzz`: random schedules of faults and changes, on a real ensemble or simulated."""

from __future__ import annotations

import asyncio
import itertools
import shlex
import sys
from typing import TYPE_CHECKING, Any

import click

from comparison.cli.documents import print_document
from comparison.cli.options import dry_run_option, form_option, output_option, quiet_option, with_seed
from comparison.cli.quantities import Number
from comparison.exits import Exit
from comparison.fuzzing.fuzzer import Counterexample, Fuzzer, Listeners, Wanted, as_json, schedules_of
from comparison.fuzzing.judging import Outcome
from comparison.fuzzing.summary import Summary
from comparison.interrupts import last_words
from comparison.run_folder import keep_scenario, new_bundle, provenance, write_json
from comparison.scenarios.plan.catalogue import designs_named
from comparison.scenarios.plan.links import DEFAULT
from comparison.scenarios.plan.parameters import SEED_MAX
from comparison.scenarios.plan.scenario_text import as_file
from comparison.screen.progress import RunProgress
from kernel.decimals import decimal
from kernel.designs import COORDINATED, DESIGN_NAMES
from kernel.errors import ConfigurationError
from kernel.platform.requirements import require_machine
from kernel.suggestions import unknown

if TYPE_CHECKING:
    from pathlib import Path

    from comparison.fuzzing.attempts import Attempt
    from comparison.fuzzing.schedule import Schedule

_EXITS = {
    Outcome.HELD: Exit.AS_EXPECTED,
    Outcome.VIOLATED: Exit.NOT_AS_EXPECTED,
    Outcome.UNKNOWN: Exit.UNKNOWN,
}


#: How many schedules of each design --dry-run shows.
_SHOWN = 10
_FIRST_MAX = 999_999_999
_TRIES = 3


class _First(click.ParamType[tuple[int, str]]):
    """A number of a schedule, or of some designs' schedules: N or N:DESIGN."""

    name = "N[:DESIGN]"

    def convert(
        self, value: object, parameter: click.Parameter | None, context: click.Context | None
    ) -> tuple[int, str]:
        given, _, design = str(value).partition(":")
        number = decimal(given)
        if number is None or not 1 <= number <= _FIRST_MAX:
            self.fail(f"{value!r} is not a number from 1 on, or one with :DESIGN", parameter, context)
        return number, design


@click.command(
    epilog="""\b
Examples:
  rebalance-lab fuzz --minutes 5  the designs with a coordinator
  rebalance-lab fuzz --simulated --design all --minutes 60
      in virtual time: far more schedules, which repeat exactly
  rebalance-lab fuzz --design eager,server --seed 7
  rebalance-lab fuzz --seed 7 --first 41 --minutes 60
      go on where --seed 7 stopped after 40
  rebalance-lab fuzz --seed 7 --first 41:static  go on within number 41
  rebalance-lab fuzz --seed 7 --dry-run --schedules 20
      show schedules, run none

\b
Exit codes: 0 every promise was kept, 1 one was broken, 2 a run could not be
judged, 130 interrupted."""
)
@click.option(
    "--design",
    "designs",
    multiple=True,
    metavar="NAME",
    help=f"{', '.join(DESIGN_NAMES)}, or all. Repeat it, or separate with commas.  [default: those with a coordinator]",
)
@click.option(
    "--minutes",
    type=Number(0.1, 10_000),
    default=5.0,
    show_default=True,
    help="Draw and run schedules for this long.",
)
@click.option("--seed", type=click.IntRange(0, SEED_MAX), help="Seed of the schedules.  [default: random]")
@click.option(
    "--first",
    type=_First(),
    default="1",
    show_default=True,
    help="Number of the first schedule. N:DESIGN skips the designs before DESIGN in schedule N.",
)
@click.option("--schedules", type=click.IntRange(1), help="Stop after this many runs, over all designs.")
@click.option(
    "--shrink-minutes",
    type=Number(0, 1000),
    default=10.0,
    show_default=True,
    help="Time limit for shrinking one schedule that breaks a promise.",
)
@click.option(
    "--tries",
    type=click.IntRange(1, 100),
    default=_TRIES,
    show_default=True,
    help="How often a shorter schedule must keep its promises in real runs before it is dropped.",
)
@click.option(
    "--simulated",
    is_flag=True,
    help="In virtual time, on a modelled network and a modelled ZooKeeper: each schedule always ends the same way.",
)
@click.option("--keep", is_flag=True, help="Keep the folders of all runs, not only of those that break a promise.")
@output_option
@form_option
@dry_run_option
@quiet_option
def fuzz(designs: tuple[str, ...], **options: Any) -> int:
    """Draw random schedules of faults and changes, run them, and shrink those that break a promise.

    Each schedule is a run on three ZooKeeper servers and two brokers, judged by what its design promises under all
    circumstances. A counterexample is written as a scenario file, which `run` repeats. --dry-run shows the first 10
    schedules of each design, or the first --schedules.
    """
    if options["simulated"] and options["tries"] != _TRIES:
        raise click.UsageError("--tries has no effect with --simulated: a simulated run repeats exactly. Leave it out")
    chosen = designs_named(designs) if designs else COORDINATED
    first, first_design = options["first"]
    if first_design and first_design not in chosen:
        raise ConfigurationError(unknown(f"design of --first {first}:", first_design, chosen))
    command, seed = with_seed(["rebalance-lab", *sys.argv[1:]], options["seed"])
    wanted = Wanted(
        designs=tuple(chosen),
        seed=seed,
        first=first,
        first_design=first_design,
        schedules=options["schedules"],
        seconds=60 * options["minutes"],
        shrink_seconds=60 * options["shrink_minutes"],
        tries=options["tries"],
        simulated=options["simulated"],
        keep=options["keep"],
    )
    if options["dry_run"]:
        _show_schedules(wanted, options["output"], options["form"])
        return Exit.AS_EXPECTED
    return _fuzzed(wanted, command, options["output"], options["form"], quiet=options["quiet"])


def _show_schedules(wanted: Wanted, root: Path, form: str) -> None:
    drawn = list(itertools.islice(schedules_of(wanted), wanted.schedules or _SHOWN * len(wanted.designs)))
    if form == "json":
        schedules = [
            {"number": each.number, "design": each.design, "run_seed": each.run_seed, "steps": each.in_words()}
            | ({"links": each.links, "fixed": each.fixed} if each.simulated else {})
            for each in drawn
        ]
        print_document({"seed": wanted.seed, "folder": f"{root}/<time>-fuzz", "schedules": schedules})
        return
    most = "" if wanted.schedules is None else f", at most {wanted.schedules}"
    how = "simulate" if wanted.simulated else "run"
    click.echo(f"would {how} schedules of seed {wanted.seed} for {wanted.seconds / 60:g} minutes{most}")
    click.echo(f"results: {root}/<time>-fuzz")
    click.echo("the first schedules:")
    for each in drawn:
        click.echo(f"  {each.title}: {each.in_words()}")


def _fuzzed(wanted: Wanted, command: list[str], root: Path, form: str, *, quiet: bool) -> int:
    require_machine()
    bundle = new_bundle(root, "fuzz")
    about = provenance(command)
    write_json(bundle / "command.json", {**about, "runs": [], "left_out": []})
    summary, teller = Summary(), _Teller(bundle, form, quiet=quiet)
    teller.note(f"seed {wanted.seed}")
    with RunProgress(wanted.schedules or 0, quiet=True) as progress:
        listeners = Listeners(attempt=teller.attempt, shrinking=teller.shrinking, counterexample=teller.counterexample)
        fuzzer = Fuzzer(bundle, about, wanted, summary, progress, listeners)

        def so_far() -> None:
            further = shlex.join(going_on(wanted, summary, root))
            teller.result(summary, wanted.seed, further)
            teller.note(f"runs: {bundle}; to go on: {further}")

        with last_words(so_far):
            finished = asyncio.run(fuzzer.fuzz())
    so_far()
    return _EXITS[summary.outcome] if finished else Exit.INTERRUPTED


def going_on(wanted: Wanted, summary: Summary, root: Path) -> list[str]:
    """The command that runs the schedules after the last one: the rest of its number first, in the same way."""
    first = str(wanted.first) + (f":{wanted.first_design}" if wanted.first_design else "")
    if summary.made:
        after = wanted.designs.index(summary.last_design) + 1
        is_whole = after == len(wanted.designs)
        first = str(summary.last + 1) if is_whole else f"{summary.last}:{wanted.designs[after]}"
    left = None if wanted.schedules is None else wanted.schedules - summary.made or wanted.schedules
    chosen = {
        "--minutes": f"{wanted.seconds / 60:g}",
        "--schedules": "" if left is None else str(left),
        "--shrink-minutes": f"{wanted.shrink_seconds / 60:g}",
        "--tries": str(wanted.tries),
        "--output": str(root),
    }
    usual = {option: str(each.default) for each in fuzz.params for option in each.opts}
    other = [(name, value) for name, value in chosen.items() if value and not _same(value, usual[name])]
    command = ["rebalance-lab", "fuzz", "--design", ",".join(wanted.designs), "--seed", str(wanted.seed)]
    return [
        *command,
        "--first",
        first,
        *(part for each in other for part in each),
        *(["--keep"] if wanted.keep else []),
        *(["--simulated"] if wanted.simulated else []),
    ]


def _same(value: str, usual: str) -> bool:
    return value == usual or f"{value}.0" == usual


def _link(schedule: Schedule) -> tuple[str, ...]:
    return ("--link", schedule.links) if schedule.links != DEFAULT else ()


class _Teller:
    """Says what happens: as text at once, or as one document at the end, with the progress on standard error."""

    def __init__(self, bundle: Path, form: str, *, quiet: bool) -> None:
        self._bundle = bundle
        self._json = form == "json"
        self._quiet = quiet
        self._attempts: list[dict[str, Any]] = []
        self._counterexamples: list[dict[str, Any]] = []

    def note(self, text: str) -> None:
        """Say what is no result."""
        if not self._quiet:
            click.echo(text, err=True)

    def attempt(self, attempt: Attempt) -> None:
        schedule, judgement = attempt.schedule, attempt.judgement
        self._attempts.append(as_json(attempt))
        if not self._quiet:
            why = f" ({judgement.in_words()})" if judgement.in_words() else ""
            line = f"{judgement.outcome}{why} in {attempt.seconds:.1f} s: {schedule.in_words()}"
            click.echo(f"{schedule.title}: {line}", err=self._json)

    def shrinking(self, text: str) -> None:
        self.note(f"  shrinking: {text}")

    def counterexample(self, found: Counterexample) -> None:
        schedule = found.shortest.schedule
        path = self._bundle / f"counterexample-{schedule.number}-{schedule.design}.toml"
        keep_scenario(as_file(schedule.scenario()), path)
        broken = found.shortest.judgement.in_words()
        replay = ["rebalance-lab", "run", str(path), "--design", schedule.design, "--seed", str(schedule.run_seed)]
        live = again = shlex.join(replay)
        if schedule.simulated:
            again = shlex.join([*replay, "--simulated", *_link(schedule)])
        self._counterexamples.append(
            {
                "number": schedule.number,
                "design": schedule.design,
                "broken": broken,
                "steps": schedule.in_words(),
                "is_shortest": found.finished,
                "failed": found.rate.failed,
                "repeated": found.rate.runs,
                "run": str(found.shortest.folder),
                "scenario": str(path),
                "to_repeat": again,
                "to_repeat_live": live,
            }
        )
        if self._json:
            return
        shrunk = f"{len(found.drawn.schedule.steps)} to {len(schedule.steps)} steps with {found.asked} candidates"
        click.echo(f"  broken: {broken}")
        click.echo(f"  shrunk from {shrunk}{'' if found.finished else ' (the time was up)'}: {schedule.in_words()}")
        rate = "" if schedule.simulated else f"again: {found.rate.failed} of {found.rate.runs} runs fail; "
        click.echo(f"  {rate}the run: {found.shortest.folder}")
        click.echo(f"  to repeat it: {again}")
        if schedule.simulated:
            click.echo(f"  with real processes: {live}")

    def result(self, summary: Summary, seed: int, further: str) -> None:
        if not self._json:
            click.echo("\n".join(summary.lines()))
            return
        print_document(
            {
                "seed": seed,
                "folder": str(self._bundle),
                **summary.as_json(),
                "schedules": self._attempts,
                "counterexamples": self._counterexamples,
                "to_go_on": further,
            }
        )
