"""The trace of a child: a child that cannot write its trace exits, since its work could not be judged."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kernel.trace.words import TimeSource
from kernel.trace.writer import TraceIdentity, TraceWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from comparison.scenarios.processes.host import Host
    from kernel.trace.events import Role

#: The exit code of a child that cannot write its trace (EX_IOERR of sysexits.h). It has no other way to report this:
#: its log is on the same disk.
UNTRACED = os.EX_IOERR
#: How the groups of applications begin that a step starts beside the run's group. Nothing about them is traced: their
#: deliveries are not, so they would look lost.
APPLICATIONS = "application-"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildConfig:
    """What every child's configuration has: it identifies its trace (`RunRequest.identity`)."""

    process: str
    design: str
    run: str
    scenario: str
    seed: int
    trace: str  #: path of the trace file
    clock: TimeSource = TimeSource.MONOTONIC


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """Where a process stops itself: after an event of a kind, whose field has a value.

    Of the processes that have the same `first`, the path of a file that the first of them creates, only that one stops.
    """

    kind: str
    field: str
    value: str
    first: str = ""

    def matches(self, kind: str, fields: Mapping[str, object]) -> bool:
        return kind == self.kind and fields.get(self.field) == self.value

    def is_ours(self) -> bool:
        """Whether this process shall stop, and not another one that was here before."""
        if not self.first:
            return True
        try:
            Path(self.first).touch(exist_ok=False)
        except (FileExistsError, FileNotFoundError):  # the folder goes when the step is over
            return False
        return True


class ChildTrace(TraceWriter):
    """A trace that ends its process when it cannot be written: a full disk, a limit on files.

    A member that went on untraced would still affect the group, and the verdict would see only half of it.
    """

    def __init__(
        self, config: ChildConfig, role: Role, host: Host, *, tee: Callable[[Mapping[str, object]], None] | None = None
    ) -> None:
        identity = TraceIdentity(
            run=config.run,
            scenario=config.scenario,
            design=config.design,
            role=role,
            process=config.process,
            seed=config.seed,
            clock=config.clock,
        )
        super().__init__(Path(config.trace), identity, clock=host.runtime.clock, tee=tee)
        self._host = host
        self._halt: Halt | None = None

    def emit(
        self, kind: str, *, member: str | None = None, stream: int | None = None, cause: str = "", **fields: object
    ) -> None:
        if str(fields.get("group", "")).startswith(APPLICATIONS):
            return
        if self._host.puts_off(partial(self.emit, kind, member=member, stream=stream, cause=cause, **fields)):
            return
        try:
            super().emit(kind, member=member, stream=stream, cause=cause, **fields)
        except OSError:
            self._host.end(UNTRACED)
        if self._halt is not None and self._halt.matches(kind, fields):
            halt, self._halt = self._halt, None
            if halt.is_ours():
                self._host.halt()

    def halt_at(self, halt: Halt) -> None:
        """Stop this process (SIGSTOP) when it has traced such an event, once."""
        self._halt = halt
