"""Progress on standard error: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from types import TracebackType


_MINUTE_S, _HOUR_S = 60, 3600


def about(seconds: float) -> str:
    """A duration as one says it: `about 40 s`, `about 7 minutes`, `about 3 h 20 min`."""
    if seconds < 2 * _MINUTE_S:
        return f"about {max(1, round(seconds / 5) * 5 if seconds > 10 else round(seconds))} s"
    if seconds < 2 * _HOUR_S:
        return f"about {round(seconds / _MINUTE_S)} minutes"
    return f"about {int(seconds // _HOUR_S)} h {int(seconds % _HOUR_S // (10 * _MINUTE_S) * 10)} min"


class RunProgress:
    """Progress of a number of runs and of the analysis after them."""

    def __init__(self, total: int, console: Console | None = None, *, quiet: bool = False, done: int = 0) -> None:
        """`done` of the runs have been made before."""
        self._console = console or Console(stderr=True)
        self._total = total
        self._done = done
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
            self._task = self._live.add_task("starting", total=total, completed=done)

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

    def finished(self, how: str, left: str = "") -> None:
        """A run has ended; `left` says how long the others will take."""
        self._done += 1
        if self._live is not None:
            self._live.update(self._task, completed=self._done)
        if not self._quiet:
            seconds = time.monotonic() - self._begun
            ended = f"      {self._title}: {how} in {seconds:.1f} s{'; ' if left else ''}{left}"
            self._console.print(ended, markup=False, highlight=False)

    def ended(self, title: str, how: str) -> None:
        """One of several runs that are made at the same time has ended."""
        self._done += 1
        if self._live is not None:
            self._live.update(self._task, completed=self._done)
        if not self._quiet:
            self._console.print(f"[{self._done}/{self._total}] {title}: {how}", markup=False, highlight=False)

    def say(self, text: str) -> None:
        if not self._quiet:
            self._console.print(text, markup=False, highlight=False)
