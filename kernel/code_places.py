"""Where in a user's code an exception came from: plug-ins and assignors are theirs, and so are most of their errors."""

from __future__ import annotations

import os
import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

#: Our packages, and the one that a wheel has them in.
_OURS = frozenset({"rebalance_lab", "kernel", "zkconsumer", "coordinator", "comparison"})


def users_place(error: BaseException) -> str:
    """`file.py:12`: the line of a user's code that raised, or called what raised; '' if no code of a user's ran.

    The user's code begins where ours calls it, and may have called ours or a library again.
    """
    frames = [each for each in traceback.walk_tb(error.__traceback__) if _package(each[0]) not in _OURS]
    if not frames:
        return ""
    package = _package(frames[0][0])
    frame, line = [each for each in frames if _package(each[0]) == package][-1]
    return f"{_shown(frame.f_code.co_filename)}:{line}"


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _shown(path: str) -> str:
    """Relative to the current folder, if it is in there."""
    shown = os.path.relpath(path)
    return path if shown.startswith(os.pardir) else shown
