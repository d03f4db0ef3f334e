"""Archives of classes: where they are, when they are used, and how they are made."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from kernel.errors import EnvironmentFault
from kernel.platform.class_archives import OLDEST_JAVA, archive_path, loading_options, make_once
from kernel.platform.jre import JavaRuntime, find_java


@pytest.fixture
def java(tmp_path: Path) -> JavaRuntime:
    return JavaRuntime(tmp_path / "java" / "bin" / "java", OLDEST_JAVA, "JAVA_HOME")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REBALANCE_LAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def write(part: Path) -> None:
    part.write_bytes(b"archive")


def test_each_java_version_and_set_of_jars_has_an_archive_of_its_own(java: JavaRuntime, cache: Path) -> None:
    first = archive_path("zookeeper", "3.9.5", java, ["a.jar"])
    assert first == archive_path("zookeeper", "3.9.5", java, ["a.jar"])
    others = {
        archive_path("zookeeper", "3.9.5", java, ["b.jar"]),
        archive_path("zookeeper", "3.9.6", java, ["a.jar"]),
        archive_path("spark", "3.9.5", java, ["a.jar"]),
        archive_path("zookeeper", "3.9.5", replace(java, version=26), ["a.jar"]),
    }
    assert len({first, *others}) == 5
    assert all(cache in path.parents for path in (first, *others))


def test_archive_is_used_once_it_is_there(java: JavaRuntime) -> None:
    archive = archive_path("zookeeper", "3.9.5", java, [])
    assert loading_options(java, archive) == []
    assert make_once("ZooKeeper", java, archive, write).startswith("archived ZooKeeper's classes in ")
    assert loading_options(java, archive)[0] == f"-XX:AOTCache={archive}"
    assert loading_options(replace(java, version=OLDEST_JAVA - 1), archive) == []


def test_archive_is_made_only_once(java: JavaRuntime) -> None:
    archive = archive_path("zookeeper", "3.9.5", java, [])
    make_once("ZooKeeper", java, archive, write)

    def refuse(part: Path) -> None:
        raise AssertionError(part)

    assert make_once("ZooKeeper", java, archive, refuse) == f"ZooKeeper's classes are archived in {archive}"


def test_java_that_cannot_archive_is_named_and_not_run(java: JavaRuntime, cache: Path) -> None:
    older = replace(java, version=21)
    said = make_once("ZooKeeper", older, archive_path("zookeeper", "3.9.5", older, []), write)
    assert said == "ZooKeeper's classes are not archived: that needs Java 25, and JAVA_HOME is 21"
    assert not cache.exists()


def test_jvm_that_writes_nothing_or_fails_halfway_leaves_nothing(java: JavaRuntime) -> None:
    archive = archive_path("zookeeper", "3.9.5", java, [])
    with pytest.raises(EnvironmentFault, match="wrote no archive"):
        make_once("ZooKeeper", java, archive, lambda part: None)

    def fail(part: Path) -> None:
        write(part)
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        make_once("ZooKeeper", java, archive, fail)
    assert list(archive.parent.iterdir()) == []


def test_the_three_newest_archives_are_kept(java: JavaRuntime) -> None:
    for number in range(5):
        archive = archive_path("zookeeper", f"3.9.{number}", java, [])
        make_once("ZooKeeper", java, archive, write)
        os.utime(archive, (number, number))
    assert sorted(path.name[:15] for path in archive.parent.iterdir()) == [f"zookeeper-3.9.{n}" for n in (2, 3, 4)]


def test_runtime_of_the_tests_has_a_place_for_its_archive(cache: Path) -> None:
    assert archive_path("zookeeper", "3.9.5", find_java(), []).parent == cache / "zookeeper-classes"
