"""What the images of the lab are made of is all that the lab needs: as far as that shows without a Docker engine."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from tests.rebalance_lab.dockerfile import lay_out

ROOT = Path(__file__).resolve().parents[2]

#: Loads the build backend as pip does, and starts the command from the tree that it would make a wheel of.
BUILD = """
import importlib, os, subprocess, sys, tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
sys.path[:0] = project["build-system"]["backend-path"]
backend = importlib.import_module(project["build-system"]["build-backend"])
module, _, name = project["project"]["scripts"]["rebalance-lab"].partition(":")
with backend.moved_tree(Path.cwd()) as tree:
    started = f"import sys; sys.argv = ['rebalance-lab', 'scenarios']; from {module} import {name}; {name}()"
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    sys.exit(subprocess.run([sys.executable, "-c", started], cwd=tree, env=environment).returncode)
"""


def test_the_command_can_be_built_and_started_from_what_the_dockerfile_copies(tmp_path: Path) -> None:
    copied = lay_out(ROOT / "docker" / "Dockerfile", ROOT, tmp_path)
    assert {"pyproject.toml", "constraints.txt"} <= set(copied)  # its RUN line reads them
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ended = subprocess.run(
        [sys.executable, "-c", BUILD],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "split-brain" in ended.stdout


def test_the_local_image_gets_every_package_that_a_wheel_has() -> None:
    moved_tree = _loaded("packaging/moved_tree.py")
    assert set(_loaded("docker/build_image.py").PACKAGES) == {moved_tree.NAMESPACE, *moved_tree.PACKAGES}


def _loaded(path: str):
    """A module of a folder that is no package."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
