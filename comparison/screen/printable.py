"""Escapes text from outside (records, traces, brokers' responses) before it is shown.

A control character could otherwise move the terminal's cursor, set its title or forge a line of output. In an SVG it
would make the file invalid.
"""

from __future__ import annotations

from typing import Any


def printable(text: str) -> str:
    r"""The text with unprintable characters as Python escapes: `\n`, `\x1b`, lone surrogates, line separators."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape", "surrogatepass").decode() for letter in text
    )


def printable_all(value: Any) -> Any:
    """`printable` for every text in a JSON value, field names included, or in a struct of such values."""
    if fields := getattr(value, "__struct_fields__", ()):  # of msgspec, which most commands need not load
        return type(value)(**{name: printable_all(getattr(value, name)) for name in fields})
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable_all(name): printable_all(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [printable_all(each) for each in value]
    return value
