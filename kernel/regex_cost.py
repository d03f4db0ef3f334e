r"""Bound the number of steps that matching an expression against a topic name can take.

`re` and Java's Pattern backtrack over all ways to divide a text among repetitions. Nested repetitions, as in (a+)+, can
divide n characters in 2^n ways, and k consecutive ones in n^k ways. Such a match cannot be interrupted, so patterns are
checked before use.

A repetition multiplies the ways of what follows, unless the next character determines where it ends: [a-z]+- has one
way, .*- has n. The number of ways is carried through the whole expression, including groups and branches. Each item
costs its own steps times the ways of everything before it, and the sum must not exceed `STEPS_MAX`.

The bound is conservative: it also refuses some harmless patterns.
"""

from __future__ import annotations

import re
from re import _constants as code  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: The longest topic name: Topic.maxNameLength of Kafka 0.8.2, which later versions lowered to 249.
NAME_MAX = 255
#: By this count three consecutive repetitions that can share a text need a few times NAME_MAX**3, and four NAME_MAX**4.
STEPS_MAX = 10 * NAME_MAX**3

_NESTED = (
    "a repetition of something that can match the same text in several ways, as in (a+)+ or (a|b|ab)*; "
    "repeat single characters or fixed texts, or list the topics"
)
_IN_A_ROW = (
    "too many repetitions that can share a text, as in .*.*.*.*; end each with a literal that it cannot match itself, "
    "as in [^-]*-[^-]*-, or list the topics"
)
_CONSUMING = (code.LITERAL, code.NOT_LITERAL, code.IN, code.ANY)
_REPEATS = (code.MAX_REPEAT, code.MIN_REPEAT)
#: Represents the end of the name among the characters that can follow.
_END = ""


class _Head(NamedTuple):
    """The possible beginnings of an item."""

    first: frozenset[str]  #: characters with which it can begin
    empty: bool  #: whether it can match the empty text
    size: int  #: the number of its nodes


class _Next(NamedTuple):
    """The possible continuations after an item."""

    first: frozenset[str]  #: characters that can follow; `_END` for the end
    size: int  #: the number of nodes that may be tried before one of them is compared


class _Cost(NamedTuple):
    """Upper bounds for matching from one position of the name."""

    ways: int  #: the ways to match that the next character permits
    steps: int  #: the steps to try all ways


class _TooCostly(Exception):
    """The cost exceeds the limit; the message says why."""


def costly_part(pattern: str) -> str | None:
    """Why an expression of `re` is too slow and how to rewrite it; None if it is fast. The expression must be valid."""
    try:
        _Bound(pattern).of(parser.parse(pattern, re.ASCII), re.ASCII, _Next(frozenset({_END}), 0))
    except _TooCostly as costly:
        return str(costly)
    return None


