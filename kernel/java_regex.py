r"""Translate Java's regular expressions for Python's `re`.

Topic patterns are Java's, in the znodes of 0.8 and in Consumer.subscribe(Pattern). `re` alone is not enough: it lacks
much of Java's syntax, and reads some of it differently.

RE2 matches the translation, in linear time: every member matches the patterns of all others. Python's `re` matches what
RE2 cannot: lookaheads and lookbehinds, references, possessive and atomic parts.

Translated: quoting with \Q and \E, named groups, inline flags within an expression, Java's escapes, predefined and
POSIX classes, \z and \Z, and ranges that Python reads differently. Refused with a reason: nested classes and
intersections (`[a-z&&[^x]]`), \G, \R, \X, \N, Unicode scripts and blocks, comments mode, and what `re` refuses (a
lookbehind without a fixed width). Also refused: syntax that only Python accepts, such as a stray `{`, with which the
original would not start, and what only `re` can match if that may take exponential time (`regex_cost`), such as
(?=(a+)+b): an original consumer would hang.

The translation is equivalent only for topic names, which are ASCII without line ends. The flags d, u and U and the line
terminators other than \n do not affect them and are dropped; classes such as \p{L} are reduced to their ASCII part.

Source: java.util.regex.Pattern of Java 8.
"""

from __future__ import annotations

import re
import sys
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Protocol

from kernel.errors import UserError
from kernel.regex_cost import WAYS_MAX, ways

#: A set of characters as ranges with both ends included.
Ranges = tuple[tuple[int, int], ...]

_COSTLY = (
    "beside a lookahead, a lookbehind, a reference, or a possessive or atomic part, it has too many repetitions or "
    "branches that can share a text, or one within another. Do without that part, or list the topics"
)
_ESCAPED = re.compile(r"\\.", re.DOTALL)
#: A reference as the translation has it. RE2 takes one of two digits for a character.
_REFERENCE = re.compile(r"\(\?:\\[1-9]")


class Regex(Protocol):
    """A compiled expression of RE2 or of `re`."""

    def fullmatch(self, text: str, /) -> Any:
        """The match of the whole text, or None; equals Java's String.matches."""


