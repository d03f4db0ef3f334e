"""The trace of a child: without it nothing that the child does is worth anything, so it ends with it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kernel.trace.writer import TraceIdentity, TraceWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kernel.trace.events import Role

#: The exit code of a child that cannot write its trace (EX_IOERR of sysexits.h). It has no other way to say so:
#: its log is on the same disk.
UNTRACED = os.EX_IOERR


class Traced(Protocol):
    """The part of a child's configuration that says whose trace it writes, and where (`RunRequest.identity`)."""

    @property
    def process(self) -> str: ...
    @property
    def run(self) -> str: ...
    @property
    def scenario(self) -> str: ...
    @property
    def design(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def trace(self) -> str: ...


class ChildTrace(TraceWriter):
    """A trace whose process ends at once when it cannot be written: a full disk, a limit on files.

    A member that went on untraced would change what the group does, and a verdict would be told of half of it.
    """

    @classmethod
    def of(cls, config: Traced, role: Role, *, tee: Callable[[Mapping[str, object]], None] | None = None) -> ChildTrace:
        """The trace that a child's configuration asks for."""
        identity = TraceIdentity(
            run=config.run,
            scenario=config.scenario,
            design=config.design,
            role=role,
            process=config.process,
            seed=config.seed,
        )
        return cls(Path(config.trace), identity, tee=tee)

    def emit(
        self, kind: str, *, member: str | None = None, stream: int | None = None, cause: str = "", **fields: object
    ) -> None:
        try:
            super().emit(kind, member=member, stream=stream, cause=cause, **fields)
        except OSError:
            os._exit(UNTRACED)
