"""Places in a store beside those on a disk: the same questions have the same answers."""

from __future__ import annotations

import errno
import multiprocessing
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from kernel.errors import RebalanceLabError, Unavailable
from kernel.platform.places import (
    below,
    copy_file,
    exists,
    is_in_store,
    is_uri,
    name_below,
    opened,
    place_of,
    remove,
    sizes_below,
    version_of,
    whole,
    write_whole,
)
from kernel.platform.store_faults import StoreFault, explained
from kernel.waiting import wait_until

if TYPE_CHECKING:
    from kernel.platform.places import Place

LINES = b"".join(b"%07d\n" % number for number in range(300_000))  # more than is read at once


@pytest.fixture(params=["disk", "store"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    place = place_of(f"memory://{secrets.token_hex(4)}") if request.param == "store" else tmp_path
    yield place
    remove(place)


def test_file_is_read_from_where_one_looks(folder: Place) -> None:
    write_whole(folder / "lines", LINES)
    with opened(folder / "lines") as file:
        assert (file.readline(), file.tell()) == (b"0000000\n", 8)
        file.seek(8 * 200_000 - 3)
        assert (file.readline(100), file.readline(4), file.readline(100)) == (b"99\n", b"0200", b"000\n")
        assert file.read(len(LINES)) == LINES[8 * 200_001 :]
        assert file.read(1) == b""
        file.seek(-8, os.SEEK_END)
        assert file.read() == LINES[-8:]


def test_what_is_not_there_is_an_os_error(folder: Place) -> None:
    with pytest.raises(FileNotFoundError):
        opened(folder / "nothing")
    assert not exists(folder / "nothing")
    remove(folder / "nothing")
    assert below(folder / "nothing", "*") == []


def test_files_are_found_at_any_depth_by_the_ends_of_their_names(folder: Place) -> None:
    names = ["trace/a.jsonl", "b[1] c/trace/a.jsonl", "b[1] c/run.json", "b[1] c/trace/x/a.jsonl"]
    for name in names:
        if isinstance(folder, Path):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_whole(folder / name, b"12")
    found = below(folder, "trace/*.jsonl", "run.json")
    assert sorted(name_below(path, folder) for path in found) == sorted(names[:3])
    assert {name_below(path, folder): size for path, size in sizes_below(folder / "b[1] c", "*.jsonl").items()} == {
        "b[1] c/trace/a.jsonl": 2,
        "b[1] c/trace/x/a.jsonl": 2,
    }


def test_file_is_there_whole_or_not_at_all(folder: Place) -> None:
    write_whole(folder / "file", b"before")
    with pytest.raises(KeyError):
        _break_off(folder / "file")
    assert (folder / "file").read_bytes() == b"before"
    copy_file(folder / "file", folder / "copy")
    remove(folder / "file")
    assert {name_below(path, folder): path.read_bytes() for path in below(folder, "*")} == {"copy": b"before"}


def _break_off(place: Place) -> None:
    with whole(place) as half:
        half.write_bytes(b"ha") if isinstance(half, Path) else half.write(b"ha")
        raise KeyError


@pytest.mark.parametrize(
    ("operation", "ask"),
    [
        ("info", exists),
        ("info", version_of),
        ("info", remove),
        ("find", lambda place: below(place, "*")),
        ("pipe_file", lambda place: write_whole(place, b"")),
        ("cp_file", lambda place: copy_file(place, place)),
    ],
)
def test_store_that_fails_is_named(
    operation: str, ask: Callable[[Place], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody takes it for a place where nothing is, or for a disk of ours."""

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "Slow Down")

    monkeypatch.setattr(MemoryFileSystem, operation, fail)
    with pytest.raises(StoreFault, match=r"memory://x cannot be read or written: .*Slow Down"):
        ask(place_of("memory://x"))


class EndpointConnectionError(Exception):
    """As botocore's, which are no OSError."""

    __module__ = "botocore.exceptions"


class NoCredentialsError(EndpointConnectionError):
    __module__ = "botocore.exceptions"


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (PermissionError(13, "Forbidden"), StoreFault, "access to s3a://b/x is denied: .*Forbidden"),
        (NoCredentialsError("Unable"), StoreFault, "no credentials for s3a://b/x. Set AWS_ACCESS_KEY_ID"),
        (
            EndpointConnectionError('Could not connect to the endpoint URL: "h"'),
            Unavailable,
            "s3a://b/x does not answer",
        ),
        (TimeoutError(), Unavailable, "s3a://b/x does not answer: TimeoutError"),
        (FileNotFoundError(2, "The bucket\ndoes not exist"), StoreFault, "s3a://b/x: .*The bucket does not exist"),
        (OSError(5, "Slow Down"), StoreFault, "s3a://b/x cannot be read or written: .*Slow Down"),
    ],
)
def test_what_is_wrong_with_a_store_is_said_in_a_line(
    error: Exception, kind: type[RebalanceLabError], message: str
) -> None:
    with pytest.raises(kind, match=message) as raised, explained("s3a://b/x"):
        raise error
    assert "\n" not in str(raised.value)


def test_mistakes_of_ours_are_not_blamed_on_a_store() -> None:
    with pytest.raises(KeyError), explained("s3a://b/x"):
        raise KeyError


def test_uris_are_told_from_paths() -> None:
    given = ["s3a://b/x", "HDFS://h/x", "file:///x", "x", "/a:/b", "x://"]
    assert [is_uri(text) for text in given] == [True, True, False, False, False, True]


def test_process_that_knew_a_place_in_hdfs_can_be_forked() -> None:
    assert is_in_store(place_of("hdfs://127.0.0.1:9/runs"))  # nobody knows it any more
    child = multiprocessing.get_context("fork").Process(target=int)
    child.start()
    try:
        wait_until(lambda: child.exitcode is not None, 20, "the child to end")
        assert child.exitcode == 0
    finally:
        child.kill()
        child.join()
