"""A JSON file that somebody has damaged is named, whatever is wrong with it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from kernel.platform.json_file import DamagedFile, json_if_readable, read_json


class Shape(msgspec.Struct):
    known: int = 0


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"known": "x"}',
        b"\xff",
        b'{"other": "\xff"}',
        b'{"other": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    ],
)
def test_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(content)
    with pytest.raises(DamagedFile, match=r"run\.json is damaged: ."):
        read_json(path, Shape)
    assert json_if_readable(path, Shape) is None


def test_file_has_the_fields_that_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    assert json_if_readable(path, Shape) is None
    path.write_text('{"known": 5, "other": "é"}', encoding="utf-8")
    assert read_json(path, Shape) == Shape(5)
