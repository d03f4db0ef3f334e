"""The context of every measure: the two sides, where figures go, sizes and runs."""

from __future__ import annotations

import importlib.util
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bench import machine, sides
from bench.figures import Figures
from comparison.originals import jars
from kernel.errors import EnvironmentFault
from kernel.platform.jre import find_java

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from rich.console import Console

    from bench.figures import Row
    from bench.machine import Cores
    from bench.sides import Side

#: Installs the extra beside what `make setup` has installed.
INSTALL_ORIGINALS = ".venv/bin/python -m pip install --constraint constraints.txt --editable '.[originals]'"


@dataclass
class Bench:
    """One `make bench`. Options are None or empty when they were not given; each measure has its own defaults."""

    folder: Path
    console: Console
    smoke: bool = False
    runs: int | None = None
    sizes: tuple[int, ...] = ()
    brokers: tuple[int, ...] = ()
    profiles: Path | None = None  #: where profiles go, if ours is profiled
    asked: Mapping[str, Any] = field(default_factory=dict)  #: options of single parts, by name
    figures: Figures = field(default_factory=Figures)
    _cores: Cores | None = None
    _no_kafka: str | None = None

    @property
    def cores(self) -> Cores:
        """Chosen, and printed, on first use."""
        if self._cores is None:
            self._cores = machine.choose_cores()
            self.state(self._cores.statement)
        return self._cores

    def state(self, statement: str) -> None:
        """Print and keep what one must know to read the figures."""
        self.console.print(statement, highlight=False)
        self.figures.statements.append(statement)

    def print_rows(
        self, measure: str, title: str, rows: Sequence[Row], beside: tuple[str, str] = (sides.OURS, sides.KAFKA)
    ) -> None:
        """Print a measure's medians and ranges of two sides, their ratio, and the target."""
        self.console.print(self.figures.table(measure, title, beside, rows))

    def leave_out(self, what: str, why: str) -> None:
        self.console.print(f"[yellow]Left out: {what}: {why}[/]", highlight=False)
        self.figures.left_out.append(f"{what}: {why}")

    @property
    def asks_ours_only(self) -> bool:
        return bool(self.asked.get("ours_only"))

    def leave_kafka_out(self, why: str) -> None:
        self._no_kafka = why
        self.leave_out(sides.KAFKA, why)

    @property
    def with_kafka(self) -> bool:
        """Whether Kafka can be run; if not, the reason and the remedy are printed once."""
        if self._no_kafka is None:
            self._no_kafka = "--ours-only" if self.asks_ours_only else why_no_kafka()
            if self._no_kafka:
                self.leave_kafka_out(self._no_kafka)
        return not self._no_kafka

    @contextmanager
    def sides(self, measure: str, settings: Mapping[str, str] | None = None) -> Iterator[list[Side]]:
        """Start ours and, unless it is left out, Kafka's; both keep running and are measured alternately.

        Inside, this process runs on the drivers' core.
        """
        both = {**sides.SETTINGS, **(settings or {})}
        folder = self.folder / measure
        profile = None
        if self.profiles is not None:
            self.profiles.mkdir(parents=True, exist_ok=True)
            profile = (self.profiles / f"{measure}.pstats").absolute()
            profile.unlink(missing_ok=True)
        with_kafka = self.with_kafka
        with machine.pinned(self.cores.driver), ExitStack() as stack:
            made = [stack.enter_context(sides.our_side(folder / "ours", both, cores=self.cores, profile=profile))]
            if with_kafka:
                made.append(stack.enter_context(sides.kafka_side(folder / "kafka", self.cores, both)))
            yield made
        if profile is not None:
            self.console.print(f"ours was profiled, which slows it down: {profile}", highlight=False)
            self.console.print(sides.top_functions(profile), highlight=False)


def why_no_kafka() -> str:
    """The reason and the remedy; empty if Kafka can be run."""
    if importlib.util.find_spec("jgo") is None:
        try:  # jars in the cache are enough
            jars.class_path(sides.KAFKA_VERSION, offline=True)
        except EnvironmentFault:
            return f"the extra `originals` is not installed; install it: {INSTALL_ORIGINALS}"
    try:
        find_java()
        jars.class_path(sides.KAFKA_VERSION)
    except EnvironmentFault as error:
        return str(error)
    return ""
