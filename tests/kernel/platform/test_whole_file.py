"""A file is there as a whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from kernel.errors import EnvironmentFault
from kernel.platform.json_file import DamagedFile, json_if_readable, read_json
from kernel.platform.whole_file import (
    file_of_option,
    opened_to_append,
    own_folder,
    remove_folder,
    require_text,
    whole_file,
)


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


def test_link_is_replaced_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    precious = tmp_path / "precious.html"
    precious.write_text("precious")
    link = tmp_path / "report.html"
    link.symlink_to("precious.html")
    with whole_file(link) as path:
        path.write_text("new")
    assert not link.is_symlink()
    assert (link.read_text(), precious.read_text()) == ("new", "precious")


def test_link_that_the_user_has_named_is_followed(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    link = tmp_path / "report.html"
    link.symlink_to("folder/report.html")
    with whole_file(link, named=True) as path:
        path.write_text("new")
    assert link.is_symlink()
    assert (tmp_path / "folder" / "report.html").read_text() == "new"


def test_link_to_itself_that_the_user_has_named_is_replaced(tmp_path: Path) -> None:
    link = tmp_path / "report.html"
    link.symlink_to("report.html")
    with whole_file(link, named=True) as path:
        path.write_text("new")
    assert not link.is_symlink()
    assert link.read_text() == "new"


def write_for_option(path: Path) -> None:
    with file_of_option(path, "--html") as file:
        file.write_text("new")


def test_file_of_an_option_that_cannot_be_written_is_named_with_the_option(tmp_path: Path) -> None:
    for place, why in ((tmp_path, "Is a directory"), (tmp_path / "nowhere" / "x.html", "No such file or directory")):
        with pytest.raises(EnvironmentFault) as raised:
            write_for_option(place)
        assert str(raised.value) == f"cannot write {place}: {why}. Choose another with --html"
    assert list(tmp_path.iterdir()) == []


def test_pipe_that_the_user_has_named_is_written_to_directly(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with whole_file(tmp_path / "pipe", named=True) as path:
        assert path == tmp_path / "pipe"


def test_link_to_a_device_is_replaced(tmp_path: Path) -> None:
    link = tmp_path / "report.html"
    link.symlink_to(os.devnull)
    with whole_file(link) as path:
        path.write_text("new")
    assert link.read_text() == "new"
    assert not link.is_symlink()


def test_log_is_not_appended_through_a_link(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "zookeeper.log").symlink_to("precious")
    with pytest.raises(OSError, match="symbolic links"):
        opened_to_append(tmp_path / "zookeeper.log")
    assert precious.read_text() == "precious"
    with opened_to_append(tmp_path / "log") as log:
        log.write(b"line")
    assert (tmp_path / "log").read_text() == "line"


def test_folder_behind_a_link_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "tables").mkdir(parents=True)
    (tmp_path / "run").mkdir()
    (tmp_path / "latest").symlink_to("run")
    (tmp_path / "run" / "scenario").symlink_to("../elsewhere")
    assert own_folder(tmp_path / "latest", "tables") == tmp_path / "latest" / "tables"
    with pytest.raises(EnvironmentFault, match=r"run/scenario is a symbolic link.*Remove the link"):
        own_folder(tmp_path / "run", "scenario", "tables")
    remove_folder(tmp_path / "run" / "scenario")
    assert not (tmp_path / "run" / "scenario").exists()
    assert (tmp_path / "elsewhere" / "tables").is_dir()


def test_folder_whose_path_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    assert require_text(tmp_path / "bücher") == tmp_path / "bücher"
    with pytest.raises(EnvironmentFault, match=r"is not UTF-8\. Rename what is not, or choose another with --output"):
        require_text(tmp_path / os.fsdecode(b"bad\xff"))


# -- A JSON file that somebody has damaged is named, whatever is wrong with it -----------------------------------------


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
