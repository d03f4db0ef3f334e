"""A file is there as a whole or not at all."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from comparison.whole_file import whole_file

if TYPE_CHECKING:
    from pathlib import Path


def test_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    with whole_file(target) as path:
        path.write_text("first half, ")
        assert not target.exists()
    assert target.read_text() == "first half, "
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


def write_half(target: Path) -> None:
    with whole_file(target) as path:
        path.write_text("first half, ")
        raise OSError(28, "the disk is full")


def test_what_was_there_stays_when_writing_fails(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    target.write_text("before")
    with pytest.raises(OSError, match="full"):
        write_half(target)
    assert target.read_text() == "before"
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


def test_file_behind_a_link_is_replaced_not_the_link(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    link = tmp_path / "report.html"
    link.symlink_to("folder/report.html")
    with whole_file(link) as path:
        path.write_text("new")
    assert link.is_symlink()
    assert (tmp_path / "folder" / "report.html").read_text() == "new"


def test_pipe_is_written_to_directly(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with whole_file(tmp_path / "pipe") as path:
        assert path == tmp_path / "pipe"
