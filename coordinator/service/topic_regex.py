r"""Regular expressions for topics (KIP-848's SubscribedTopicRegex): RE2, as Kafka's re2j 1.8 reads it. Pure.

RE2 itself matches: in linear time, whatever the expression. Beside re2j it accepts more, which is refused here with
re2j's words: \C, scripts newer than Unicode 6.0, a group's name that is used twice or not in ASCII, repeat counts of
nine digits. And it accepts less: a non-ASCII letter behind a backslash, which is rewritten here, and what makes the
expression too large (`(a{100}){11}`, `\pL{1000}`), which stays refused, as do more than a hundred classes of Unicode.

Sources: Parser.java and the answers of re2j 1.8 (tests/coordinator/service/regex-answers.json); TopicRegexResolver and
Utils.throwIfRegularExpressionIsInvalid of Kafka 4.1.1.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

_SCRIPT_NAMES = """
    Any Arabic Armenian Avestan Balinese Bamum Batak Bengali Bopomofo Brahmi Braille Buginese Buhid
    Canadian_Aboriginal Carian Cham Cherokee Common Coptic Cuneiform Cypriot Cyrillic Deseret Devanagari
    Egyptian_Hieroglyphs Ethiopic Georgian Glagolitic Gothic Greek Gujarati Gurmukhi Han Hangul Hanunoo Hebrew
    Hiragana Imperial_Aramaic Inherited Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi Kannada
    Katakana Kayah_Li Kharoshthi Khmer Lao Latin Lepcha Limbu Linear_B Lisu Lycian Lydian Malayalam Mandaic
    Meetei_Mayek Mongolian Myanmar New_Tai_Lue Nko Ogham Ol_Chiki Old_Italic Old_Persian Old_South_Arabian
    Old_Turkic Oriya Osmanya Phags_Pa Phoenician Rejang Runic Samaritan Saurashtra Shavian Sinhala Sundanese
    Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet Tamil Telugu Thaana Thai Tibetan Tifinagh Ugaritic
    Vai
"""
#: Scripts of Unicode 6.0, and `Any`; categories have one or two letters.
_SCRIPTS = frozenset(_SCRIPT_NAMES.split())
_CATEGORY_SIZE = 2
_BAD_ESCAPE, _BAD_CLASS = "invalid escape sequence", "invalid character class range"
_BAD_NAME, _BAD_COUNT = "invalid named capture", "invalid repeat count"
#: RE2's words for a mistake: re2j's.
_WORDS: Mapping[str, str] = {
    "missing )": "missing closing )",
    "unexpected )": "regexp/syntax: internal error",
    "missing ]": "missing closing ]",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": _BAD_NAME,
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": _BAD_COUNT,
    "bad repetition operator": "invalid nested repetition operator",
    "trailing \\": "trailing backslash at end of expression",
}
#: Quoted text, an escape with what belongs to it, a named class, the beginning of a class (with a bracket that does not
#: end it) and its end, the name of a group, a repetition.
_TOKEN = re.compile(
    r"(?P<quoted>\\Q.*?(?:\\E|\Z))|\\[pP]\{\^?(?P<script>[^}]*)\}|\\(?P<escaped>.)|(?P<named>\[:\^?\w+:\])"
    r"|(?P<open>\[\^?\]?)|(?P<close>\])|\(\?P?<(?P<group>[^>]*)>|\{(?P<low>\d+)(?:,(?P<high>\d*))?\}",
    re.DOTALL,
)
_UNICODE = re.compile(r"\\[pP]")
_DIGITS_MAX = 8
_GROUP_NAME = re.compile(r"\w+", re.ASCII)
#: Of one expression. RE2 compiles on the event loop, and takes some 30 ms for this much at the worst.
_BYTES_MAX = 1 << 20
#: Classes of Unicode in one expression: to read a hundred takes 15 ms.
_CLASSES_MAX = 100
_TOO_LARGE = "pattern too large"
#: Compiled expressions that are kept.
_KEPT = 32


class Compiled(Protocol):
    """A compiled expression."""

    def fullmatch(self, name: bytes) -> object | None: ...


class InvalidRegexError(ValueError):
    """The text is re2j's description."""


@lru_cache(maxsize=8 * _KEPT)
def problem(pattern: str) -> str | None:
    """Why the expression cannot be used, in re2j's words."""
    try:
        compiled(pattern)
    except InvalidRegexError as error:
        return str(error)
    return None


@lru_cache(maxsize=_KEPT)
def compiled(pattern: str) -> Compiled:
    """Raises `InvalidRegexError`."""
    import re2

    translation, wrong = _translated(pattern)
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True  # ten times as fast
    options.max_mem = _BYTES_MAX
    try:
        regex = re2.compile(translation.encode(), options)
    except UnicodeEncodeError as error:
        raise InvalidRegexError("invalid UTF-8") from error
    except re2.error as error:
        (said,) = error.args
        kind = said.decode(errors="replace").partition(":")[0].removesuffix(" - compile failed")
        if re.search(r"\(\?<[=!]", pattern) and kind == "invalid perl operator":
            kind = "invalid named capture group"  # re2j takes a lookbehind for one
        raise InvalidRegexError(_WORDS.get(kind, kind)) from error
    finally:
        re2.purge()  # its own cache keeps 128
    if wrong is not None:
        raise InvalidRegexError(wrong)
    found: Compiled = regex
    return found


def _translated(pattern: str) -> tuple[str, str | None]:
    """The expression for RE2, and the first thing in it that only re2j refuses."""
    if len(_UNICODE.findall(pattern)) > _CLASSES_MAX:
        return pattern, _TOO_LARGE
    out: list[str] = []
    names: set[str] = set()
    wrong, at, in_class = None, 0, False
    while (token := _TOKEN.search(pattern, at)) is not None:
        found, text = token.group, token.group()
        if (found("named") and not in_class) or (found("open") and in_class):
            text, in_class = "[", True
        elif in_class and (found("quoted") or found("group") is not None or found("low")):
            text = text[:2] if found("quoted") else text[:1]  # in a class it means nothing
        elif found("open") or found("close"):
            in_class = bool(found("open"))
        else:
            wrong = wrong or _only_here(token, names)
        out += [pattern[at : token.start()], _escaped(found("escaped")) or text]
        at = token.start() + len(text)
    return "".join(out) + pattern[at:], wrong


def _escaped(letter: str | None) -> str | None:
    """A letter behind a backslash as RE2 writes it, if it has to be written otherwise."""
    return None if letter is None or letter.isascii() else f"\\x{{{ord(letter):x}}}"


def _only_here(token: re.Match[str], names: set[str]) -> str | None:
    """What re2j has against a token; `names` are those of the groups so far."""
    escaped, script, name, low, high = token.group("escaped", "script", "group", "low", "high")
    if escaped == "C":
        return _BAD_ESCAPE
    if script is not None and len(script) > _CATEGORY_SIZE and script not in _SCRIPTS:
        return _BAD_CLASS
    if name is not None:
        is_new = name not in names
        names.add(name)
        if _GROUP_NAME.fullmatch(name) is None:
            return _BAD_NAME
        return None if is_new else "duplicate capture group name"
    if low is not None and any(len(count) > _DIGITS_MAX and count[0] != "0" for count in (low, high or "")):
        return _BAD_COUNT
    return None
