"""Words beside a replay: what to look at, and when. Pure but for reading the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from kernel.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

#: The parts of a column that a caption can point at, as the page names them.
PARTS = ("", "glance", "counters", "lanes", "members", "coordinator", "znodes", "feed")
CAPTIONS_MAX, TEXT_MAX = 200, 2000


class Seen(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Something that comes while a caption is shown, and is ticked then."""

    at: float  #: as of a caption
    text: str


class Caption(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Shown from its moment until the next one's."""

    at: float  #: seconds since the first change or fault, as the report counts; negative before it
    text: str  #: commands stand in backquotes
    part: str = ""  #: one of PARTS
    title: str = ""
    look: str = ""  #: what to look at
    seen: tuple[Seen, ...] = ()


def read_captions(path: Path) -> tuple[Caption, ...]:
    """The captions in a JSON file, in the order of their times. Raises `UserError`."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=list[Caption])
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UserError(
            f'{path}: {error}. Give a list such as [{{"at": 1.5, "text": "...", "part": "lanes"}}]'
        ) from error
    require_captions(found, str(path))
    return tuple(sorted(found, key=lambda each: each.at))


def require_captions(captions: list[Caption], where: str) -> None:
    """Raises `UserError` for captions that a page cannot show."""
    if len(captions) > CAPTIONS_MAX:
        raise UserError(f"{where}: {len(captions)} captions, and {CAPTIONS_MAX} at most")
    for each in captions:
        if each.part not in PARTS:
            raise UserError(f"{where}: no part {each.part!r}. Use one of {', '.join(PARTS[1:])}, or none")
        texts = [each.text, each.title, each.look, *(seen.text for seen in each.seen)]
        if not each.text or sum(map(len, texts)) > TEXT_MAX:
            raise UserError(f"{where}: a caption has 1 to {TEXT_MAX} characters")