def compiled(pattern: str) -> Regex:
    """The compiled pattern. Raises `UserError`."""
    try:
        translation = translated(pattern)
        regex = re.compile(translation, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise UserError(f"{pattern} is an invalid regex: {error}") from error
    linear = _linear(translation)
    if linear is None and ways(parser.parse(translation, re.ASCII)) > WAYS_MAX:
        raise UserError(f"{pattern} may take forever to match: {_COSTLY}")
    return linear or regex


def _linear(translation: str) -> Regex | None:
    r"""What RE2 makes of it, where the end is \z; None if it cannot."""
    if _REFERENCE.search(translation):
        return None
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        escaped = _ESCAPED.sub(lambda found: r"\z" if found[0] == r"\Z" else found[0], translation)
        regex: Regex = re2.compile(escaped, options)
    except (re2.error, UnicodeEncodeError):
        return None
    return regex


def translated(pattern: str) -> str:
    """The expression in Python's syntax, for the flag re.ASCII. Raises `UserError`."""
    return _Translation(pattern).run()


def _ranges(pairs: str) -> Ranges:
    return tuple((ord(pairs[i]), ord(pairs[i + 1])) for i in range(0, len(pairs), 2))


def _without(ranges: Ranges) -> Ranges:
    """The complement of a set."""
    others, low = [], 0
    for first, last in sorted(ranges):
        if low < first:
            others.append((low, first - 1))
        low = max(low, last + 1)
    if low <= sys.maxunicode:
        others.append((low, sys.maxunicode))
    return tuple(others)


def _body(ranges: Ranges) -> str:
    return "".join(f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in ranges)


_LOWER, _UPPER, _DIGIT, _PUNCT = _ranges("az"), _ranges("AZ"), _ranges("09"), _ranges("!/:@[`{~")
_PREDEFINED = {
    "d": _DIGIT,
    "w": _LOWER + _UPPER + _DIGIT + _ranges("__"),
    "s": _ranges("\t\r  "),
    "h": _ranges("\t\t  \xa0\xa0\u1680\u1680\u180e\u180e\u2000\u200a\u202f\u202f\u205f\u205f\u3000\u3000"),
    "v": _ranges("\n\r\x85\x85\u2028\u2029"),
}
_PROPERTIES = {
    "Lower": _LOWER,
    "Upper": _UPPER,
    "ASCII": _ranges("\x00\x7f"),
    "Alpha": _LOWER + _UPPER,
    "Digit": _DIGIT,
    "Alnum": _LOWER + _UPPER + _DIGIT,
    "Punct": _PUNCT,
    "Graph": _ranges("!~"),
    "Print": _ranges(" ~"),
    "Blank": _ranges("\t\t  "),
    "Cntrl": _ranges("\x00\x1f\x7f\x7f"),
    "XDigit": _DIGIT + _ranges("afAF"),
    "Space": _ranges("\t\r  "),
    "L": _LOWER + _UPPER,
    "Ll": _LOWER,
    "Lu": _UPPER,
    "N": _DIGIT,
    "Nd": _DIGIT,
    "IsAlphabetic": _LOWER + _UPPER,
    "IsDigit": _DIGIT,
    "IsLowercase": _LOWER,
    "IsUppercase": _UPPER,
}
_CHARACTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_ASSERTIONS = {"A": r"\A", "b": r"\b", "B": r"\B", "z": r"\Z", "Z": r"(?:\Z)"}
_CODES = {
    "x": re.compile(r"([0-9a-fA-F]{2})|\{([0-9a-fA-F]{1,6})\}"),
    "u": re.compile(r"([0-9a-fA-F]{4})"),
    "0": re.compile(r"([0-3][0-7]{2}|[0-7]{1,2})"),
}
_PROPERTY = re.compile(r"([A-Z])|\{(\w+)\}")
_REPETITION = re.compile(r"\d+(,\d*)?\}")
_NAMED_GROUP = re.compile(r"\?<([a-zA-Z][a-zA-Z0-9]*)>")
_NAMED_REFERENCE = re.compile(r"<([a-zA-Z][a-zA-Z0-9]*)>")
_FLAGS = re.compile(r"\?([imsdxuU]*)(?:-([imsdxuU]*))?([:)])")
_GROUP = re.compile(r"\?(?:<[=!]|[:=!>])")


class _Translation:
    """A pass over a pattern from left to right."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._groups = 0
        self._out: list[str] = []
        #: The flag groups opened within the pattern itself, and within each open group.
        self._levels: list[list[str]] = [[]]

    def run(self) -> str:
        while self._at < len(self._pattern):
            char = self._take()
            match char:
                case "\\":
                    self._escape()
                case "[":
                    self._class()
                case "(":
                    self._open()
                case ")":
                    self._close()
                case "|":
                    flags = self._levels[-1]
                    self._out.append(")" * len(flags) + "|" + "".join(flags))
                case "{":
                    self._out.append("{" + self._match(_REPETITION, "a { without a repetition such as {2}").group())
                case "*" | "+" | "?" | "." | "^" | "$":
                    self._out.append(char)
                case _:
                    self._out.append(re.escape(char))
        if len(self._levels) > 1:
            raise self._refused("an unclosed group")
        return "".join(self._out) + ")" * len(self._levels[0])

    # -- reading ---------------------------------------------------------------------------------------------

    def _take(self) -> str:
        if self._at >= len(self._pattern):
            raise self._refused("it ends too early")
        self._at += 1
        return self._pattern[self._at - 1]

    def _follows(self, text: str) -> bool:
        return self._pattern.startswith(text, self._at)

    def _match(self, expected: re.Pattern[str], otherwise: str) -> re.Match[str]:
        found = expected.match(self._pattern, self._at)
        if found is None:
            raise self._refused(otherwise)
        self._at = found.end()
        return found

    def _refused(self, why: str) -> UserError:
        return UserError(f"{self._pattern} is an invalid regex, or one that is not supported: {why}")

    # -- groups ----------------------------------------------------------------------------------------------

    def _open(self) -> None:
        if not self._follows("?"):
            self._groups += 1
            self._enter("(")
        elif found := _GROUP.match(self._pattern, self._at):
            self._at = found.end()
            self._enter("(" + found.group())
        elif found := _NAMED_GROUP.match(self._pattern, self._at):
            self._at = found.end()
            self._groups += 1
            self._enter(f"(?P<{found[1]}>")
        else:
            self._flags()

    def _enter(self, opening: str) -> None:
        self._out.append(opening)
        self._levels.append([])

    def _flags(self) -> None:
        found = self._match(_FLAGS, "a group with an unknown kind after the ?")
        on, off = ("".join(c for c in "ims" if c in (flags or "")) for flags in found.group(1, 2))
        if "x" in found[1]:
            raise self._refused("comments mode, (?x)")
        opening = f"(?{on}-{off}:" if off else f"(?{on}:"
        if found[3] == ":":
            self._enter(opening)
        else:  # valid to the end of the enclosing group, in all its remaining branches
            self._out.append(opening)
            self._levels[-1].append(opening)

    def _close(self) -> None:
        if len(self._levels) == 1:
            raise self._refused("a ) without its (")
        self._out.append(")" * (len(self._levels.pop()) + 1))

    # -- escapes ---------------------------------------------------------------------------------------------

    def _escape(self) -> None:
        letter = self._take()
        if letter == "Q":
            self._out.append(re.escape(self._quoted()))
        elif letter in _ASSERTIONS:
            self._out.append(_ASSERTIONS[letter])
        elif letter in "123456789":
            self._out.append(f"(?:\\{self._group_number(letter)})")
        elif letter == "k":
            self._out.append(f"(?P={self._match(_NAMED_REFERENCE, 'a reference without a name')[1]})")
        else:
            escaped = self._character_or_set(letter)
            self._out.append(re.escape(escaped) if isinstance(escaped, str) else f"[{_body(escaped)}]")

    def _quoted(self) -> str:
        end = self._pattern.find("\\E", self._at)
        quoted = self._pattern[self._at :] if end < 0 else self._pattern[self._at : end]
        self._at = len(self._pattern) if end < 0 else end + 2
        return quoted

    def _group_number(self, first: str) -> int:
        """Take digits as long as they name a group opened before; further digits are characters."""
        number = int(first)
        while self._at < len(self._pattern) and self._pattern[self._at] in "0123456789":
            longer = number * 10 + int(self._pattern[self._at])
            if longer > self._groups:
                break
            number = longer
            self._at += 1
        return number

    def _character_or_set(self, letter: str) -> str | Ranges:
        if letter.lower() in _PREDEFINED:
            ranges = _PREDEFINED[letter.lower()]
            return ranges if letter.islower() else _without(ranges)
        if letter in "pP":
            found = self._match(_PROPERTY, "a \\p without a property")
            name = found[1] or found[2]
            if name not in _PROPERTIES:
                raise self._refused(f"the property {name}")
            return _PROPERTIES[name] if letter == "p" else _without(_PROPERTIES[name])
        if letter in _CODES:
            found = self._match(_CODES[letter], f"an incomplete \\{letter}")
            code = int(found[found.lastindex or 1], 8 if letter == "0" else 16)
            if code > sys.maxunicode:
                raise self._refused(f"there is no character {code:x}")
            return chr(code)
        if letter == "c":
            return chr(ord(self._take()) ^ 64)
        if letter in _CHARACTERS:
            return _CHARACTERS[letter]
        if letter.isascii() and letter.isalnum():
            raise self._refused(f"the escape \\{letter}")
        return letter

    # -- classes ---------------------------------------------------------------------------------------------

    def _class(self) -> None:
        negated = self._follows("^")
        self._at += negated
        ranges: list[tuple[int, int]] = []
        while (char := self._take()) != "]" or not ranges:  # a leading ] is a character
            if char == "[" or (char == "&" and self._follows("&")):
                raise self._refused("nested or intersected character classes")
            if char == "\\" and self._follows("Q"):
                self._at += 1
                ranges += [(ord(quoted), ord(quoted)) for quoted in self._quoted()]
                continue
            item = self._character_or_set(self._take()) if char == "\\" else char
            if not isinstance(item, str):
                ranges += item
            elif self._follows("-") and not self._follows("-]") and not self._follows("-["):
                self._at += 1
                ranges.append((ord(item), ord(self._range_end(item))))
            else:
                ranges.append((ord(item), ord(item)))
        self._out.append(f"[{'^' * negated}{_body(tuple(ranges))}]")

    def _range_end(self, first: str) -> str:
        char = self._take()
        last = self._character_or_set(self._take()) if char == "\\" else char
        if not isinstance(last, str) or last < first:
            raise self._refused(f"a range from {first} without a valid end")
        return last
