"""`run` and `compare`: experiments and their analysis."""

from __future__ import annotations

import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from comparison.cli.analysis import analysed, chosen_showing, showing_options, shown
from comparison.cli.complaints import OneOf
from comparison.cli.foreign_zookeeper import not_judged_on, possible_on, require_logs, require_zookeeper
from comparison.cli.interrupted import after_interrupt
from comparison.cli.options import (
    chosen_links,
    design_option,
    dry_run_option,
    link_option,
    output_option,
    plugin_option,
    quiet_option,
    with_options,
    with_seed,
)
from comparison.cli.plans import LeftOut, PlannedRun, RunsPlan, show_plan
from comparison.cli.report_file import REPORT
from comparison.cli.spark_options import chosen_spark, spark_options
from comparison.exits import Exit
from comparison.interrupts import last_words
from comparison.own_scenarios import names_of
from comparison.scenarios.plan.applicability import check_applicability, check_scenario, overriding
from comparison.scenarios.plan.catalogue import (
    CATALOGUE,
    COMPARED,
    SMOKE,
    designs_for,
    designs_named,
    scenario_named,
)
from comparison.scenarios.plan.configuration import check
from comparison.scenarios.plan.descriptors import descriptors_needed
from comparison.scenarios.plan.doubts import doubts
from comparison.scenarios.plan.parameters import SEED_MAX
from comparison.scenarios.plan.presets import PRESETS
from comparison.scenarios.run.experiments import (
    Experiments,
    estimated_run_s,
    estimated_s,
    expanded,
    left_out,
    plan,
)
from comparison.screen.counted import counted
from comparison.screen.progress import RunProgress, about
from kernel.errors import ConfigurationError
from kernel.platform.requirements import require_machine
from kernel.settings import split_pairs
from kernel.trace.words import TimeSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from comparison.cli.analysis import Analysed
    from comparison.cli.spark_options import SparkChoice
    from comparison.scenarios.run.experiments import Planned
    from comparison.scenarios.run.runner import Perform

#: More repeats would take longer than a day: a mistake.
REPEATS_MAX = 200
EMBEDDED, MODELLED = "embedded", "modelled"


#: The options that `run` and `compare` share.
experiment_options = with_options(
    plugin_option,
    click.option("--members", type=int, help="Number of members at the start."),
    click.option("--partitions", type=int, help="Number of partitions of each topic."),
    click.option("--topics", type=int, help="Number of topics."),
    click.option("--streams", type=int, help="Number of streams of each member, per topic."),
    click.option("--rate", type=int, help="Records produced per second."),
    click.option("--brokers", type=int, help="Number of brokers."),
    click.option("--time-limit", "time_limit_s", type=float, help="Abort a run after this many seconds."),
    click.option(
        "--seed",
        type=click.IntRange(0, SEED_MAX),
        help="Seed of all random choices, which the result names.  [default: random]",
    ),
    click.option(
        "--repeat",
        "repeats",
        type=click.IntRange(1, REPEATS_MAX),
        default=1,
        show_default=True,
        help="Repeat each run with seeds SEED, SEED+1, ... and report medians and ranges.",
    ),
    click.option(
        "--preset",
        type=OneOf(sorted(PRESETS)),
        help="The same timers in all designs, or the defaults of each Kafka release.  [default: equal-timers]",
    ),
    click.option(
        "--session-timeout",
        "session_timeout_ms",
        type=int,
        metavar="MS",
        help="Session timeout in all designs; heartbeats and backoffs are scaled with it.  [default: the preset's]",
    ),
    click.option(
        "-c",
        "--config",
        "--set",
        "pairs",
        multiple=True,
        metavar="KEY=VALUE",
        help="A Kafka setting, for every part that has it. May be repeated.",
    ),
    click.option(
        "--zookeeper",
        default=EMBEDDED,
        show_default=True,
        help="embedded, docker, docker:3, or HOST:PORT,... of a running one.",
    ),
    click.option(
        "--simulated",
        is_flag=True,
        help="In virtual time, on a modelled network and a modelled ZooKeeper: the same seed gives the same run.",
    ),
    link_option,
    click.option(
        "--zookeeper-log",
        "zookeeper_logs",
        multiple=True,
        type=click.Path(file_okay=False, path_type=Path),
        help="Folder of a running server's transaction log, for the verdicts. Repeat it for each server.",
    ),
    output_option,
    showing_options,
    dry_run_option,
    quiet_option,
    spark_options,
)


