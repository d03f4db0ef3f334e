"""What wrong data makes code raise that expects right data; whatever it is, only its own run ends.

A line of a trace is checked by itself, but there is no end to what lines can say together, or in `parameters`.
"""

from __future__ import annotations

import traceback
from pathlib import Path

import msgspec

WRONG_DATA = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    msgspec.MsgspecError,
)
_SHOWN_CHARACTERS = 300


def what_was_raised(error: BaseException) -> str:
    """The error, and where it was raised."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    shown = " ".join(str(error).split())[:_SHOWN_CHARACTERS]
    return f"{type(error).__name__}: {shown} ({Path(place.filename).name}, line {place.lineno})"
