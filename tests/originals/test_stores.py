"""Runs and results in HDFS and in S3, as commands read and write them, with Spark's own connectors."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec
import pytest

from comparison.cli.damage import damage_of
from comparison.exits import Exit
from comparison.pipeline.analysis import analyze
from comparison.pipeline.generated.runs import Faults, write_synthetic_runs
from comparison.pipeline.published import PARTS
from comparison.results.result import Result
from kernel.platform.interpreter import module_command
from kernel.platform.places import below, exists, place_of, remove, write_whole
from kernel.waiting import wait_until
from tests.comparison.pipeline.stored_runs import rows
from tests.comparison.pipeline.test_stores import contents, copied, without_places
from tests.support.runs.inline_spark import InlineSpark
from tests.support.stores.servers import Store, hdfs, s3

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK = cast("SparkSession", InlineSpark(2))
FAULTS = Faults(zombies=0.5, brief=0.3, deaths=0.2, torn=1, foreign=1)
_ANALYSED_S = 280
#: What an analysis leaves where its results go.
LEFT = {"report.html", "result.json", "tables"}


@pytest.fixture(scope="module", params=["s3", "hdfs"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with s3() if request.param == "s3" else hdfs(tmp_path_factory.mktemp("hdfs")) as made:
        yield made


@pytest.fixture
def runs(tmp_path: Path, store: Store) -> Iterator[Path]:
    """Two runs here, and the same below `runs` in the store."""
    write_synthetic_runs(tmp_path / "runs", runs=2, events_min=1_000, members=3, partitions=4, faults=FAULTS)
    copied(tmp_path / "runs", place_of(store.uri) / "runs")
    yield tmp_path / "runs"
    remove(place_of(store.uri))


def analysed(store: Store, folder: Path, *arguments: str, options: tuple[str, ...] | None = None) -> tuple[int, str]:
    """The exit code of `analyze` and all that it says. It stands in `folder`, and has it for temporary files.

    Nothing of the runs and the results is there at any time, unless the results are to go there.
    """
    folder.mkdir(exist_ok=True)
    command = module_command("rebalance_lab", "analyze", *arguments, *(store.options if options is None else options))
    environment = {**os.environ, **store.environment, "TMPDIR": str(folder)}
    names: set[str] = set()
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(command, cwd=folder, env=environment, stdout=said, stderr=said) as child,
    ):
        try:
            wait_until(lambda: _ended(child, folder, names), _ANALYSED_S, "the analysis", every_s=0.05)
        finally:
            child.kill()
        said.seek(0)
        text = said.read().decode()
    assert not [secret for secret in store.secrets if secret in text]
    copies = (".jsonl", ".parquet") if f"--output={store.uri}/out" in arguments else (".jsonl",)
    assert not [name for name in names if name.endswith(copies)]
    return child.returncode, text


def _ended(child: subprocess.Popen[bytes], folder: Path, names: set[str]) -> bool:
    names.update(name for _, _, files in os.walk(folder) for name in files)
    return child.poll() is not None


def test_results_are_those_of_folders_and_nothing_else_is_left(store: Store, runs: Path, tmp_path: Path) -> None:
    local = analyze(SPARK, [runs], output=tmp_path / "local")
    output, here = place_of(store.uri) / "out", tmp_path / "here"
    code, said = analysed(store, here, f"{store.uri}/runs", f"--output={output}")
    assert code == Exit.UNKNOWN, said
    assert f"report: {output}/report.html" in said.splitlines()
    found = msgspec.json.decode((output / "result.json").read_bytes(), type=Result)
    assert without_places(found) == without_places(local)
    in_store, on_disk = rows(output / "tables"), rows(tmp_path / "local" / "tables")
    for tables in (in_store, on_disk):
        del tables[""]  # one of them has the runs' paths
    assert in_store == on_disk
    assert {name.partition("/")[0] for name in contents(output)} == LEFT
    assert not [name for name, text in contents(output).items() if any(each.encode() in text for each in store.secrets)]
    assert [path for path in here.rglob("*") if path.is_file()] == []


def test_runs_that_have_not_changed_are_kept_and_what_was_broken_off_goes(
    store: Store, runs: Path, tmp_path: Path
) -> None:
    folder, output = place_of(store.uri) / "runs", place_of(store.uri) / "out"
    code, said = analysed(store, tmp_path / "here", f"{store.uri}/run*", f"--output={output}")
    assert (code, "analysing 2 runs" in said) == (Exit.UNKNOWN, True), said
    write_whole(output / ".tables-in-progress" / "broken-off" / "rounds" / "part-00000.parquet", b"half")
    changed = folder / "run-00001" / "trace" / "m1.jsonl"
    write_whole(changed, changed.read_bytes() + b"garbage\n")
    _, said = analysed(store, tmp_path / "here", f"{store.uri}/run*", f"--output={output}")
    assert "analysing 1 new or changed of 2 runs; 1 unchanged since the last analysis" in said
    assert exists(output / "tables" / PARTS)
    assert {name.partition("/")[0] for name in contents(output)} == LEFT


def test_runs_in_a_store_need_no_connector_for_results_in_a_folder(store: Store, runs: Path, tmp_path: Path) -> None:
    local = analyze(SPARK, [runs], output=tmp_path / "local")
    code, said = analysed(store, tmp_path / "here", f"{store.uri}/runs", "--output", "out", options=())
    assert code == Exit.UNKNOWN, said
    found = msgspec.json.decode((tmp_path / "here" / "out" / "result.json").read_bytes(), type=Result)
    assert without_places(found) == without_places(local)
    assert {path.name for path in (tmp_path / "here").iterdir()} == {"out"}
    assert {path.name for path in (tmp_path / "here" / "out").iterdir()} == LEFT
    damage = damage_of(local, tmp_path / "local" / "tables")
    assert damage
    assert {line.replace(str(runs), f"{store.uri}/runs") for line in damage} <= {*said.splitlines()}


def test_what_is_missing_is_named_in_a_line(store: Store, runs: Path, tmp_path: Path) -> None:
    code, said = analysed(store, tmp_path / "here", f"{store.uri}/nothing", f"--output={store.uri}/out")
    assert (code, said) == (
        Exit.USAGE,
        f"Error: no folder {store.uri}/nothing. Give one that has runs of `run` or `compare` in it.\n",
    )


@pytest.mark.parametrize("store", ["s3"], indirect=True)
def test_connector_and_credentials_that_are_missing_are_named_in_a_line(
    store: Store, runs: Path, tmp_path: Path
) -> None:
    arguments = (f"{store.uri}/runs", f"--output={store.uri}/out")
    code, said = analysed(store, tmp_path / "here", *arguments, options=())
    assert "add --spark-conf spark.jars.packages=org.apache.hadoop:hadoop-aws:3.5.0" in said.splitlines()[-1]
    nobody = Store(store.uri, {**store.environment, "AWS_ACCESS_KEY_ID": "", "AWS_EC2_METADATA_DISABLED": "true"})
    code, said = analysed(nobody, tmp_path / "here", *arguments)
    assert (code, said) == (
        Exit.USAGE,
        f"Error: no credentials for {store.uri}/runs. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.\n",
    )
    assert below(place_of(f"{store.uri}/out"), "*") == []
