"""The cache of the originals' jars, without a network: what is trusted, what is fetched, and the messages."""

from __future__ import annotations

import hashlib
import importlib.util
import re
from pathlib import Path

import pytest

from comparison.originals import jars
from comparison.originals.jars import Jar, JarRefused, LockFileBroken, OriginalsUnavailable, parse_lock, provide
from kernel.errors import EnvironmentFault
from kernel.platform.cache_folder import CACHE_VARIABLE, cache_dir


def jar_of(content: bytes, artifact: str = "one", version: str = "1.0") -> Jar:
    return Jar("org.example", artifact, version, hashlib.sha256(content).hexdigest(), len(content))


class Repository:
    """Returns contents by coordinates, and records the requests."""

    def __init__(self, **contents: bytes) -> None:
        self.contents = contents
        self.asked: list[str] = []

    def __call__(self, wanted, folder):
        got: dict[str, Path | str] = {}
        for jar in wanted:
            self.asked.append(jar.coordinates)
            if jar.artifact in self.contents:
                path = folder / f"download-of-{jar.artifact}"
                path.write_bytes(self.contents[jar.artifact])
                got[jar.coordinates] = path
            else:
                got[jar.coordinates] = "no route to host"
        return got


@pytest.fixture(autouse=True)
def empty_home(monkeypatch, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setattr(Path, "home", lambda: home)
    for variable in (CACHE_VARIABLE, jars.OFFLINE_VARIABLE, "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    return home


def test_a_jar_is_fetched_once_and_then_read_from_the_cache(tmp_path):
    repository = Repository(one=b"bytecode", two=b"more")
    wanted = [jar_of(b"bytecode"), jar_of(b"more", "two")]
    first = provide(wanted, tmp_path / "cache", download=repository)
    assert [path.read_bytes() for path in first] == [b"bytecode", b"more"]
    assert [path.name for path in first] == ["one-1.0.jar", "two-1.0.jar"]
    assert provide(wanted, tmp_path / "cache", download=None) == first
    assert repository.asked == ["org.example:one:1.0", "org.example:two:1.0"]


def test_a_jar_with_another_digest_is_refused_and_not_cached(tmp_path):
    wanted = jar_of(b"bytecode")
    with pytest.raises(JarRefused, match=f"lock file says {wanted.sha256}"):
        provide([wanted], tmp_path, download=Repository(one=b"bytecodE"))
    assert list(tmp_path.rglob("*")) == []


def test_a_damaged_jar_in_the_cache_is_fetched_again(tmp_path):
    wanted = jar_of(b"bytecode")
    (path,) = provide([wanted], tmp_path, download=Repository(one=b"bytecode"))
    path.write_bytes(b"bytecodE")
    repository = Repository(one=b"bytecode")
    assert provide([wanted], tmp_path, download=repository) == (path,)
    assert path.read_bytes() == b"bytecode"
    assert repository.asked == [wanted.coordinates]


def test_offline_missing_and_damaged_jars_are_named(tmp_path):
    wanted = [jar_of(b"bytecode"), jar_of(b"more", "two")]
    (path,) = provide(wanted[:1], tmp_path, download=Repository(one=b"bytecode"))
    path.write_bytes(b"")
    with pytest.raises(OriginalsUnavailable) as raised:
        provide(wanted, tmp_path, download=None)
    assert str(raised.value) == (
        f"offline, and 2 of the jars are not in {tmp_path} (one-1.0.jar: found, but with another SHA-256 than in the "
        "lock file): org.example:one:1.0, org.example:two:1.0. Unset REBALANCE_LAB_OFFLINE to fetch them."
    )


def test_an_unreachable_repository_makes_originals_unavailable_with_reason_and_remedy(tmp_path):
    with pytest.raises(OriginalsUnavailable) as raised:
        provide([jar_of(b"bytecode")], tmp_path, download=Repository())
    assert str(raised.value).startswith("org.example:one:1.0 cannot be fetched: no route to host. ")
    assert "MAVEN_REPOSITORY_URL" in str(raised.value)


def test_a_jar_of_the_users_maven_cache_is_copied_if_its_digest_matches(tmp_path, empty_home):
    wanted = jar_of(b"bytecode")
    theirs = empty_home / ".m2/repository/org/example/one/1.0/one-1.0.jar"
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(b"something else")
    with pytest.raises(OriginalsUnavailable, match="offline"):
        provide([wanted], tmp_path, download=None)
    theirs.write_bytes(b"bytecode")
    (path,) = provide([wanted], tmp_path, download=None)
    assert (path.read_bytes(), theirs.exists()) == (b"bytecode", True)


def test_a_cache_that_cannot_be_written_says_which_setting_moves_it(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OriginalsUnavailable, match="Set REBALANCE_LAB_CACHE to your own folder"):
        provide([jar_of(b"bytecode")], tmp_path / "file", download=Repository(one=b"bytecode"))


def test_the_cache_follows_the_setting_or_the_xdg_convention(monkeypatch, empty_home):
    assert cache_dir() == empty_home / ".cache" / "rebalance-lab"
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert cache_dir() == Path("/elsewhere/rebalance-lab")
    monkeypatch.setenv(CACHE_VARIABLE, "/mine")
    assert cache_dir() == Path("/mine")


def test_the_offline_setting_prevents_fetching(monkeypatch, tmp_path):
    def never(wanted, folder):
        raise AssertionError(f"fetched {wanted} despite the setting")

    monkeypatch.setattr(jars, "download_by_name", never)
    monkeypatch.setenv(jars.OFFLINE_VARIABLE, "1")
    with pytest.raises(OriginalsUnavailable, match="15 of the jars"):
        jars.class_path("1.1.1", cache=tmp_path)


def test_message_names_the_extra_that_is_not_installed(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(OriginalsUnavailable, match=re.escape("Run 'pip install jgo==3.2.*'")):
        jars.class_path("1.1.1", cache=tmp_path)


@pytest.mark.parametrize("version", jars.VERSIONS)
def test_every_lock_file_is_readable_and_has_kafka_and_no_address(version):
    found = jars.locked_jars(version)
    assert [jar for jar in found if jar.group == "org.apache.kafka" and jar.artifact.startswith("kafka_2.")]
    assert len({jar.coordinates for jar in found}) == len(found)
    assert all(jar.version == version for jar in found if jar.group == "org.apache.kafka")
    text = (Path(jars.__file__).parent / f"kafka-{version}.lock").read_text()
    assert "/" not in text


def test_unknown_version_is_reported_with_the_known_ones():
    with pytest.raises(OriginalsUnavailable, match=re.escape("Kafka 2.8.0. Use one of 0.8.2.2, 1.1.1")):
        jars.locked_jars("2.8.0")


@pytest.mark.parametrize(
    "line", ["", "a:b:c", f"a:b:c {'0' * 63} 5", f"a:b {'0' * 64} 5", f"a:b:c {'0' * 64} x", "a:b:../c x 1"]
)
def test_a_malformed_lock_file_is_refused_with_the_line_number(line):
    with pytest.raises(LockFileBroken, match="line 2 is not") as raised:
        parse_lock(f"a:b:c {'0' * 64} 5\n{line}\n")
    assert isinstance(raised.value, EnvironmentFault)
