r"""Bound the ways in which `re` may try to match a topic name.

RE2 matches in linear time, but not lookaheads, lookbehinds, references, and possessive or atomic parts. `re` and Java's
Pattern match these by backtracking: nested repetitions, as in (a+)+, can divide n characters in 2^n ways, and k
consecutive ones in n^k ways. Such a match cannot be interrupted, so these patterns are checked before use.

The bound is coarse. Each repetition may end anywhere, each branch may be the one, and all choices multiply.
"""

from __future__ import annotations

from re import _constants as code  # type: ignore[attr-defined]
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

#: The longest topic name: Topic.maxNameLength of Kafka 0.8.2, which later versions lowered to 249.
NAME_MAX = 255
#: Three repetitions may share a name, four may not.
WAYS_MAX = 10 * NAME_MAX**3
#: After so many rounds even two ways exceed the limit.
_ROUNDS_MAX = 64


def ways(items: Iterable[Any]) -> int:
    """The ways to try a parsed sequence on a name at the most; `WAYS_MAX` + 1 for all that are more."""
    found = 1
    for kind, argument in items:
        found = min(found * _ways_of(kind, argument), WAYS_MAX + 1)
    return found


def _ways_of(kind: Any, argument: Any) -> int:
    if kind in (code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT):
        least, most, body = argument
        rounds = most if most != code.MAXREPEAT else NAME_MAX
        if (inner := ways(body)) > 1:
            return int(inner ** min(rounds, _ROUNDS_MAX)) + int(least == 0)
        return int(rounds - least + 1 if rounds <= NAME_MAX else rounds)
    if kind is code.BRANCH:
        return sum(map(ways, argument[1]))
    if kind is code.SUBPATTERN:
        return ways(argument[-1])
    if kind in (code.ASSERT, code.ASSERT_NOT):
        return ways(argument[1])
    return ways(argument) if kind is code.ATOMIC_GROUP else 1
