"""A wheel, built and installed as a user would: it needs setuptools from a package registry, so not in every run."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.rebalance_lab.dockerfile import lay_out

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
SETUPTOOLS_MIN = 77


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _built(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts of an environment that has the wheel, and our dependencies from this one."""
    folder = tmp_path_factory.mktemp("environment")
    _run(sys.executable, "-m", "venv", "--without-pip", str(folder))
    python = folder / "bin" / "python"
    site = _run(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    # Its .pth files are not read, so the checkout that is installed there is not found.
    (Path(site) / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    pip = (sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-index", "--no-deps")
    _run(*pip, str(wheel))
    return folder / "bin"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder with packages that have the names of ours in a checkout, and fail."""
    for name in ("kernel", "zkconsumer", "coordinator", "comparison"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('somebody else')\n", encoding="utf-8")
    return tmp_path


def test_wheel_installs_one_package(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names} == {"rebalance_lab", f"rebalance_lab-{_version()}.dist-info"}
    tracked = _run("git", "-C", str(ROOT), "ls-files", "kernel", "zkconsumer", "coordinator", "comparison").split()
    assert not {f"rebalance_lab/{name}" for name in tracked} - set(names)
    assert "rebalance_lab/py.typed" in names


def test_what_the_dockerfile_copies_makes_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    lay_out(ROOT / "docker" / "Dockerfile", ROOT, tmp_path / "lab")
    made = _built(tmp_path / "lab", tmp_path / "wheel")
    assert _checksums(made) == _checksums(wheel)


def test_installed_command_runs_a_scenario_beside_packages_with_our_names(installed: Path, hostile: Path) -> None:
    """Members, brokers and Spark's workers are processes that load our modules by their new names."""
    command = str(installed / "rebalance-lab")
    assert _run(command, "--version", folder=hostile).split()[-1] == _version()
    assert "crash" in _run(command, "scenarios", folder=hostile)
    assert "spark: counted" in _run(command, "doctor", folder=hostile)
    _run(command, "run", "crash", "--design", "eager", folder=hostile)
    (run,) = json.loads((hostile / "runs" / "latest" / "result.json").read_bytes())["runs"]
    assert (run["outcome"], run["verdict"]) == ("complete", "as expected")
    example = ROOT / "docs" / "examples" / "owned_twice.py"
    assert "owners" in _run(str(installed / "python"), str(example), "runs/latest", folder=hostile)


def test_installed_strategy_is_found_by_its_entry_point(installed: Path, hostile: Path) -> None:
    program = "from rebalance_lab.assignors import assignor; print(assignor('random').__module__)"
    found = _run(str(installed / "python"), "-c", program, folder=hostile)
    assert found == "rebalance_lab.kernel.assignors.checking\n"


def _built(source: Path, folder: Path) -> Path:
    """The wheel that pip builds of a folder."""
    has_setuptools = int(version("setuptools").partition(".")[0]) >= SETUPTOOLS_MIN
    options = ["--no-build-isolation"] if has_setuptools else []
    _run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", *options, "-w", str(folder), str(source))
    (found,) = folder.glob("*.whl")
    return found


def _checksums(wheel: Path) -> dict[str, int]:
    return {each.filename: each.CRC for each in zipfile.ZipFile(wheel).infolist()}


def _version() -> str:
    return version("rebalance-lab")


def _run(*command: str, folder: Path | None = None) -> str:
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout
