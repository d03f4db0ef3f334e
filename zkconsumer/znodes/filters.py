"""Topic patterns: which of the existing topics a wildcard member consumes.

A white list takes the topics that match as a whole, a black list those that do not; both leave out
`__consumer_offsets` unless exclude.internal.topics is off. Every member evaluates every wildcard member's pattern.

Source: TopicFilter.scala of Kafka 0.8.2. `kernel/java_regex.py` translates Java's regular expressions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from kernel.errors import UserError
from kernel.java_regex import Regex, compiled

if TYPE_CHECKING:
    from collections.abc import Iterable

WHITE_LIST = "white_list"
BLACK_LIST = "black_list"
#: The kinds of patterns, as a wildcard member's znode names them.
WILDCARDS = (WHITE_LIST, BLACK_LIST)

#: OffsetManager.OffsetsTopicName, the only internal topic of 0.8.2.
INTERNAL_TOPICS = frozenset({"__consumer_offsets"})

_TRIMMED = "".join(map(chr, range(0x21)))  #: by Java's String.trim


@dataclass(frozen=True, slots=True)
class TopicFilter:
    """A member's pattern, normalised by `cleaned`."""

    kind: str  #: white_list or black_list
    pattern: str

    @classmethod
    def white(cls, raw: str) -> TopicFilter:
        """Topics that match. Raises `UserError` if `raw` is not a regular expression, or cannot be translated."""
        return cls._checked(WHITE_LIST, raw)

    @classmethod
    def black(cls, raw: str) -> TopicFilter:
        """Topics that do not match. Raises `UserError` as `white` does."""
        return cls._checked(BLACK_LIST, raw)

    @classmethod
    def _checked(cls, kind: str, raw: str) -> TopicFilter:
        pattern = cleaned(raw)
        _regex(pattern)
        return cls(kind, pattern)


def cleaned(raw: str) -> str:
    """Replace commas by `|`; remove blanks, and quotes around the pattern, which property files may contain."""
    pattern = raw.strip(_TRIMMED).replace(",", "|").replace(" ", "")
    return pattern.strip("\"'")


def matching(kind: str, pattern: str, topics: Iterable[str], *, exclude_internal: bool) -> tuple[str, ...]:
    """The topics that a pattern selects, sorted. `pattern` may come from another member's znode.

    Raises `UserError` if the pattern is not a regular expression, or cannot be translated.
    """
    assert kind in WILDCARDS, kind
    regex = _regex(cleaned(pattern))  # the original builds a filter from what it reads, which cleans it again
    hidden = INTERNAL_TOPICS if exclude_internal else frozenset()
    wanted = kind == WHITE_LIST
    return tuple(sorted(t for t in topics if (regex.fullmatch(t) is not None) == wanted and t not in hidden))


@lru_cache(maxsize=256)
def _regex(pattern: str) -> Regex:
    try:
        return compiled(pattern)
    except UserError as error:
        hint = " (a comma in a topic pattern means `|`)" if re.search(r"\{\d*\|", pattern) else ""
        raise UserError(f"{error}{hint}") from error
