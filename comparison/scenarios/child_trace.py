"""The trace of a child: without it nothing that the child does is worth anything, so it ends with it."""

from __future__ import annotations

import os

from kernel.trace.writer import TraceWriter

#: The exit code of a child that cannot write its trace (EX_IOERR of sysexits.h). It has no other way to say so:
#: its log is on the same disk.
UNTRACED = os.EX_IOERR


class ChildTrace(TraceWriter):
    """A trace whose process ends at once when it cannot be written: a full disk, a limit on files.

    A member that went on untraced would change what the group does, and a verdict would be told of half of it.
    """

    def emit(
        self, kind: str, *, member: str | None = None, stream: int | None = None, cause: str = "", **fields: object
    ) -> None:
        try:
            super().emit(kind, member=member, stream=stream, cause=cause, **fields)
        except OSError:
            os._exit(UNTRACED)
