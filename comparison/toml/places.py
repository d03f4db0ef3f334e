"""Where each key of a TOML text is, for complaints: line and column. The standard library's parser does not say.

Only for a text that `tomllib` has accepted, so nothing here checks the syntax.
"""

from __future__ import annotations

import bisect
import json
import re
import tomllib
from typing import TYPE_CHECKING, NamedTuple

from kernel.errors import ConfigurationError
from kernel.trace.check import is_shallow
from kernel.trace.limits import DETAIL_DEPTH_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: The keys from the top of the text; numbers count the elements of an array.
Path = tuple[str | int, ...]

_AT = re.compile(r" \(at line ([0-9]{1,18}), column ([0-9]{1,18})\)$")
_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BASIC = re.compile(r'"(?:[^"\\]|\\.)*"')
_LITERAL = re.compile(r"'[^']*'")
_LONG = re.compile(r'"""(?:[^"\\]|\\.|"(?!""))*"{3,5}|\'\'\'(?:[^\']|\'(?!\'\'))*\'{3,5}', re.DOTALL)
_PLAIN = re.compile(r"[^,\]}\n#]*")
#: At the beginning of a line or behind a bracket or comma; no part may go over the end of a line.
_PART = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_DEEP_KEY = re.compile(
    rf"(?:^|[\[{{,])[ \t]*+{_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{DETAIL_DEPTH_MAX + 1}}}", re.MULTILINE
)

_NESTED = "too many tables or arrays inside each other"


class Place(NamedTuple):
    """A place in a text; both count from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class NotToml(ConfigurationError):
    """A text is not TOML; `place` is where, if that is known."""

    def __init__(self, why: str, place: Place | None) -> None:
        super().__init__(why)
        self.place = place


class Located(NamedTuple):
    """The content of a TOML text, and where its keys are."""

    content: dict[str, object]
    places: Mapping[Path, Place]

    def place(self, path: Path) -> Place | None:
        """Where a key is, or the innermost table around it that is written down; None for the whole text."""
        return next((self.places[path[:end]] for end in range(len(path), 0, -1) if path[:end] in self.places), None)


def located(text: str) -> Located:
    """Parse a TOML text. Raises `NotToml`."""
    if deep := _DEEP_KEY.search(text):
        # Refused in any case, and the standard library's parser takes a time for it that is quadratic in the dots.
        raise NotToml(_NESTED, _place(_line_starts(text), deep.start()))
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = _AT.search(str(error))
        raise NotToml(_AT.sub("", str(error)).strip(), Place(int(at[1]), int(at[2])) if at else None) from error
    except RecursionError as error:
        raise NotToml(_NESTED, None) from error
    except ValueError as error:
        raise NotToml("a number has thousands of digits", None) from error
    if not all(map(is_shallow, content.values())):
        raise NotToml(_NESTED, None)
    if strange := next(_with_nul(content), None):
        raise NotToml(f"{strange!r} has a NUL character", None)
    return Located(content, _Scanner(text.replace("\r\n", "\n")).places())


def _with_nul(value: object) -> Iterator[str]:
    """The texts in a value that no name, path or setting can be."""
    if isinstance(value, str) and "\0" in value:
        yield value
    elif isinstance(value, dict):
        yield from (found for each in (*value, *value.values()) for found in _with_nul(each))
    elif isinstance(value, list):
        yield from (found for each in value for found in _with_nul(each))


class _Scanner:
    """Goes through a text once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._found: dict[Path, int] = {}
        self._elements: dict[Path, int] = {}  #: the elements so far of each array of tables

    def places(self) -> dict[Path, Place]:
        above: Path = ()
        self._skip()
        while self._at < len(self._text):
            if self._here("["):
                above = self._header()
            else:
                self._pair(above)
            self._skip()
        starts = _line_starts(self._text)
        return {path: _place(starts, at) for path, at in self._found.items()}

    def _header(self) -> Path:
        begun, twice = self._at, self._here("[[")
        self._at += 2 if twice else 1
        self._skip()
        path: Path = ()
        for part in self._key():
            path = self._inside((*path, part))
        self._skip()
        self._at += 2 if twice else 1
        if twice:
            array = path[:-1] if isinstance(path[-1], int) else path
            number = self._elements[array] = self._elements.get(array, -1) + 1
            self._found.setdefault(array, begun)
            path = (*array, number)
        self._found.setdefault(path, begun)
        return path

    def _inside(self, path: Path) -> Path:
        """The path, in the last element if it is an array of tables."""
        return (*path, self._elements[path]) if path in self._elements else path

    def _pair(self, above: Path) -> None:
        begun, path = self._at, above
        for part in self._key():
            path = (*path, part)
            self._found.setdefault(path, begun)
        self._skip()
        self._at += 1  # =
        self._skip()
        self._value(path)

    def _value(self, path: Path) -> None:
        if self._here("["):
            self._at += 1
            number = 0
            while not self._ends("]"):
                self._found[*path, number] = self._at
                self._value((*path, number))
                number += 1
        elif self._here("{"):
            self._at += 1
            while not self._ends("}"):
                self._pair(path)
        else:
            short = _BASIC if self._here('"') else _LITERAL if self._here("'") else _PLAIN
            self._take(_LONG if self._here('"""', "'''") else short)

    def _ends(self, bracket: str) -> bool:
        """Skip a comma; whether the array or table ends here."""
        self._skip()
        if self._here(","):
            self._at += 1
            self._skip()
        ended = self._here(bracket)
        self._at += ended
        return ended

    def _key(self) -> list[str]:
        parts = [self._part()]
        self._skip()
        while self._here("."):
            self._at += 1
            self._skip()
            parts.append(self._part())
            self._skip()
        return parts

    def _part(self) -> str:
        if self._here('"'):
            quoted = self._take(_BASIC)
            return str(tomllib.loads(f"key = {quoted}")["key"])
        return self._take(_LITERAL)[1:-1] if self._here("'") else self._take(_BARE)

    def _skip(self) -> None:
        self._take(_SPACE)

    def _here(self, *texts: str) -> bool:
        return self._text.startswith(texts, self._at)

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        if match is None:
            raise AssertionError(f"not as tomllib reads it: {self._text[self._at : self._at + 20]!r}")
        self._at = match.end()
        return match[0]


def _line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer("\n", text))]


def _place(starts: list[int], at: int) -> Place:
    line = bisect.bisect_right(starts, at)
    return Place(line, at - starts[line - 1] + 1)


def written(text: str) -> str:
    """A text as a TOML string on one line."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
