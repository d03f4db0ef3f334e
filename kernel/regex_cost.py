r"""Whether an expression may take a time that grows exponentially with what it is matched against.

`re` and Java's Pattern try every way in which repetitions can share out a text. One inside another, as in (a+)+, has
2^n ways for n characters: a pattern of ten characters stops a program for years, and nothing interrupts it. Such a
pattern is told here by its form, before it is used: inside of a repetition only those repetitions are let through that
a mandatory character ends which they cannot take themselves, as in ([a-z]+\.)*, and no branches of which two could
begin alike. Repetitions one after the other cost n^k; `LOOSE_MOST` of them are let through, and one at the end.

Told is what may be costly, not what is: some harmless patterns are refused, too.
"""

from __future__ import annotations

import re
from re import _constants as code  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: Repetitions of one level that may share out a text between them.
LOOSE_MOST = 3
#: A repetition of no more times than this counts as none, unless it is inside another.
TIMES_MOST = 3

_REPEATS = (code.MAX_REPEAT, code.MIN_REPEAT)
_CHARACTERS = [chr(number) for number in range(128)]


def costly_part(pattern: str) -> str | None:
    """What about an expression of `re` may take for ever; None for nothing. It compiles."""
    return _fault(parser.parse(pattern, re.ASCII), inside=False)


def _fault(items: Sequence[Any], *, inside: bool) -> str | None:
    loose = 0
    for at, (kind, argument) in enumerate(items):
        fault = None
        if kind in _REPEATS:
            least, most, body = argument
            if inside and most != least and not _is_ended(items, at, body):
                return "a repetition inside another, as in (a+)+"
            at_the_end = at == len(items) - 1
            loose += not inside and most > TIMES_MOST and most != least and not at_the_end
            fault = _fault(body, inside=inside or most > TIMES_MOST)
        elif kind is code.BRANCH:
            branches = argument[1]
            if inside and _overlap(branches):
                return "branches that may begin alike inside a repetition, as in (a|ab)*"
            fault = next(filter(None, (_fault(branch, inside=inside) for branch in branches)), None)
        else:
            fault = next(filter(None, (_fault(body, inside=inside) for body in _bodies(kind, argument))), None)
        if fault:
            return fault
    return f"more than {LOOSE_MOST} repetitions in a row" if loose > LOOSE_MOST else None


def _bodies(kind: Any, argument: Any) -> Iterable[Sequence[Any]]:
    """What is inside groups, lookarounds and conditions."""
    parts = argument if isinstance(argument, tuple | list) else (argument,)
    return [part for part in parts if isinstance(part, parser.SubPattern)]


def _is_ended(items: Sequence[Any], at: int, body: Sequence[Any]) -> bool:
    """Whether what follows a repetition, in a circle, has to be a character that the repetition does not take."""
    taken = _single(body)
    ending = _single([items[(at + 1) % len(items)]]) if len(items) > 1 else None
    return taken is not None and ending is not None and not taken & ending


def _overlap(branches: Sequence[Sequence[Any]]) -> bool:
    seen: set[str] = set()
    for branch in branches:
        first = _single(branch[:1]) if len(branch) else None
        if first is None or seen & first:
            return True
        seen |= first
    return False


def _single(items: Sequence[Any]) -> set[str] | None:
    """The characters of ASCII that these match, if they match exactly one; None otherwise."""
    if len(items) != 1 or items[0][0] not in (code.LITERAL, code.NOT_LITERAL, code.IN, code.ANY):
        return None
    made = parser.SubPattern(parser.State(), list(items))
    matches = re._compiler.compile(made, re.ASCII).fullmatch  # type: ignore[attr-defined]
    return {char for char in _CHARACTERS if matches(char)}