@click.command(
    epilog="""\b
Examples:
  rebalance-lab run crash                          zookeeper and eager
  rebalance-lab run rolling-restart --design all
      what each design pays for a deployment
  rebalance-lab run pause join --design zookeeper
  rebalance-lab run crash --members 6 --rate 500 --session-timeout 6000
  rebalance-lab run join --design eager --repeat 10
      medians and ranges of ten runs
  rebalance-lab run my.toml crash
      your own scenario (docs/own-scenarios.md), and one of ours
  rebalance-lab run herd --seed 7 --dry-run"""
)
@click.argument("names", metavar="SCENARIO...", nargs=-1, required=True)
@design_option
@experiment_options
def run(names: tuple[str, ...], designs: tuple[str, ...], **options: Any) -> int:
    """Run scenarios, analyse them and report the verdicts."""
    scenarios = expanded(names_of(names))
    return experiment("run", scenarios, designs_for(scenarios, designs), options)


@click.command(
    epilog="""\b
Examples:
  rebalance-lab compare
      the faults, in zookeeper and eager: at most six minutes
  rebalance-lab compare --smoke    crash and herd only
  rebalance-lab compare --all
      every scenario in every design; --dry-run estimates how long it takes
  rebalance-lab compare --design eager,cooperative
  rebalance-lab compare my.toml crash --design all    these scenarios
  rebalance-lab compare --format json > comparison.json"""
)
@click.argument("names", metavar="[SCENARIO...]", nargs=-1)
@click.option("--smoke", is_flag=True, help="Run only crash and herd.")
@click.option("--all", "everything", is_flag=True, help="Run every scenario in every design.")
@design_option
@experiment_options
def compare(names: tuple[str, ...], smoke: bool, everything: bool, designs: tuple[str, ...], **options: Any) -> int:
    """Run the scenarios under several designs and compare them."""
    if smoke + everything + bool(names) > 1:
        raise click.UsageError("--smoke, --all and scenarios exclude each other")
    scenarios = expanded(names_of(names)) if names else CATALOGUE if everything else SMOKE if smoke else COMPARED
    return experiment("compare", list(scenarios), designs_named(designs or ("all",) * everything), options)


def experiment(name: str, names: Sequence[str], designs: Sequence[str], options: dict[str, Any]) -> int:
    """Plan the runs, perform, analyse and report them; the exit code."""
    settings = split_pairs(options.pop("pairs"))
    showing = chosen_showing(options)
    root, dry_run, quiet, zookeeper, simulated, repeats, logs = (
        options.pop(key)
        for key in ("output", "dry_run", "quiet", "zookeeper", "simulated", "repeats", "zookeeper_logs")
    )
    require_modelled(zookeeper, simulated=simulated)
    options["links"] = chosen_links(options["links"], simulated=simulated)
    spark = chosen_spark(options)
    given = own_seed(names) if options["seed"] is None else options["seed"]
    command, options["seed"] = with_seed(["rebalance-lab", *sys.argv[1:]], given)
    require_logs(zookeeper, logs)
    names = possible_on(zookeeper, names)
    planned = plan(names, designs, {**options, "settings": settings}, repeats)
    without = left_out(names, designs)
    if not planned:
        raise ConfigurationError(
            "; ".join(f"{each.scenario} is not applicable to {each.design}: {each.reason}" for each in without)
            + ". Choose another --design"
        )
    warnings = [
        *_doubts(names, designs, {**options, "settings": settings}, planned),
        *not_judged_on(zookeeper, names, designs),
    ]
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    several = f" ({repeats} repeats of {len(planned) // repeats})" if repeats > 1 else ""
    summary = f"{counted(len(planned), 'run')}{several} with seed {options['seed']}"
    if dry_run:
        left = [LeftOut(title=f"{each.scenario} · {each.design}", reason=each.reason) for each in without]
        shown_plan = _plan_shown(summary, planned, left, zookeeper, f"{root}/<time>-{name}", simulated=simulated)
        show_plan(shown_plan, showing.form)
        return Exit.AS_EXPECTED
    require_machine(*(descriptors_needed(scenario_named(each.scenario), each.parameters) for each in planned))
    if not quiet:
        click.echo(f"{summary}, {about(estimated_s(planned, simulated=simulated))}", err=True)
    require_zookeeper(zookeeper, planned)
    with RunProgress(len(planned), quiet=quiet) as progress:
        experiments = Experiments(
            root=root,
            name=name,
            command=command,
            zookeeper=zookeeper,
            zookeeper_logs=logs,
            progress=progress,
            without=without,
            warnings=warnings,
            simulate=_simulating() if simulated else None,
        )
        result = _performed(experiments, planned, spark, progress)
        if result is None:
            return Exit.INTERRUPTED
    code = shown(result, showing)
    if not quiet:
        click.echo(f"report: {experiments.bundle / REPORT}; to repeat: {shlex.join(command)}", err=True)
    return code