class _Bound:
    """The cost of a pattern. Heads are cached, so that deep nesting takes only linear time."""

    def __init__(self, pattern: str) -> None:
        #: ASCII and the pattern's characters, so at least one character of any two overlapping classes
        self._alphabet = frozenset(map(chr, range(128))) | frozenset(pattern)
        self._unknown = _Next(self._alphabet | {_END}, 0)
        self._heads: dict[int, _Head] = {}
        self._sets: dict[tuple[str, int], frozenset[str]] = {}

    # -- costs -----------------------------------------------------------------------------------------------

    def of(self, items: Sequence[Any], flags: int, after: _Next) -> _Cost:
        """The cost of a sequence, computed from its end, since the cost of an item depends on what follows."""
        ways, steps = 1, 0
        for item in reversed(list(items)):
            cost = self._item(item, flags, after)
            ways, steps = cost.ways * ways, cost.steps + cost.ways * steps
            if steps > STEPS_MAX or ways > STEPS_MAX:
                raise _TooCostly(_IN_A_ROW)
            after = self._before(self._head(item, flags), after)
        return _Cost(ways, steps)

    def _item(self, item: Any, flags: int, after: _Next) -> _Cost:
        kind, argument = item
        if kind in _REPEATS:
            return self._repetition(argument, flags, after)
        if kind is code.POSSESSIVE_REPEAT:
            _, most, body = argument
            return _Cost(1, _times(most, self._head_of(body, flags)) * (1 + self.of(body, flags, self._unknown).steps))
        if kind is code.BRANCH:
            return self._branches(argument[1], flags, after)
        if kind is code.SUBPATTERN:
            _, on, off, body = argument
            return self.of(body, (flags | on) & ~off, after)
        if kind in (code.ASSERT, code.ASSERT_NOT):
            return _Cost(1, 1 + self.of(argument[1], flags, self._unknown).steps)
        if kind is code.ATOMIC_GROUP:
            return _Cost(1, 1 + self.of(argument, flags, self._unknown).steps)
        return _Cost(1, NAME_MAX if kind is code.GROUPREF else 1)

    def _repetition(self, argument: Any, flags: int, after: _Next) -> _Cost:
        least, most, body = argument
        if most == 0:
            return _Cost(1, 1)
        head = self._head_of(body, flags)
        again = _Next(head.first | after.first, head.size + after.size) if most > 1 else after
        ways, steps = self.of(body, flags, again)
        times = _times(most, head)
        decided = not head.empty and not head.first & after.first
        if ways > 1:
            # After 64 rounds even 2 ways exceed every limit.
            rounds, fewest = min(times, 64), min(least, 64)
            total = ways**rounds if decided and times == 1 else sum(ways**count for count in range(fewest, rounds + 1))
            tried = steps * sum(ways**count for count in range(rounds))
            if most > 1 and max(total, tried) > STEPS_MAX:
                raise _TooCostly(_NESTED)
            return _Cost(max(total, 1), tried + total * (1 + after.size))
        if after == _Next(frozenset({_END}), 0) and most >= NAME_MAX and self._takes_all(body, flags):
            return _Cost(1, 1)  # .* at the end matches at once
        ends = max(times - least, 0) + 1
        return _Cost(1 if decided else ends, times * (1 + steps) + ends * after.size)

    def _branches(self, branches: Sequence[Sequence[Any]], flags: int, after: _Next) -> _Cost:
        costs = [self.of(branch, flags, after) for branch in branches]
        steps = sum(cost.steps + 1 for cost in costs) + after.size * len(costs)
        seen: frozenset[str] = frozenset()
        decided = True
        for branch in branches:
            first = self._before(self._head_of(branch, flags), after).first
            decided = decided and not seen & first
            seen |= first
        ways = [cost.ways for cost in costs]
        return _Cost(max(ways) if decided else sum(ways), steps)

    # -- heads -----------------------------------------------------------------------------------------------

    def _before(self, head: _Head, after: _Next) -> _Next:
        return _Next(head.first | after.first, head.size + after.size) if head.empty else _Next(head.first, head.size)

    def _head_of(self, items: Sequence[Any], flags: int) -> _Head:
        """The head of a sequence or group, cached by its id: the parsed expression outlives this object."""
        if id(items) not in self._heads:
            first: frozenset[str] = frozenset()
            empty, size = True, 0
            for head in (self._head(item, flags) for item in items):
                first |= head.first if empty else frozenset()
                empty = empty and head.empty
                size += head.size
            self._heads[id(items)] = _Head(first, empty, size)
        return self._heads[id(items)]

    def _head(self, item: Any, flags: int) -> _Head:
        kind, argument = item
        if kind in _CONSUMING:
            return _Head(self._taken(item, flags), empty=False, size=1)
        if kind in _REPEATS or kind is code.POSSESSIVE_REPEAT:
            least, most, body = argument
            head = self._head_of(body, flags)
            return _Head(head.first if most else frozenset(), head.empty or least == 0, head.size + 1)
        if kind is code.BRANCH:
            return _either(self._head_of(branch, flags) for branch in argument[1])
        if kind is code.SUBPATTERN:
            _, on, off, body = argument
            return self._head_of(body, (flags | on) & ~off)
        if kind is code.ATOMIC_GROUP:
            return self._head_of(argument, flags)
        if kind is code.AT:
            return _Head(frozenset(), empty=True, size=1)
        if kind is code.FAILURE:
            return _Head(frozenset(), empty=False, size=1)
        return _Head(
            self._unknown.first, empty=True, size=1
        )  # a reference, or a lookaround, whose steps count separately

    def _takes_all(self, body: Sequence[Any], flags: int) -> bool:
        return len(body) == 1 and body[0][0] in _CONSUMING and self._taken(body[0], flags) >= self._alphabet - {"\n"}

    def _taken(self, item: Any, flags: int) -> frozenset[str]:
        """The characters that an item of exactly one character matches."""
        key = (repr(item), flags)
        if key not in self._sets:
            made = parser.SubPattern(parser.State(), [item])
            matches = re._compiler.compile(made, flags).fullmatch  # type: ignore[attr-defined]
            self._sets[key] = frozenset(filter(matches, self._alphabet))
        return self._sets[key]


def _times(most: int, head: _Head) -> int:
    """The most rounds of a repetition: each consumes a character, unless the item can be empty."""
    return most if head.empty and most < code.MAXREPEAT else min(most, NAME_MAX)


def _either(heads: Iterable[_Head]) -> _Head:
    first: frozenset[str] = frozenset()
    empty, size = False, 1
    for head in heads:
        first, empty, size = first | head.first, empty or head.empty, size + head.size
    return _Head(first, empty, size)
