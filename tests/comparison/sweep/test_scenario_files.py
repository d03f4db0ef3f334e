"""Sweeps of scenarios that are files: found beside the grid, kept with the plan, refused when they have changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from comparison.scenarios.plan.catalogue import scenario_named
from comparison.sweep.grid_file import scenario_or_grid
from comparison.sweep.plan import planned_sweep
from comparison.sweep.run import kept_as, load_kept_files, read_plan, sweep_folder
from comparison.sweep.state import RecordedPlan, recorded
from kernel.errors import ConfigurationError, EnvironmentFault, SeveralErrors
from tests.support.commands.complaints import place_first


def text_of(name: str, **defaults: int) -> str:
    """A scenario that only forms a group."""
    given = "".join(f"defaults.{key} = {value}\n" for key, value in defaults.items())
    return f'name = "{name}"\n{given}[[steps]]\nstep = "form"\n'


def plan_of(path: Path) -> RecordedPlan:
    return recorded(planned_sweep(scenario_or_grid(path)), ["rebalance-lab"], "embedded")


def test_a_scenario_is_found_beside_the_grid(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(text_of("beside"))
    (tmp_path / "grid.toml").write_text('[grid]\nscenario = ["join", "mine.toml"]\n')
    assert scenario_or_grid(tmp_path / "grid.toml").axes["scenario"] == ("join", "beside")


def test_what_is_wrong_with_a_scenario_is_reported_with_its_own_lines(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(text_of("wrong") + "fork = 1\n")
    (tmp_path / "grid.toml").write_text('[grid]\nscenario = "mine.toml"\n')
    with pytest.raises(SeveralErrors) as caught:
        scenario_or_grid(tmp_path / "grid.toml")
    assert place_first(caught.value.texts[0]).startswith(
        f"{tmp_path}/mine.toml, line 4, column 1: form: unknown parameter 'fork'"
    )


def test_a_scenario_alone_is_a_sweep(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text(text_of("alone"))
    assert [run.folder for run in plan_of(tmp_path / "mine").runs] == ["alone/zookeeper/seed-1", "alone/eager/seed-1"]


def test_a_sweep_keeps_its_scenarios_and_knows_them_again(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(text_of("kept", members=3))
    plan = plan_of(tmp_path / "mine.toml")
    with sweep_folder(tmp_path / "s", plan):
        pass
    (tmp_path / "mine.toml").unlink()
    other = read_plan(tmp_path / "s")
    load_kept_files(tmp_path / "s", other)
    assert scenario_named("kept").defaults.members == 3
    assert other == plan


def test_a_scenario_that_has_been_changed_is_another_sweep(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text_of("changed"))
    with sweep_folder(tmp_path / "s", plan_of(path)):
        pass
    path.write_text(text_of("changed") + "# another\n")
    with (
        pytest.raises(ConfigurationError, match="another plan: the file of scenario changed has been changed"),
        sweep_folder(tmp_path / "s", plan_of(path)),
    ):
        pass
    (tmp_path / "s" / kept_as("changed")).write_text(text_of("changed") + "# another\n")
    with pytest.raises(
        EnvironmentFault, match=r"changed\.scenario\.toml has been changed since .* Restore it, or begin another sweep"
    ):
        load_kept_files(tmp_path / "s", read_plan(tmp_path / "s"))
