"""Captions are read as they were meant, or refused with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from comparison.replay.captions import PARTS, Caption, read_captions
from comparison.replay.page import _script
from kernel.errors import UserError

ONE = '{"at": 1, "text": "x"}'


def test_captions_come_in_the_order_of_their_times(tmp_path: Path) -> None:
    file = tmp_path / "words.json"
    file.write_text('[{"at": 3, "text": "later"}, {"at": -0.5, "text": "first", "part": "lanes"}]')
    assert read_captions(file) == (Caption(at=-0.5, text="first", part="lanes"), Caption(at=3.0, text="later"))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{}", "Expected `array`"),
        ('[{"at": "soon", "text": "x"}]', "Expected `float`"),
        ('[{"at": 1, "text": "x", "colour": "red"}]', "unknown field `colour`"),
        ('[{"at": 1, "text": "x", "part": "nowhere"}]', "no part 'nowhere'. Use one of glance"),
        ('[{"at": 1, "text": ""}]', "a caption has 1 to 2000 characters"),
        (f"[{','.join([ONE] * 201)}]", "201 captions, and 200 at most"),
    ],
)
def test_what_cannot_be_shown_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "words.json"
    file.write_text(text)
    with pytest.raises(UserError, match=complaint):
        read_captions(file)
    with pytest.raises(UserError, match="No such file"):
        read_captions(tmp_path / "none.json")


def test_every_part_is_one_of_the_page() -> None:
    for part in PARTS[1:]:
        assert f'"data-part": "{part}"' in _script()
