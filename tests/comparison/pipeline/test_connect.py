"""An analysis on a server of Spark Connect gives the same result as one machine without Spark."""

from __future__ import annotations

import json
import os
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
from kernel.platform.jre import find_java
from kernel.platform.ports import LOOPBACK, free_ports
from kernel.waiting import wait_until
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


def test_all_answers_are_those_of_one_machine(server: str, tmp_path: Path) -> None:
    """Setup: two small runs of which one has a file that cannot be used, and a run that is read in several parts."""
    source, output = tmp_path / "runs", tmp_path / "out"
    write_synthetic_runs(source, runs=2, events_min=2_000, members=3, partitions=4)
    (source / "run-00001" / "trace" / "m9.jsonl").write_text("garbage\n")
    done = subprocess.run(
        [sys.executable, "-c", _ANALYSIS, server, source, output], capture_output=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    alone = analyze(cast("SparkSession", InlineSpark(2)), [source], output=tmp_path / "alone")
    assert json.loads(done.stdout) == msgspec.to_builtins(alone)
    assert {path.name for path in (output / "tables").iterdir()} == {
        path.name for path in (tmp_path / "alone" / "tables").iterdir()
    }
