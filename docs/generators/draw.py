"""Fill the marked places of the pages beside this file from real runs: `make draw`.

Drawings come from fresh runs (or, with `--runs`, from earlier
runs of the same commands), so each differs a little from the last one; tests check what must not differ.
`make draw ARGS=coordinators` fills that page and the chapters of the designs on it.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from comparison.exits import Exit
from comparison.report.drawing.palette import styles
from comparison.report.drawing.panel import Panel
from comparison.report.drawing.picture import chart_picture
from comparison.report.drawing.records import delivered
from comparison.report.drawing.scale import scales
from comparison.report.view.runs import read_views
from comparison.results.result import RESULT, read_result
from docs.generators.pages import DOCS, chapter, filled
from docs.generators.records import COMMAND
from kernel.designs import COORDINATED, DESIGN_NAMES, STATIC, ZOOKEEPER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from comparison.report.view.model import RunView
    from comparison.results.run import Run

#: The commands whose runs pages are drawn from, by the page that names them.
COMMANDS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "zookeeper-consumer": (("run", "join", "split-brain", "--design", "zookeeper", "--seed", "1"),),
    "coordinators": (("run", "join", "rolling-restart", "slow-member", "--design", "all", "--seed", "1"),),
}
#: The design of which a restart is shown step by step, and the member shown; `four-phases.md` has joins.
STEPS_OF_A_RESTART = (STATIC, "m1.2")
#: Bars of a drawing.
_MARKS = 1_000
#: Seconds around a restart.
RESTART = ("restart", 0.5, 5.0)


class Runs:
    """Runs by scenario and design, with their results."""

    def __init__(self, bundles: Sequence[Path]) -> None:
        self.results: list[Run] = []
        self._bundles = bundles
        self._folders: dict[tuple[str, str], Path] = {}
        for bundle in bundles:
            for run in read_result(bundle / RESULT).runs:
                self.results.append(run)
                self._folders[run.scenario, run.design] = bundle / run.path

    def folder(self, scenario: str, design: str) -> Path:
        return self._folders[scenario, design]

    def views(self, scenario: str) -> list[RunView]:
        """What is drawn of a scenario's runs, in the order of the designs."""
        found = []
        for bundle in self._bundles:
            views = read_views(read_result(bundle / RESULT), bundle)
            found += [view for view in views if view is not None and view.scenario == scenario]
        return sorted(found, key=lambda view: DESIGN_NAMES.index(view.design))

    def window(self, scenario: str, design: str, change: str, before: float, after: float) -> tuple[object, ...]:
        """Seconds before and after the first change of that name."""
        run = next(r for r in self.results if (r.scenario, r.design) == (scenario, design))
        at = next(each.from_ms for each in run.changes if each.change == change) / 1000
        return ("--from", round(max(0.0, at - before), 1), "--to", round(at + after, 1))


class Drawing:
    """A picture of one run; by default, of its first rebalance after the change."""

    def __init__(
        self, scenario: str, design: str, alt_text: str, window: tuple[str, float, float] | None = None
    ) -> None:
        self.design = design
        self._scenario, self._alt_text, self._window = scenario, alt_text, window

    def made(self, runs: Runs, name: str) -> str:
        window = () if self._window is None else runs.window(self._scenario, self.design, *self._window)
        asked = ("--show", "timeline", "--format", "svg", *window, "--output", DOCS / "diagrams" / name)
        call("diagram", runs.folder(self._scenario, self.design), *asked)
        return f"![{self._alt_text}](diagrams/{name})"


DRAWINGS = {
    "join.svg": Drawing("join", "zookeeper", "a join: phases of the members, owners and deliveries of the partitions"),
    "split-brain.svg": Drawing(
        "split-brain",
        "zookeeper",
        "a member that is cut off goes on delivering beside the new owner",
        ("cut", 1.5, 12.0),
    ),
    "join-server.svg": Drawing("join", "server", "server: everything stops, all at once, and starts again"),
    "join-eager.svg": Drawing("join", "eager", "eager: everything stops, each member when its heartbeat is answered"),
    "join-cooperative.svg": Drawing(
        "join", "cooperative", "cooperative: what moves stops, the rest is never interrupted"
    ),
    "join-consumer.svg": Drawing(
        "join",
        "consumer",
        "consumer: two partitions change hands, each when its former owner has let it go",
        ("join", 0.5, 1.7),
    ),
    "restart-static.svg": Drawing("rolling-restart", "static", "static: a place waits for its member", RESTART),
    "restart-delayed.svg": Drawing(
        "rolling-restart", "delayed", "delayed: three rounds, and the lost partitions wait", RESTART
    ),
}


