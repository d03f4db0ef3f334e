"""Runs in a store that is not this machine's disk: Hadoop's viewfs, which shows a folder here under another scheme."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from comparison.pipeline.analysis import analyze
from comparison.pipeline.spark.stores import StoreFault, copied
from kernel.errors import Unavailable, UserError
from kernel.platform.ports import free_ports
from tests.comparison.pipeline.test_analysis import PAUSE
from tests.support.trace.traces import write_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def store(spark: SparkSession, tmp_path: Path) -> str:
    """The URI of the folder `remote`, which has two runs in it and what else a run leaves."""
    for name in ("a", "b c"):
        run = write_run(tmp_path / "remote" / "bundle" / name, PAUSE, scenario="pause")
        (run / "run.json").write_text("{}")
        (run / "data").mkdir()
        (run / "data" / "00000.log").write_text("records")
    conf = spark.sparkContext._jsc.hadoopConfiguration()  # type: ignore[attr-defined]
    name = f"lab{os.getpid()}-{abs(hash(tmp_path))}"
    conf.set(f"fs.viewfs.mounttable.{name}.link./runs", (tmp_path / "remote").as_uri())
    return f"viewfs://{name}/runs"


def test_runs_in_a_store_are_analysed_like_those_on_disk(spark: SparkSession, tmp_path: Path, store: str) -> None:
    local = analyze(spark, [tmp_path / "remote"], output=tmp_path / "one")
    messages: list[str] = []
    copies = copied(spark, [f"{store}/*"], tmp_path / "copies", messages.append)
    assert list(copies.values()) == [f"{store}/bundle"]
    remote = analyze(spark, [], output=tmp_path / "other", copies=copies)
    assert [run.path for run in remote.runs] == [f"{store}/bundle/a", f"{store}/bundle/b c"]
    assert [run.path for run in local.runs] == [str(tmp_path / "remote" / "bundle" / name) for name in ("a", "b c")]
    assert [replace(run, path="") for run in remote.runs] == [replace(run, path="") for run in local.runs]
    assert replace(remote, runs=[]) == replace(local, runs=[])
    assert not list((tmp_path / "copies").rglob("*.log"))
    assert len(messages) == 1


def test_only_what_is_new_in_the_store_is_copied(spark: SparkSession, tmp_path: Path, store: str) -> None:
    messages: list[str] = []

    def copy() -> list[str]:
        (folder,) = copied(spark, [store], tmp_path / "copies", messages.append)
        return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())

    files = copy()
    assert len(files) == 2 * 5
    assert (copy(), len(messages)) == (files, 1)
    changed = tmp_path / "remote" / "bundle" / "a" / "trace" / "m1.jsonl"
    os.utime(changed, (5, 5))
    shutil.rmtree(tmp_path / "remote" / "bundle" / "b c")
    assert len(copy()) == 5
    assert messages[1:] == ["runs: copying 1 of 5 files, " + f"{changed.stat().st_size:,} bytes"]
    shutil.rmtree(tmp_path / "remote" / "bundle" / "a")
    with pytest.raises(UserError, match="no run in"):
        copy()


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        (
            "s3a://bucket/runs",
            "is missing. Add --spark-conf spark.jars.packages=org.apache.hadoop:hadoop-aws:3.",
        ),
        ("abfss://c@a.dfs.core.windows.net/runs", "spark.jars.packages=org.apache.hadoop:hadoop-azure:3."),
        ("nowhere://host/runs", "Spark has no connector for nowhere://. Add --spark-conf spark.jars.packages="),
    ],
)
def test_store_without_a_connector_is_refused_with_the_remedy(
    spark: SparkSession, tmp_path: Path, uri: str, message: str
) -> None:
    with pytest.raises(StoreFault) as raised:
        copied(spark, [uri], tmp_path)
    assert str(raised.value).startswith(f"{uri}: ")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_store_that_does_not_answer_is_named(spark: SparkSession, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    uri = f"hdfs://127.0.0.1:{port}/runs"
    with pytest.raises(Unavailable, match="Connection refused"):
        copied(spark, [uri], tmp_path)


def test_place_that_is_not_there_is_named(spark: SparkSession, tmp_path: Path, store: str) -> None:
    with pytest.raises(UserError, match=f"no run in {store}/nothing"):
        copied(spark, [f"{store}/nothing"], tmp_path)
