"""Text from elsewhere (records, traces, answers of brokers) made fit to be shown.

A control character in it would otherwise reach the terminal and could move the cursor, set the title or forge a line
of output; in an SVG it would make the file unreadable.
"""

from __future__ import annotations

from typing import Any


def printable(text: str) -> str:
    r"""The text with what cannot be printed as Python's escapes: `\n`, `\x1b`, a lone surrogate, a line separator."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape", "surrogatepass").decode() for letter in text
    )


def printable_all(value: Any) -> Any:
    """The same for every text in a value as JSON has it, names of fields included."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable_all(name): printable_all(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [printable_all(each) for each in value]
    return value
