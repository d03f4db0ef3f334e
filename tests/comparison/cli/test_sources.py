"""What `analyze` takes: folders, patterns and URIs, and where the results go."""

from __future__ import annotations

from pathlib import Path

import pytest

from comparison.cli.sources import Sources, output_folder, sources_of
from kernel.errors import ConfigurationError, EnvironmentFault, UserError


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
    assert sources_of(given) == Sources(tuple(runs / name for name in names), ())


def test_file_uris_are_paths(runs: Path) -> None:
    given = [(runs / "with space").as_uri(), f"file:{runs}/2027", f"file://localhost{runs}/2026-*"]
    names = ["with space", "2027", "2026-a", "2026-b"]
    assert sources_of(given) == Sources(tuple(runs / name for name in names), ())


def test_other_uris_are_left_to_spark(runs: Path) -> None:
    given = ["hdfs://host:8020/runs/2026*", "s3a://bucket/runs", "2027", "s3a://bucket/runs"]
    found = sources_of(given)
    assert found == Sources((runs / "2027",), ("hdfs://host:8020/runs/2026*", "s3a://bucket/runs"))
    assert found.run_dirs() == [runs / "2027" / "crash"]


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
        sources_of([given]).run_dirs()
    assert message in str(raised.value)


def test_results_go_to_the_only_folder(runs: Path) -> None:
    assert output_folder(None, sources_of(["2027"])) == runs / "2027"
    assert output_folder(None, sources_of(["2026-a*"])) == runs / "2026-a"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["2026-*"], r"2 folders\). Say with --output"),
        (["2027", "hdfs://h/r"], r"1 folder and 1 URI\). Say with --output"),
        (["s3a://b/r"], r"1 URI\). Say with --output"),
    ],
)
def test_without_an_only_folder_output_is_asked_for(runs: Path, given: list[str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        output_folder(None, sources_of(given))


def test_output_is_made(runs: Path) -> None:
    assert output_folder("new/folder", sources_of(["2026-*"])) == runs / "new" / "folder"
    assert output_folder((runs / "other").as_uri(), sources_of(["2027"])) == runs / "other"
    assert (runs / "new" / "folder").is_dir()


def test_output_to_a_store_is_refused(runs: Path) -> None:
    with pytest.raises(ConfigurationError, match="--output is s3a://b/r: results are written to a folder"):
        output_folder("s3a://b/r", sources_of(["2027"]))


def test_output_that_cannot_be_written_is_refused(runs: Path) -> None:
    with pytest.raises(EnvironmentFault, match="Choose another --output"):
        output_folder("2026-file/x", sources_of(["2027"]))
