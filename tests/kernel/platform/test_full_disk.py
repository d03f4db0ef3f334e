"""A full disk is named, whatever failed because of it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from comparison.run_folder import new_bundle
from kernel.errors import EnvironmentFault, Unavailable
from kernel.platform.full_disk import full_disk, full_disk_named


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """The folder of a disk of 4 MB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting is not permitted")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fail(folder: Path) -> None:
    with full_disk_named(folder):
        raise Unavailable("no ZooKeeper accepted a session")


def test_error_of_a_full_disk_says_where_how_much_is_free_and_what_to_do(small: Path) -> None:
    assert full_disk(small) is None
    with pytest.raises(Unavailable, match="accepted a session"):
        fail(small)
    (small / "fill").write_bytes(bytes(4 * 1024 * 1024 - 8192))
    with pytest.raises(
        EnvironmentFault, match=rf"the disk of {small} is full: \d kB are free\. Free some space, or"
    ) as told:
        fail(small)
    assert isinstance(told.value.__cause__, Unavailable)


def test_run_on_a_disk_without_room_is_refused_with_what_it_needs(small: Path) -> None:
    with pytest.raises(
        EnvironmentFault, match=r"No space left on device \(\d MB free; .* may need 32\)\. Choose another"
    ):
        new_bundle(small / "runs", "run")
    assert not list(small.glob("runs/*/*"))


def test_disk_of_a_folder_that_is_not_there_is_not_full(tmp_path: Path) -> None:
    assert full_disk(tmp_path / "missing") is None
