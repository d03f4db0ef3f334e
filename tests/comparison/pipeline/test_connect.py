"""On a server of Spark Connect: an analysis as on one machine without Spark, the tables' queries, and a notebook."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec
import pyspark
import pytest

from comparison.pipeline.analysis import analyze
from comparison.pipeline.generated.runs import write_synthetic_runs
from comparison.pipeline.spark.class_cache import options_of_archive
from comparison.pipeline.spark.jvm import spark_jars
from docs.generators.pages import DOCS
from docs.generators.table_pages import SWEEP_TABLES
from kernel.platform.jre import find_java
from kernel.platform.ports import LOOPBACK, free_ports
from kernel.waiting import wait_until
from tests.comparison.pipeline.test_table_pages import QUERIES
from tests.support.runs.inline_spark import InlineSpark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FLAGS = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "--enable-native-access=ALL-UNNAMED")
_OPENED = ("java.lang", "java.lang.invoke", "java.nio", "java.util", "sun.nio.ch", "jdk.internal.ref")
_ANALYSIS = """
import sys
from pathlib import Path
import msgspec
from comparison.pipeline.analysis import analyze
from comparison.pipeline.spark.session import starting_session
with starting_session(sys.argv[1]) as starting:
    result = analyze(starting.session, [Path(sys.argv[2])], output=Path(sys.argv[3]))
    assert "py4j.java_gateway" not in sys.modules or starting.session().__module__.startswith("pyspark.sql.connect")
sys.stdout.buffer.write(msgspec.json.encode(result))
"""
_QUERIES = """
import json
import sys
from pathlib import Path
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
queries = json.loads(Path(sys.argv[1]).read_text())
print(json.dumps({name: len(spark.sql(query).collect()) for name, query in queries.items()}))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server on loopback; yields its URL."""
    folder = tmp_path_factory.mktemp("connect")
    (port,) = free_ports(1)
    conf = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": str(port),
    }
    command = [
        str(find_java().path), *_FLAGS, *options_of_archive(),
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
        "--sun-misc-unsafe-memory-access=allow", "-XX:+IgnoreUnrecognizedVMOptions",
        "-cp", os.pathsep.join(spark_jars()), "org.apache.spark.deploy.SparkSubmit",
        *(part for name, value in conf.items() for part in ("--conf", f"{name}={value}")),
        "--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal",
    ]  # fmt: skip
    log = folder / "log.txt"
    environment = {
        "PATH": os.environ["PATH"],
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_SCALA_VERSION": "2.13",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONSAFEPATH": "1",
    }
    with log.open("w") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, cwd=folder
        )
    try:
        wait_until(lambda: "Spark Connect server started at" in log.read_text(), 120, "the server to listen")
        yield f"sc://{LOOPBACK}:{port}"
    finally:
        process.terminate()
        process.wait(60)


@pytest.fixture(scope="module")
def analysed(server: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, bytes]:
    """Two small runs of which one has a file that cannot be used, analysed on the server: runs, output, result."""
    folder = tmp_path_factory.mktemp("analysed")
    source, output = folder / "runs", folder / "out"
    write_synthetic_runs(source, runs=2, events_min=2_000, members=3, partitions=4)
    (source / "run-00001" / "trace" / "m9.jsonl").write_text("garbage\n")
    return source, output, _done(_ANALYSIS, server, source, output)


def _done(script: str, *arguments: str | Path, **environment: str) -> bytes:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def test_all_answers_are_those_of_one_machine(analysed: tuple[Path, Path, bytes], tmp_path: Path) -> None:
    source, output, result = analysed
    alone = analyze(cast("SparkSession", InlineSpark(2)), [source], output=tmp_path / "alone")
    assert json.loads(result) == msgspec.to_builtins(alone)
    assert {path.name for path in (output / "tables").iterdir()} == {
        path.name for path in (tmp_path / "alone" / "tables").iterdir()
    }


def test_queries_of_the_page_of_tables_run(server: str, analysed: tuple[Path, Path, bytes], tmp_path: Path) -> None:
    _, output, _ = analysed
    names = {name: query for name, query in QUERIES if name not in SWEEP_TABLES}
    script = tmp_path / "queries.json"
    script.write_text(
        json.dumps({name: re.sub("'(tables/.*?)'", f"parquet.`{output}/\\1`", query) for name, query in names.items()})
    )
    counts = json.loads(_done(_QUERIES, script, SPARK_REMOTE=server))
    without_rows = {"bystanders", "changes", "commits", "faults", "rounds", "waits"}
    assert {name for name, count in counts.items() if not count} <= without_rows
    assert counts.keys() == names.keys()


def test_notebook_runs(server: str, analysed: tuple[Path, Path, bytes]) -> None:
    _, output, _ = analysed
    notebook = json.loads((DOCS / "examples" / "waits.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    shown = _done(
        "\n".join([*cells, "print(type(waits).__module__)"]), SPARK_REMOTE=server, REBALANCE_LAB_FOLDER=str(output)
    )
    assert shown.decode().splitlines()[-1] == "pyspark.sql.connect.dataframe"
