"""Own Python that a sweep's folder has kept: run only to make runs, and only if it is what the plan has recorded."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from comparison.exits import Exit
from comparison.scenarios.plan import admitted, plugins
from comparison.sweep.grid_file import scenario_or_grid
from comparison.sweep.plan import planned_sweep
from comparison.sweep.run import load_kept_files, planned_before, read_plan, sweep_folder
from comparison.sweep.state import PLAN_FILE, RecordedPlan, recorded
from kernel.errors import ConfigurationError, EnvironmentFault
from tests.support.commands.called import code_of

TIMEOUT_S = 300
#: A step of one's own. Whoever runs it leaves the path of the file in the working folder.
OWN = """
from dataclasses import dataclass
from rebalance_lab.extending import Group, OwnStep, own_step

with open("run", "a") as file:
    print(__file__, file=file)

@own_step
@dataclass(frozen=True, slots=True)
class Rest(OwnStep):
    async def perform(self, group: Group) -> None: ...
"""


def begin() -> None:
    """Write the folder of a sweep, without a run."""
    plan = planned_sweep(scenario_or_grid(Path("mine.toml")))
    with sweep_folder(Path("s"), recorded(plan, ["rebalance-lab", "sweep", "mine.toml"], "embedded")):
        pass


def load() -> None:
    load_kept_files(Path("s"), read_plan(Path("s")))


@pytest.fixture(autouse=True)
def nothing_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    forget(monkeypatch)


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be as another process that begins: nothing has been loaded."""
    monkeypatch.setattr(plugins, "_LOADED", {})
    monkeypatch.setattr(admitted, "_ADMITTED", {})


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a sweep whose scenario has a step of its own, begun in another process."""
    folder = tmp_path_factory.mktemp("original")
    (folder / "own.py").write_text(OWN)
    (folder / "mine.toml").write_text(
        'name = "mine"\nplugins = ["own.py"]\nsteps = [{step = "form"}, {step = "rest"}]\n'
    )
    in_a_process(begin, folder)
    assert were_run(folder) == [str(folder / "own.py")]
    return folder / "s"


@pytest.fixture
def begun(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the folder, beside which is nothing that it was made from."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    return Path(shutil.copytree(original, tmp_path / "s"))


def in_a_process(work: Callable[[], None], folder: Path) -> None:
    """Whose tables of steps it changes."""

    def there() -> None:
        os.chdir(folder)
        work()

    child = multiprocessing.get_context("fork").Process(target=there)
    child.start()
    child.join(TIMEOUT_S)
    assert child.exitcode == 0


def were_run(folder: Path) -> list[str]:
    """The files of own Python that were run."""
    marker = folder / "run"
    return marker.read_text().splitlines() if marker.exists() else []


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def change_plan(folder: Path, **changes: object) -> None:
    plan = json.loads((folder / PLAN_FILE).read_bytes())
    (folder / PLAN_FILE).write_text(
        json.dumps({name: each for name, each in {**plan, **changes}.items() if each != ...})
    )


def test_a_dry_run_of_a_folder_runs_nothing_that_it_has_kept(begun: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("sweep", begun, "--dry-run") == Exit.AS_EXPECTED
    assert capsys.readouterr().out.endswith("  mine/zookeeper/seed-1: about 10 s\n  mine/eager/seed-1: about 10 s\n")
    assert were_run(begun.parent) == []


def test_an_analysis_of_a_folder_runs_nothing_that_it_has_kept(begun: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("sweep", begun, "--analyse-only") == Exit.USAGE
    assert "no run is done" in capsys.readouterr().err
    assert were_run(begun.parent) == []


def test_the_plan_of_a_folder_is_the_one_that_was_made(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(
        'seeds = 2\nrepeats = 2\n[grid]\nscenario = ["join", "herd", "split-brain"]\ndesign = ["zookeeper", "eager"]\n'
        "members = [2, 16]\nrebalance.max.retries = [1, 4]\ntime-limit = 99.5\n"
    )
    plan = planned_sweep(scenario_or_grid(tmp_path / "grid.toml"))
    with sweep_folder(tmp_path / "s", recorded(plan, [], "embedded")):
        pass
    again = planned_before(tmp_path / "s", read_plan(tmp_path / "s"))
    assert plan.left_out
    assert (again.cells, again.runs, again.left_out, again.grid) == (plan.cells, plan.runs, plan.left_out, plan.grid)


def test_changed_python_is_not_run_and_named_and_nothing_changes(
    begun: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (begun / "own.py").open("a") as file:
        file.write("# one more line\n")
    before = files_in(begun)
    assert code_of("sweep", begun) == Exit.USAGE
    said = " ".join(capsys.readouterr().err.split())
    assert f"{begun}/own.py has been changed since the sweep began" in said
    assert "Restore it, or begin another sweep with --output" in said
    assert were_run(begun.parent) == []
    assert files_in(begun) == before


def test_python_that_is_gone_is_named(begun: Path) -> None:
    (begun / "own.py").unlink()
    with pytest.raises(EnvironmentFault, match=r"cannot read .*own\.py: No such file"):
        load_kept_files(begun, read_plan(begun))


def test_unchanged_python_is_run_from_the_folder(begun: Path) -> None:
    in_a_process(load, begun.parent)
    assert were_run(begun.parent) == [str(begun / "own.py")]


def quiet(folder: Path, text: str, named: str = "quiet.py") -> RecordedPlan:
    """The plan of a scenario with a plugin that adds nothing to the tables of this process."""
    (folder / named).parent.mkdir(exist_ok=True, parents=True)
    (folder / named).write_text(text)
    (folder / "mine.toml").write_text(f'name = "quiet"\nplugins = ["{named}"]\nsteps = [{{step = "form"}}]\n')
    return recorded(planned_sweep(scenario_or_grid(folder / "mine.toml")), ["rebalance-lab", "sweep"], "embedded")


def test_a_sweep_with_changed_python_is_another_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with sweep_folder(tmp_path / "s", quiet(tmp_path, "# one\n")):
        pass
    forget(monkeypatch)
    changed = quiet(tmp_path, "# two\n")
    with (
        pytest.raises(ConfigurationError, match=r"another plan: the plugin quiet\.py has been changed"),
        sweep_folder(tmp_path / "s", changed),
    ):
        pass
    assert (tmp_path / "s" / "quiet.py").read_text() == "# one\n"
    forget(monkeypatch)
    with sweep_folder(tmp_path / "s", quiet(tmp_path, "# one\n")):
        pass


@pytest.mark.parametrize("named", ["below/quiet.py", "../elsewhere/quiet.py"])
def test_a_plugin_in_another_folder_is_kept_and_only_its_copy_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    with sweep_folder(folder / "s", quiet(folder, "# kept\n", named)):
        pass
    for other in (folder / named, folder / "s" / named):
        other.resolve().parent.mkdir(exist_ok=True, parents=True)
        other.write_text("raise SystemExit('not the copy')\n")
    forget(monkeypatch)
    load_kept_files(folder / "s", read_plan(folder / "s"))
    (plugin,) = plugins.loaded()
    assert plugin.path == folder / "s" / "quiet.py"


def test_a_file_that_the_plan_has_no_record_of_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "s"
    with sweep_folder(folder, quiet(tmp_path, "# kept\n")):
        pass
    (folder / "quiet.py").write_text("raise SystemExit('it was run')\n")
    change_plan(folder, plugin_files=...)
    forget(monkeypatch)
    with pytest.raises(
        EnvironmentFault, match=r"no record of what .*quiet\.py was, so it is not run\. Repeat the command"
    ):
        load_kept_files(folder, read_plan(folder))


@pytest.mark.parametrize(
    "changes",
    [
        {"scenario_files": {"../../x": "0"}},
        {"plugin_files": {"../x.py": "0"}},
        {"plugin_files": {"antigravity": "0"}},
        {"seeds": 0},
        {"repeats": 2},
    ],
    ids=str,
)
def test_a_plan_that_leads_elsewhere_is_damaged(tmp_path: Path, changes: dict[str, object]) -> None:
    with sweep_folder(tmp_path / "s", quiet(tmp_path, "# kept\n")):
        pass
    change_plan(tmp_path / "s", **changes)
    with pytest.raises(EnvironmentFault, match=rf"{PLAN_FILE} is damaged"):
        planned_before(tmp_path / "s", read_plan(tmp_path / "s"))
