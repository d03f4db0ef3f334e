"""A standalone Spark cluster from PySpark's jars, on loopback; and a Python in which our packages are not installed."""

from __future__ import annotations

import os
import subprocess
import sysconfig
import venv
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from comparison.pipeline.spark.class_cache import options_of_archive
from comparison.pipeline.spark.jvm import spark_jars
from kernel.platform.jre import find_java, spark_java_home
from kernel.platform.ports import LOOPBACK, free_ports
from kernel.waiting import wait_until

_START_S = 120
_FLAGS = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "--enable-native-access=ALL-UNNAMED")


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[str]:
    """A master, and a worker with room for two executors of one core and 1 GB; yields the master's URL."""
    folder.mkdir()
    port, *web_ports = map(str, free_ports(3))
    url = f"spark://{LOOPBACK}:{port}"
    with ExitStack() as running:
        _daemon(running, folder, "master.Master", web_ports[0], "--port", port)
        log = _daemon(running, folder, "worker.Worker", web_ports[1], "--cores", "2", "--memory", "2g", url)
        registered = "Successfully registered with master"
        wait_until(lambda: registered in log.read_text(), _START_S, "the worker to register")
        yield url


def _daemon(running: ExitStack, folder: Path, name: str, web_port: str, *arguments: str) -> Path:
    """Start a process that ends with `running`. Returns the path of its log."""
    home = folder / name
    home.mkdir()
    log = home / "log.txt"
    spark_home = Path(pyspark.__file__).parent
    environment = {
        "PATH": os.environ["PATH"],
        "JAVA_HOME": str(spark_java_home(folder)),  # executors' too
        "SPARK_HOME": str(spark_home),
        "SPARK_SCALA_VERSION": "2.13",
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_WORKER_DIR": str(home / "work"),
        "SPARK_LOCAL_DIRS": str(home / "local"),
    }
    command = [str(find_java().path), *_FLAGS, *options_of_archive(), "-cp", os.pathsep.join(spark_jars())]
    place = ("--host", LOOPBACK, "--webui-port", web_port)
    with log.open("w") as output:
        process = subprocess.Popen(
            [*command, f"org.apache.spark.deploy.{name}", *place, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            cwd=home,
        )
    running.callback(process.wait, 60)
    running.callback(process.terminate)
    return log


def python_without_ours(folder: Path) -> Path:
    """A Python with our dependencies but not our packages: `*.pth` files of an added folder are not read."""
    venv.create(folder, symlinks=True)
    (site_packages,) = folder.glob("lib/python*/site-packages")
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return folder / "bin" / "python"
