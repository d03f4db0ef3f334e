"""Progress on standard error: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from types import TracebackType


class RunProgress:
    """Progress of a number of runs and of the analysis after them."""

    def __init__(self, total: int, console: Console | None = None, *, quiet: bool = False) -> None:
        self._console = console or Console(stderr=True)
        self._total = total
        self._done = 0
        self._begun = time.monotonic()
        self._title = ""
        self._quiet = quiet
        self._live: Progress | None = None
        if self._console.is_terminal and not quiet:
            self._live = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                console=self._console,
                transient=True,
            )
            self._task = self._live.add_task("starting", total=total)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.leave()

    def leave(self) -> None:
        """Restore the terminal: remove the line, show the cursor."""
        if self._live is not None:
            self._live.stop()

    def started(self, title: str) -> None:
        self._title = title
        self._begun = time.monotonic()
        if self._live is not None:
            self._live.update(self._task, description=title)
        elif not self._quiet:
            self._console.print(f"[{self._done + 1}/{self._total}] {title}", markup=False, highlight=False)

    def stage(self, stage: str) -> None:
        if self._live is not None:
            self._live.update(self._task, description=f"{self._title}: {stage}")

    def finished(self, how: str) -> None:
        self._done += 1
        if self._live is not None:
            self._live.update(self._task, completed=self._done)
        if not self._quiet:
            seconds = time.monotonic() - self._begun
            self._console.print(f"      {self._title}: {how} in {seconds:.1f} s", markup=False, highlight=False)

    def say(self, text: str) -> None:
        if not self._quiet:
            self._console.print(text, markup=False, highlight=False)