def require_modelled(zookeeper: str, *, simulated: bool) -> None:
    """Refuse another ZooKeeper for simulated runs."""
    if simulated and zookeeper != EMBEDDED:
        raise click.UsageError(f"--simulated runs on a modelled ZooKeeper: leave out --zookeeper {zookeeper}")


def _simulating() -> Perform:
    """What performs runs in a simulated world. Imported late: few commands need it."""
    from comparison.simulation.runs import perform

    return perform


def _doubts(
    names: Sequence[str], designs: Sequence[str], options: dict[str, Any], planned: Sequence[Planned]
) -> Iterator[str]:
    """What of the options has no effect, or not the one that the user may expect."""
    settings = options["settings"]
    yield from (*check(settings), *check_applicability(designs, settings), *ineffective(names, options))
    yield from without_variants(names)
    yield from overriding(designs, options["session_timeout_ms"], settings)
    for scenario in map(scenario_named, names):
        yield from check_scenario(scenario, designs, options)
    yield from doubts(((each.scenario, each.design, each.parameters) for each in planned), settings)


def _plan_shown(
    summary: str,
    planned: Sequence[Planned],
    left: Sequence[LeftOut],
    zookeeper: str,
    folder: str,
    *,
    simulated: bool,
) -> RunsPlan:
    return RunsPlan(
        summary=summary,
        seconds=estimated_s(planned, simulated=simulated),
        seed=planned[0].parameters.seed,
        folder=folder,
        zookeeper=MODELLED if simulated else zookeeper,
        clock=TimeSource.SIMULATED if simulated else TimeSource.MONOTONIC,
        runs=[planned_run(each, estimated_run_s(each, simulated=simulated)) for each in planned],
        left_out=left,
    )


def planned_run(planned: Planned, estimated_s: float, title: str = "") -> PlannedRun:
    """What `--dry-run` shows of a run."""
    return PlannedRun(
        title=title or planned.title,
        scenario=planned.scenario,
        design=planned.design,
        seconds=round(estimated_s),
        parameters=planned.parameters.as_json(),
    )


def _performed(
    experiments: Experiments, planned: Sequence[Planned], spark: SparkChoice, progress: RunProgress
) -> Analysed | None:
    """Perform and analyse the whole plan; None after an interrupt, with what to do then."""

    def interrupted() -> None:
        progress.leave()
        progress.say(after_interrupt(experiments.bundle))

    with suppress(KeyboardInterrupt), last_words(interrupted):
        finished = experiments.perform(planned)
        if not finished.interrupted:
            progress.say(f"analysing {counted(len(finished.run_dirs), 'run')} on Spark")
            return analysed(finished.run_dirs, finished.bundle, spark=spark, progress=progress.stage)
    interrupted()
    return None


def ineffective(names: Sequence[str], options: Mapping[str, object]) -> list[str]:
    """Warnings for options that some scenarios ignore. Raises `ConfigurationError` for one that all of them ignore."""
    sized = [name for name in names if scenario_named(name).sets_own_sizes]
    if options["members"] is None or not sized:
        return []
    theirs = "sets its own group sizes" if len(sized) == 1 else "set their own group sizes"
    ignored = f"--members {options['members']} is ignored by {', '.join(sized)}, which {theirs}"
    if len(sized) == len(names):
        raise ConfigurationError(f"{ignored}. Leave it out")
    return [ignored]


def without_variants(names: Sequence[str]) -> list[str]:
    """Warnings for copies of scenarios whose variants, which run beside the original, do not run with a copy."""
    warnings = []
    for scenario in map(scenario_named, names):
        original = CATALOGUE.get(scenario.like)
        if scenario.name in CATALOGUE or original is None or scenario.steps != original.steps:
            continue
        variants = [each.name for each in CATALOGUE.values() if each.variant_of == original.name]
        if left := [name for name in variants if name not in names]:
            which = f"the variant{'' if len(left) == 1 else 's'} of {original.name}"
            warnings.append(f"{scenario.name} runs without {which}: to compare with, add {' '.join(left)}")
    return warnings


def own_seed(names: Sequence[str]) -> int | None:
    """The seed that a scenario's file says. Raises `ConfigurationError` if several say different ones."""
    seeds = sorted({scenario_named(name).defaults.seed for name in names} - {0})
    if len(seeds) > 1:
        raise ConfigurationError(
            f"the scenarios have different seeds ({', '.join(map(str, seeds))}). Choose one by --seed"
        )
    return seeds[0] if seeds else None
