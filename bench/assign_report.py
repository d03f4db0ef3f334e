"""The tables and command-line options of `make bench ARGS="--only assignors"`."""

from __future__ import annotations

import dataclasses
import statistics
from typing import TYPE_CHECKING, Any

import click

from bench import assign, assign_cases, assign_hosts
from bench.assign import (
    CORE,
    KAFKA,
    KAFKA_COOPERATIVE,
    KAFKA_RANGE,
    KAFKA_STICKY,
    KAFKA_UNIFORM,
    TARGET,
    TARGET_RANGE,
    WIRE,
    WIRE_COOPERATIVE,
    WIRE_EXACT,
)
from bench.assign_cases import FRESH, JOIN, LEAVE, STEPS, UNIFORM
from bench.figures import table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console
    from rich.table import Table

    from bench.assign import AssignorBench, Figure, Options, Subject
    from bench.assign_cases import Case
    from bench.bench import Bench

#: Without --full: about an hour.
DEFAULT = assign.Options(limit_s=20.0)
FULL = assign.Options(from_ours=True)
SMOKE = assign.Options(
    sizes=("smoke",), kinds=(UNIFORM, "half"), heap_mb=1024, repeats=assign.REPEATS_SMOKE, warm_runs=1, limit_s=20.0
)

#: What is compared: (ours, its form, theirs, its form).
RATIOS = (
    (CORE, "core", KAFKA_STICKY, "assign"),
    (WIRE, "wire", KAFKA_STICKY, "assign"),
    (WIRE, "wire", KAFKA_STICKY, "wire"),
    (WIRE_COOPERATIVE, "wire", KAFKA_COOPERATIVE, "assign"),
    (WIRE_COOPERATIVE, "wire", KAFKA_COOPERATIVE, "wire"),
    (WIRE_EXACT, "wire", KAFKA_STICKY, "wire"),
    (TARGET, "target", KAFKA_UNIFORM, "assign"),
    (TARGET_RANGE, "target", KAFKA_RANGE, "assign"),
    (WIRE, "wire", KAFKA_UNIFORM, "assign"),
)

#: The coordinator's `uniform` takes at most as long as Kafka's.
TARGET_MOST = 1.0

COMMAND_LINE: tuple[Callable[[Any], Any], ...] = (
    click.option("--full", is_flag=True, help="Assignors: allow 150 s per call instead of 20 (takes over two hours)."),
    click.option(
        "--size",
        type=click.Choice(["10k", "100k", "1M"]),
        multiple=True,
        help="Assignors: number of partitions (repeatable).",
    ),
    click.option(
        "--kind",
        type=click.Choice(list(assign_cases.KINDS)),
        multiple=True,
        help="Assignors: kind of subscriptions (repeatable).",
    ),
    click.option(
        "--peer",
        type=click.Choice(["none", *assign.PEERS]),
        multiple=True,
        help="Assignors: peer to compare with (repeatable).",
    ),
    click.option(
        "--strategy",
        type=click.Choice(sorted({subject.strategy for subject in assign.SUBJECTS})),
        multiple=True,
        help="Assignors: strategy (repeatable).",
    ),
    click.option(
        "--limit-s", type=click.FloatRange(min=0, min_open=True), help="Assignors: time limit of a call, in seconds."
    ),
    click.option(
        "--clock", type=click.Choice(["cpu", "wall"]), default="cpu", help="Assignors: clock of the time limit."
    ),
    click.option("--heap-mb", type=click.IntRange(256), help="Assignors: maximum heap of the JVM (-Xmx)."),
)


