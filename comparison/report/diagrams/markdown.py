"""Text from traces in Markdown documents: it may contain anything, and must not become markup."""

from __future__ import annotations

import re

#: Characters that begin markup. An underscore inside a word does not.
_MARKUP = re.compile(r"[\\`*\[\]<>&#~|!]|(?<![^\W_])_|_(?![^\W_])")
_BACKTICKS = re.compile(r"`+")


def escaped(text: str) -> str:
    """The text with a backslash before every character that begins markup, as in CommonMark 2.4."""
    return _MARKUP.sub(r"\\\g<0>", text)


def code(text: str) -> str:
    """The text as a code span in a table's cell, with a longer fence than any backticks inside (CommonMark 6.1)."""
    fence = "`" * (1 + max((len(each) for each in _BACKTICKS.findall(text)), default=0))
    space = " " if "`" in text else ""
    cell = text.replace("|", r"\|")
    return f"{fence}{space}{cell}{space}{fence}"


def in_comment(text: str) -> str:
    """The text without the end of an HTML comment."""
    return text.replace("-->", "--&gt;")
