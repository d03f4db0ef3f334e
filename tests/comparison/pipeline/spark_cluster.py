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

from kernel.platform.jre import find_java, spark_java_home
from kernel.platform.ports import LOOPBACK, free_ports
from kernel.waiting import wait_until

_START_S = 120
_FLAGS = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "--enable-native-access=ALL-UNNAMED")


@contextmanager
def standalone_cluster(folder: Path, *, workers: int = 2) -> Iterator[str]:
    """A master and workers with one core and 1 GB each; yields the master's URL."""
    folder.mkdir()
    port, *web_ports = free_ports(2 + workers)
    url = f"spark://{LOOPBACK}:{port}"
    with ExitStack() as running:
        place = ("--host", LOOPBACK, "--webui-port")
        _daemon(running, folder, "master.Master", *place, str(web_ports[0]), "--port", str(port))
        logs = [
            _daemon(running, folder, "worker.Worker", *place, str(web), "--cores", "1", "--memory", "1g", url)
            for web in web_ports[1:]
        ]
        registered = "Successfully registered with master"
        wait_until(lambda: all(registered in log.read_text() for log in logs), _START_S, "all workers to register")
        yield url


def _daemon(running: ExitStack, folder: Path, name: str, *arguments: str) -> Path:
    """Start a process that ends with `running`. Returns the path of its log."""
    home = folder / f"{name}-{len(list(folder.iterdir()))}"
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
    command = [str(find_java().path), *_FLAGS, "-cp", str(spark_home / "jars" / "*")]
    with log.open("w") as output:
        process = subprocess.Popen(
            [*command, f"org.apache.spark.deploy.{name}", *arguments],
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
