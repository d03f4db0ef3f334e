"""What `analyze` takes: folders, patterns and URIs, and where the results go."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from comparison.cli.sources import output_folder, runs_in, sources_of
from kernel.errors import ConfigurationError, EnvironmentFault, Unavailable, UserError
from kernel.platform.places import place_of
from kernel.platform.ports import free_ports


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("2026-a", "2026-b", "2027", "with space", "[odd]"):
        (tmp_path / name / "crash").mkdir(parents=True)
        (tmp_path / name / "crash" / "run.json").write_text("{}")
    (tmp_path / "2026-file").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (["2027"], ["2027"]),
        (["2026-*"], ["2026-a", "2026-b"]),
        (["2027", "202?*", "./2027"], ["2027", "2026-a", "2026-b"]),
        (["**/cra*"], ["2026-a/crash", "2026-b/crash", "2027/crash", "[odd]/crash", "with space/crash"]),
        (["[odd]"], ["[odd]"]),
        (["202[67]*"], ["2026-a", "2026-b", "2027"]),
        (["with space"], ["with space"]),
    ],
)
def test_folders_and_patterns_are_folders(runs: Path, given: list[str], names: list[str]) -> None:
    assert sources_of(given) == [runs / name for name in names]


def test_file_uris_are_paths(runs: Path) -> None:
    given = [(runs / "with space").as_uri(), f"file:{runs}/2027", f"file://localhost{runs}/2026-*"]
    names = ["with space", "2027", "2026-a", "2026-b"]
    assert sources_of(given) == [runs / name for name in names]


def test_other_uris_are_folders_in_stores(runs: Path, store: str) -> None:
    for name in ("2026-a", "2026-b", "2027"):
        (place_of(f"{store}/{name}") / "run.json").write_bytes(b"{}")
    found = sources_of([f"{store}/2026*", f"{store}/2027/", "2027", f"{store}/2027"])
    in_store = [f"{store}/2026-a", f"{store}/2026-b", f"{store}/2027"]
    assert [str(place) for place in found] == [*in_store, str(runs / "2027")]
    assert runs_in(found) == [*found[:-1], runs / "2027" / "crash"]
    assert str(output_folder(None, found[:1])) == f"{store}/2026-a"
    assert str(output_folder(f"{store}/all", found)) == f"{store}/all"
    for nothing in (f"{store}/2028", f"{store}/2028*"):
        with pytest.raises(EnvironmentFault, match="no folder memory:"):
            sources_of([nothing])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("s3a://key:secret@bucket/runs", r"a URI s3a:// has credentials in it"),
        ("s3://bucket/runs", "Give s3a://bucket/runs"),
        ("s3a:///runs", "names no bucket"),
        ("nowhere://host/runs", "nowhere://host/runs cannot be used: .*nowhere"),
    ],
)
def test_uri_that_cannot_be_used_is_refused(given: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as refused:
        sources_of([given])
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(("uri", "package"), [("s3a://bucket/x", "s3fs"), ("hdfs://host/x", "hdfs_native")])
def test_missing_package_of_a_store_is_named(uri: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (package, "kernel.platform.hdfs_place"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(EnvironmentFault, match=r"packages that are not installed .*Install rebalance-lab\[stores\]"):
        sources_of([uri])


@pytest.mark.parametrize("uri", ["hdfs://127.0.0.1:{}/runs", "s3a://bucket/runs"])
def test_store_that_does_not_answer_is_named(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (port,) = free_ports(1)
    for name, value in (
        ("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}"),
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
    ):
        monkeypatch.setenv(name, value)
    with pytest.raises(Unavailable, match=f"the store of {uri.format(port)} does not answer: "):
        sources_of([uri.format(port)])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("2028*", "no folder matches 2028*"),
        ("nowhere", "no such file or folder 'nowhere'"),
        ("2026-file", "2026-file is a file, not a folder"),
        ("file://other/runs", "is on the host other"),
        ("loop", "loop"),
    ],
)
def test_what_is_not_there_is_named(runs: Path, given: str, message: str) -> None:
    (runs / "loop").symlink_to("loop")
    with pytest.raises(UserError) as raised:
        runs_in(sources_of([given]))
    assert message in str(raised.value)


def test_results_go_to_the_only_folder(runs: Path) -> None:
    assert output_folder(None, sources_of(["2027"])) == runs / "2027"
    assert output_folder(None, sources_of(["2026-a*"])) == runs / "2026-a"


def test_without_an_only_folder_output_is_asked_for(runs: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"2 folders\). Say with --output"):
        output_folder(None, sources_of(["2026-*"]))


def test_output_is_made(runs: Path) -> None:
    assert output_folder("new/folder", sources_of(["2026-*"])) == runs / "new" / "folder"
    assert output_folder((runs / "other").as_uri(), sources_of(["2027"])) == runs / "other"
    assert (runs / "new" / "folder").is_dir()


def test_output_that_cannot_be_written_is_refused(runs: Path) -> None:
    with pytest.raises(EnvironmentFault, match="Choose another --output"):
        output_folder("2026-file/x", sources_of(["2027"]))
