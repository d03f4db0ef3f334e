"""Topic patterns: which topics a wildcard member consumes, of those that there are now.

A white list takes what matches, a black list what does not, the whole name each time; `__consumer_offsets` is
left out of both unless exclude.internal.topics is off. Every member evaluates every wildcard member's pattern.

Source: TopicFilter.scala of Kafka 0.8.2. What Java's regular expressions mean here is in `kernel/java_regex.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from kernel.errors import UserError
from kernel.java_regex import compiled

if TYPE_CHECKING:
    from collections.abc import Iterable

WHITE_LIST = "white_list"
BLACK_LIST = "black_list"
#: Patterns of a wildcard member, as its znode calls them.
WILDCARDS = (WHITE_LIST, BLACK_LIST)

#: OffsetManager.OffsetsTopicName, all that 0.8.2 calls internal.
INTERNAL_TOPICS = frozenset({"__consumer_offsets"})

_TRIMMED = "".join(map(chr, range(0x21)))  #: by Java's String.trim


@dataclass(frozen=True, slots=True)
class TopicFilter:
    """What a member asks for; `pattern` is cleaned up."""

    kind: str  #: white_list or black_list
    pattern: str

    @classmethod
    def white(cls, raw: str) -> TopicFilter:
        """What matches. Raises `UserError` when `raw` is no regular expression, or one that we cannot translate."""
        return cls._checked(WHITE_LIST, raw)

    @classmethod
    def black(cls, raw: str) -> TopicFilter:
        """What does not match. Raises `UserError` as `white` does."""
        return cls._checked(BLACK_LIST, raw)

    @classmethod
    def _checked(cls, kind: str, raw: str) -> TopicFilter:
        pattern = cleaned(raw)
        _regex(pattern)
        return cls(kind, pattern)


def cleaned(raw: str) -> str:
    """Commas become `|`; blanks, and quotes around the whole, go: property files may bring them."""
    pattern = raw.strip(_TRIMMED).replace(",", "|").replace(" ", "")
    return pattern.strip("\"'")


def matching(kind: str, pattern: str, topics: Iterable[str], *, exclude_internal: bool) -> tuple[str, ...]:
    """Those of `topics` that a pattern takes, sorted. `pattern` may come from another member's znode.

    Raises `UserError` for a pattern that is no regular expression, or one that we cannot translate.
    """
    assert kind in WILDCARDS, kind
    regex = _regex(cleaned(pattern))  # the original makes a filter of what it reads, and so cleans it once more
    hidden = INTERNAL_TOPICS if exclude_internal else frozenset()
    wanted = kind == WHITE_LIST
    return tuple(sorted(t for t in topics if (regex.fullmatch(t) is not None) == wanted and t not in hidden))


@lru_cache(maxsize=256)
def _regex(pattern: str) -> re.Pattern[str]:
    try:
        return compiled(pattern)
    except UserError as error:
        hint = " (a comma in a topic pattern means `|`)" if re.search(r"\{\d*\|", pattern) else ""
        raise UserError(f"{error}{hint}") from error
