"""A local cluster, and a standalone one whose executors lack our packages, give the same result as one machine."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from comparison.pipeline.analysis import analyze
from comparison.pipeline.generated.runs import write_synthetic
from tests.comparison.pipeline.spark_cluster import python_without_ours, standalone_cluster
from tests.support.runs.inline_spark import InlineSpark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL_CLUSTER = "local-cluster[2,1,1024]"

#: Runs in its own process, because a process has one Spark session.
ANALYSIS = """
import sys
from pathlib import Path
import msgspec
import pyarrow
from comparison.pipeline.analysis import analyze
from comparison.pipeline.spark.session import starting_session
from comparison.pipeline.spark.options import SparkOptions

def code_of_tasks(batches):
    import comparison.pipeline.job as module
    for batch in batches:
        yield pyarrow.RecordBatch.from_pydict({"path": [module.__file__]})

CONF = {
    "spark.executor.cores": "1",  # so that there are two executors
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.dir": sys.argv[4],
}
master, python, source, output = sys.argv[1:]
with starting_session(master, options=SparkOptions(executor_python=python, conf=CONF)) as starting:
    spark = starting.session()
    found = {
        "result": analyze(spark, [Path(source)], output=Path(output)),
        "code": [row.path for row in spark.range(2).mapInArrow(code_of_tasks, "path string").collect()],
        "partitions": spark.conf.get("spark.sql.shuffle.partitions"),
    }
sys.stdout.buffer.write(msgspec.json.encode(found))
"""


@pytest.fixture(scope="module", params=[LOCAL_CLUSTER, pytest.param("standalone", marks=pytest.mark.long)])
def master(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("cluster") / "standalone"
    with standalone_cluster(folder) if request.param == "standalone" else nullcontext(request.param) as url:
        yield url


def test_cluster_without_our_packages_gives_the_same_result_as_one_machine(master: str, tmp_path: Path) -> None:
    """Setup: the executors' Python has our dependencies only; one trace cannot be read.

    Steps: one analysis in a process of its own; a task reports where its code comes from.
    """
    source, output = tmp_path / "run", tmp_path / "out"
    write_synthetic(source, events_min=2_000)
    (source / "trace" / "m9.jsonl").write_text("garbage\n")
    python = python_without_ours(tmp_path / "python")
    lacking = subprocess.run([python, "-c", "import pyarrow, kernel"], cwd=tmp_path, capture_output=True, check=False)
    assert b"No module named 'kernel'" in lacking.stderr
    output.mkdir()
    found = run_there(master, python, source, output, cwd=tmp_path)
    assert found["result"] == msgspec.to_builtins(analyze(cast("SparkSession", InlineSpark(2)), [source]))
    assert found["result"]["runs"][0]["quarantined"] == {"no header": 1}
    assert all("rebalance_lab.zip/" in path for path in found["code"])
    assert found["partitions"] == "2"
    descriptions = {description.partition(":")[0] for description in described_executions(output)}
    assert descriptions >= {"bronze", "gold", "figures"}


def described_executions(log: Path) -> Iterator[str]:
    """What Spark's SQL tab calls each execution whose tag says the same."""
    for path in log.glob("**/events_*"):
        for event in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            if event["Event"].endswith("SparkListenerSQLExecutionStart"):
                name = event["description"].partition(":")[0]
                if any(tag.endswith(f"-{name}") for tag in event["jobTags"]):
                    yield event["description"]


def run_there(master: str, python: Path, source: Path, output: Path, *, cwd: Path) -> dict[str, Any]:
    command = [sys.executable, "-c", ANALYSIS, master, str(python), str(source), str(output)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, timeout=540, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""
    return json.loads(done.stdout)