def command_line(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of this part to a command; `options_of` reads them."""
    for option in reversed(COMMAND_LINE):
        command = option(command)
    return command


def options_of(given: dict[str, Any], *, smoke: bool) -> Options:
    """The options that `command_line` added."""
    chosen = SMOKE if smoke else FULL if given["full"] else DEFAULT
    changes: dict[str, Any] = {"clock": given["clock"]}
    changes |= {"sizes": given["size"]} if given["size"] and not smoke else {}
    changes |= {"kinds": given["kind"]} if given["kind"] else {}
    changes |= {"peers": given["peer"]} if given["peer"] else {}
    changes |= {"strategies": given["strategy"]} if given["strategy"] else {}
    changes |= {name: given[name] for name in ("limit_s", "heap_mb") if given[name] is not None}
    return dataclasses.replace(chosen, **changes)


def run(bench: Bench) -> None:
    """Measure, check, print. A wrong answer ends the bench; `bench.figures` keeps the figures before it."""
    options = options_of(bench.asked, smoke=bench.smoke)
    if bench.runs is not None:
        options = dataclasses.replace(options, repeats=((bench.runs, 1e9),))
    for peer in set(assign.PEERS) - set(options.peers):
        bench.leave_out(f"assignors of {peer}", "not selected")
    if KAFKA in options.peers and not bench.with_kafka:  # which prints the reason
        options = dataclasses.replace(options, peers=[peer for peer in options.peers if peer != KAFKA])
    made = assign.AssignorBench(bench.folder / "assignors", options)
    try:
        if KAFKA in options.peers:
            made.start()
        _say_how(bench, options)
        for case in made.cases():
            _run_case(made, case, options, bench)
    except assign.CheckFailed as failed:
        raise click.ClickException(f"a check of the assignors failed: {failed}") from failed
    finally:
        made.close()
    if any(figure.case.size == "1M" for figure in made.figures):
        bench.console.print(_targets(made.figures, options))
    bench.state("all assignors' answers were checked: valid and balanced, with moves counted")


def _run_case(made: AssignorBench, case: Case, options: Options, bench: Bench) -> None:
    figures: list[Figure] = []
    try:
        for figure in made.measure(case):
            figures.append(figure)
            bench.console.print(_progress(figure), highlight=False, style="dim")
            _keep(figure, bench)
    finally:
        _print_case(case, figures, options, bench.console)
    assign.check_same_sets(figures)


def _say_how(bench: Bench, options: Options) -> None:
    clock = {"cpu": "CPU seconds (for Java with the garbage collector's)", "wall": "wall-clock seconds"}
    ours, theirs = assign_hosts.cores()
    java = " ".join(assign_hosts.java_options(options.heap_mb))
    bench.state(f"assignors: {clock[options.clock]}, median (range) x runs; limit {options.limit_s:g} s per call")
    bench.state(f"ours and kafka-python's on core {ours}, one process per call; MB: its growth")
    bench.state("leave and join start from the same assignor's fresh assignment")
    if KAFKA in options.peers:
        bench.state(
            f"Kafka {assign_hosts.KAFKA}'s on core {theirs}, a warm JVM: {java}; MB: its heap at the peak, with garbage"
        )
        bench.state("Kafka's: assign() alone, and together with decoding and encoding the bytes of all members")


def _keep(figure: Figure, bench: Bench) -> None:
    """Keep each run for the JSON file; the last one also has the findings about all runs."""
    case, found = figure.case, figure.findings
    measure = f"assignors: {case.size} {case.kind} {figure.step}"
    about = {
        "partitions": case.shape.partitions,
        "topics": case.shape.topics,
        "members": len(case.present(figure.step)),
    }
    for form, runs in figure.seconds.items():
        for wall_s, cpu_s in runs:
            bench.figures.add(measure, figure.subject.name, about, {f"{form}_wall_s": wall_s, f"{form}_cpu_s": cpu_s})
    values: dict[str, float] = {"over_the_limit": float(figure.over)}
    if found is not None:
        values |= {
            "memory_mb": figure.memory_mb,
            "load_min": found.load_min,
            "load_max": found.load_max,
            "unfair": float(bool(found.unfair)),
            "withheld": found.withheld,
            "handed_out": found.handed_out,
            "moved": found.moved,
            "moved_for_loads": found.moved_for_loads,
            "moved_least": figure.moved_least,
        }
    bench.figures.add(measure, figure.subject.name, about, values)
    if figure.note:
        bench.figures.statements.append(f"{measure}, {figure.subject.name}: {figure.note}")


def _progress(figure: Figure) -> str:
    what = f"{figure.case.size} {figure.case.kind} {figure.step}: {figure.subject.name}"
    for form, runs in figure.seconds.items():
        what += f"; {form} {min(cpu for _, cpu in runs):.3f} CPU s x {len(runs)}"
    return what + (" over the limit" if figure.over else "") + (f"; {figure.note}" if figure.note else "")


def _print_case(case: Case, figures: Sequence[Figure], options: Options, console: Console) -> None:
    title = f"{case.shape.partitions:,} partitions ({case.shape}): {assign_cases.KINDS[case.kind]}"
    seconds = table(title, "", *STEPS, "MB")
    checks = table(
        "Checked: valid and fair (loads); partitions newly assigned + moved (of the fewest possible)", "", *STEPS
    )
    by_step = _by_step(figures)
    for subject in dict.fromkeys(figure.subject for figure in figures):
        steps = by_step[subject]
        for form in _forms(steps):
            memory = max((f.memory_mb for f in steps.values() if f.seconds), default=None)
            seconds.add_row(
                _named(subject, form),
                *(_cell(steps[step], form, options) if step in steps else "-" for step in STEPS),
                "" if memory is None or form != subject.form else f"{memory:,.0f}",
            )
        checks.add_row(subject.name, *(_checked(steps[step]) if step in steps else "-" for step in STEPS))
    console.print(seconds)
    console.print(_ratio_table(by_step, options))
    console.print(checks)


def _by_step(figures: Sequence[Figure]) -> dict[Subject, dict[str, Figure]]:
    found: dict[Subject, dict[str, Figure]] = {}
    for figure in figures:
        found.setdefault(figure.subject, {})[figure.step] = figure
    return found


def _forms(steps: dict[str, Figure]) -> list[str]:
    subject = next(iter(steps.values())).subject
    return list(dict.fromkeys([subject.form, *(form for figure in steps.values() for form in figure.seconds)]))


def _named(subject: Subject, form: str) -> str:
    if subject.peer != assign.KAFKA:
        return subject.name
    return f"{subject.name}, {'assign()' if form == 'assign' else 'with bytes'}"


def _of_clock(figure: Figure, form: str, options: Options) -> list[float]:
    return [run[options.clock == "cpu"] for run in figure.seconds.get(form, [])]


def _cell(figure: Figure, form: str, options: Options) -> str:
    runs = _of_clock(figure, form, options)
    if not runs:
        return f"> {options.limit_s:g}" if figure.over else f"[dim]{figure.note or '-'}[/]"
    text = f"{statistics.median(runs):.3g}"
    if len(runs) > 1:
        text += f" ({min(runs):.3g}-{max(runs):.3g})"
    return f"{text} x{len(runs)}" + ("*" if figure.note else "")


def _checked(figure: Figure) -> str:
    found = figure.findings
    if found is None:
        return "-"
    text = found.loads
    if figure.step != FRESH:
        text += f"; {found.handed_out:,} + " * bool(found.handed_out) or "; "
        text += f"{found.moved:,} of {figure.moved_least:,}"
    if found.withheld:
        text += f", {found.withheld:,} in a second round"
    if found.unfair:
        text += ", unfair"
    return text + (f" ({figure.note})" if figure.note else "")


def ratio(mine: Figure | None, form: str, other: Figure | None, other_form: str, options: Options) -> str:
    """Ratio of medians; a bound if the other one exceeded the limit."""
    if mine is None or other is None:
        return "-"
    ours, theirs = _of_clock(mine, form, options), _of_clock(other, other_form, options)
    if ours and theirs:
        return f"{statistics.median(ours) / statistics.median(theirs):.3g}"
    if ours and other.over:
        return f"< {statistics.median(ours) / options.limit_s:.2g}"
    return "-"


def _ratio_table(by_step: dict[Subject, dict[str, Figure]], options: Options) -> Table:
    made = table("Ratios, ours / Kafka's", "", *STEPS)
    for ours, form, theirs, their_form in RATIOS:
        if ours in by_step and theirs in by_step:
            row = [ratio(by_step[ours].get(s), form, by_step[theirs].get(s), their_form, options) for s in STEPS]
            made.add_row(f"{ours.name} / {_named(theirs, their_form)}", *row)
    return made


# -- targets -----------------------------------------------------------------------------------------------------------


def _targets(figures: Sequence[Figure], options: Options) -> Table:
    """The targets at a million partitions, each with its result."""
    made = table("Targets at 1M", "", "target", "here", "", left=(0, 3))
    found = {(f.case.kind, f.subject, f.step): f for f in figures if f.case.size == "1M"}
    for kind in dict.fromkeys(f.case.kind for f in figures if f.case.size == "1M"):
        for name, target, value in goals(kind, found, options):
            verdict = "not measured" if value is None else "met" if value <= target else "[red]missed[/]"
            made.add_row(f"{kind}: {name}", f"<= {target:g}", "-" if value is None else f"{value:.3g}", verdict)
    return made


def goals(
    kind: str, found: dict[tuple[str, Subject, str], Figure], options: Options
) -> list[tuple[str, float, float | None]]:
    def slowest(subject: Subject, form: str) -> float | None:
        runs = [_of_clock(found[kind, subject, s], form, options) for s in STEPS if (kind, subject, s) in found]
        return max((statistics.median(each) for each in runs if each), default=None)

    def beside(step: str, subject: Subject = WIRE, peer: Subject = KAFKA_STICKY) -> float | None:
        mine, other = found.get((kind, subject, step)), found.get((kind, peer, step))
        if mine is None or other is None:
            return None
        ours, theirs = _of_clock(mine, subject.form, options), _of_clock(other, "assign", options)
        return statistics.median(ours) / statistics.median(theirs) if ours and theirs else None

    def moves() -> float | None:
        checked = [found[kind, WIRE, s] for s in (LEAVE, JOIN) if (kind, WIRE, s) in found]
        return max((f.moves_ratio for f in checked if f.findings is not None), default=None)

    target = [("uniform to Kafka's, " + step, TARGET_MOST, beside(step, TARGET, KAFKA_UNIFORM)) for step in STEPS]
    if kind == UNIFORM:
        return [
            ("core, s", 0.3, slowest(CORE, "core")),
            ("wire to Kafka sticky's assign(), leave", 0.5, beside(LEAVE)),
            ("wire to Kafka sticky's assign(), join", 0.5, beside(JOIN)),
            *target,
        ]
    return [
        ("core, s", 0.5, slowest(CORE, "core")),
        ("wire, s", 2.0, slowest(WIRE, "wire")),
        ("changed hands, to the bound", assign.MOVES_MOST, moves()),
        *target,
    ]
