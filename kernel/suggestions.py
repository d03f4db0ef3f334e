"""The words of complaints: what was wrong, where, and what to do, each in its place.

A complaint is one or more sentences. The first says what was wrong and, in parentheses, where; the others say what to
do. It has no full stop at its end, so that it can go on; the command line adds one.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

#: As many names as a complaint lists.
_LISTED_MAX = 12
#: The end of a sentence before another one: not a stop within `session.timeout.ms` or `my.toml`.
_END = re.compile(r"[.?] (?=[A-Z`])")


def closest(name: str, known: Iterable[str]) -> str:
    """The known name that is most like this one, whatever its case; '' if none is."""
    return next(iter(close_ones(name, known)), "")


def close_ones(name: str, known: Iterable[str]) -> list[str]:
    """The known names, at most three, that are like this one, whatever its case; the closest first."""
    by_lowered = {each.lower(): each for each in reversed(list(known))}
    return [by_lowered[each] for each in difflib.get_close_matches(name.lower(), by_lowered)]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The question that follows a complaint about an unknown name; '' if nothing known is like it."""
    found = closest(name, known)
    return f". Did you mean {found!r}?" if found else ""


def unknown(what: str, name: str, known: Iterable[str], *, hint: str = "") -> str:
    """The complaint about an unknown name: the one that may be meant, and those that there are, or a `hint` instead.

    Where there are many and one may be meant, the others are not listed.
    """
    names = list(known)
    asked = did_you_mean(name, names)
    if not hint and not (asked and len(names) > _LISTED_MAX):
        hint = _listed(names)
    return f"unknown {what} {name!r}{asked or '.'} {hint}".rstrip()


def _listed(names: list[str]) -> str:
    """What to do about an unknown name: use one of these, the first few if there are many."""
    first, more = ", ".join(names[:_LISTED_MAX]), len(names) - _LISTED_MAX
    return f"Use one of {first}{f' and {more} more' if more > 0 else ''}" if names else "There is none"


def placed(complaint: str, where: str) -> str:
    """The complaint with the place that it is about, such as a file and its line."""
    if not where:
        return complaint
    end = _END.search(complaint)
    at = end.start() if end else len(complaint)
    return f"{complaint[:at]} ({where}){complaint[at:]}"


def whole_sentences(complaint: str) -> str:
    """The complaint in one line, with its full stop."""
    text = " ".join(complaint.split())
    return text if text.endswith((".", "?", "!")) else f"{text}."