def pages(source: str) -> tuple[str, ...]:
    """The pages that are drawn from the runs of these commands."""
    return (source, *map(chapter, COORDINATED)) if source == "coordinators" else (source,)


def fillings(page: str, runs: Runs) -> Mapping[str, Callable[[], str]]:
    """The contents of a page's places, by name, as far as they come from runs."""
    if page == "coordinators":
        return {"stall.svg": partial(stall, runs)}
    (design,) = (name for name in DESIGN_NAMES if chapter(name) == page)
    drawn: dict[str, Callable[[], str]] = {
        name: partial(each.made, runs, name) for name, each in DRAWINGS.items() if each.design == design
    }
    if design == ZOOKEEPER:
        return {**drawn, "steps": partial(steps, runs, "m1")}
    if design == STEPS_OF_A_RESTART[0]:
        drawn[f"steps-{design}"] = partial(restart_steps, runs, *STEPS_OF_A_RESTART)
    return drawn


def steps(runs: Runs, member: str) -> str:
    """One member's table of the join in `zookeeper`, without its heading."""
    text = call("diagram", runs.folder("join", ZOOKEEPER), "--show", "steps", "--member", member)
    return text[text.index("| ms ") :].strip()


def restart_steps(runs: Runs, design: str, member: str) -> str:
    """One member's tables of the first restart."""
    scenario = "rolling-restart"
    asked = ("--show", "steps", "--member", member, *runs.window(scenario, design, *RESTART))
    return _shown(call("diagram", runs.folder(scenario, design), *asked).split("\n### ")[1:])


def _shown(tables: Sequence[str]) -> str:
    split = [each.partition("\n") for each in tables]
    return "\n\n".join(f"*{heading}*\n\n{table.strip()}" for heading, _, table in split)


def stall(runs: Runs) -> str:
    """All designs' records over time while one member is slow."""
    views = runs.views("slow-member")
    axes = scales(views)
    classes = styles(views)
    chart = delivered([Panel(view, scale, classes, _MARKS) for view, scale in zip(views, axes, strict=True)])
    assert chart is not None, "no member delivered anything"
    (DOCS / "diagrams" / "stall.svg").write_text(chart_picture(chart, axes[0].length_ms, views[0], axes[0]))
    return "![records that the whole group delivers while one member is slow, by design](diagrams/stall.svg)"


def run(*arguments: object) -> None:
    """Run a command; an unexpected verdict is no error, because the page shows what was measured."""
    done = subprocess.run([COMMAND, *map(str, arguments)], check=False, capture_output=True, text=True)
    assert done.returncode in (Exit.AS_EXPECTED, Exit.NOT_AS_EXPECTED, Exit.UNKNOWN), done.stderr


def call(*arguments: object) -> str:
    return subprocess.run([COMMAND, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def draw(page: str, places: Mapping[str, Callable[[], str]]) -> None:
    path = DOCS / f"{page}.md"
    path.write_text(filled(path, {name: fill() for name, fill in places.items()}))


def main() -> None:
    parser = argparse.ArgumentParser(prog="make draw", description=__doc__)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=", ".join(COMMANDS))
    parser.add_argument("--runs", nargs="+", type=Path, default=[], help="folders of runs instead of runs made now")
    given = parser.parse_args()
    for source in given.pages or COMMANDS:
        if source not in COMMANDS:
            parser.error(f"no page {source}: there are {', '.join(COMMANDS)}")
        if given.runs:
            draw_all(source, Runs(given.runs))
        else:
            with tempfile.TemporaryDirectory() as scratch:
                draw_all(source, Runs([*made(source, Path(scratch))]))


def made(source: str, scratch: Path) -> Iterator[Path]:
    """Run the commands of a page. Yields the folders of their runs."""
    for number, command in enumerate(COMMANDS[source]):
        folder = scratch / str(number)
        run(*command, "--quiet", "--output", folder)
        yield (folder / "latest").resolve()


def draw_all(source: str, runs: Runs) -> None:
    for page in pages(source):
        draw(page, fillings(page, runs))


if __name__ == "__main__":
    main()
