"""The one way in which text from outside becomes a number.

`int` raises on 5,000 digits; `isdigit` accepts a superscript two, which `int` refuses, and `isdecimal` the digits of
every script.
"""

from __future__ import annotations

#: The most digits of a number that is read: any such number fits into 64 bits.
DIGITS_MAX = 18


def decimal(text: str | bytes) -> int | None:
    """The number of a text of ASCII digits alone, of at most DIGITS_MAX; None for any other text."""
    if len(text) > DIGITS_MAX or not text.isascii() or not text.isdigit():
        return None
    return int(text)


def signed_decimal(text: str) -> int | None:
    """The same for a text that may begin with a minus."""
    number = decimal(text.removeprefix("-"))
    return -number if number is not None and text.startswith("-") else number
