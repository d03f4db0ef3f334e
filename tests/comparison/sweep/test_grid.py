"""Grids from files and from the command line, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from comparison.sweep.grid import Grid, axes_from, axis, complete, count
from comparison.sweep.grid_file import parse_grid, scenario_or_grid
from kernel.designs import DESIGN_NAMES
from kernel.errors import ConfigurationError, EnvironmentFault
from tests.support.commands.complaints import place_first

EXAMPLES = sorted((Path(__file__).parents[3] / "docs" / "sweeps").glob("*.toml"))


def test_options_name_axes_with_their_values_in_order() -> None:
    given = ["scenario=join", "members=8,2,4,2", "rebalance.max.retries=1,4", "auto.commit.enable=true"]
    assert axes_from(given) == {
        "scenario": ("join",),
        "members": (8, 2, 4),
        "rebalance.max.retries": ("1", "4"),
        "auto.commit.enable": ("true",),
    }


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ("2..5", (2, 3, 4, 5)),
        ("2..9+3", (2, 5, 8)),
        ("2..16*2", (2, 4, 8, 16)),
        ("3..50*4", (3, 12, 48)),
        ("7..7", (7,)),
    ],
)
def test_range_becomes_its_values(given: str, values: tuple[int, ...]) -> None:
    assert axis("members", [given]) == values
    assert axis("rebalance.backoff.ms", [given]) == tuple(map(str, values))


def test_whole_numbers_have_no_fraction() -> None:
    assert [str(value) for value in axis("time-limit", ["60", 2.0, 2.5])] == ["60", "2", "2.5"]


def test_all_designs_may_be_named_at_once() -> None:
    assert axis("design", ["all"]) == DESIGN_NAMES
    assert axis("design", ["eager", "zookeeper"]) == ("zookeeper", "eager")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("members", "--grid 'members' is not an axis. Use KEY=VALUE"),
        ("=2", "is not an axis"),
        ("members=", "members has no values"),
        ("members=two", "members=two: must be a whole number"),
        ("members=2.5", "members=2.5: must be a whole number"),
        ("members=0", "members is 0: must be between 1 and 200"),
        ("members=5..2", "members=5..2 is no range"),
        ("members=0..8*2", "is no range"),
        ("members=2..8*1", "is no range"),
        ("members=1..999999999", "has more than 20000 values"),
        ("member=2", "unknown axis 'member'. Did you mean 'members'"),
        ("colour=red", "unknown axis 'colour'. Use one of scenario"),
        ("scenario=joyn", "unknown scenario 'joyn'"),
        ("design=zookeper", "unknown design 'zookeper'"),
        ("preset=none", "unknown preset 'none'"),
        ("rebalance.max.retires=1", "Did you mean 'rebalance.max.retries'"),
        ("rebalance.max.retries=many", "must be a whole number"),
        ("group.id=g", "group.id is set by the run itself"),
        ("fetch.max.wait.ms.x=1", "unknown setting"),
    ],
)
def test_wrong_axis_is_refused_with_the_remedy(given: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        axes_from([given])
    assert message in str(refused.value)


def test_axis_given_twice_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"--grid members is given twice\. .* members=V1,V2"):
        axes_from(["members=2", "members=4"])


def test_setting_that_no_part_implements_is_refused_as_an_axis() -> None:
    with pytest.raises(ConfigurationError, match="does not implement, so that all its values would be alike"):
        axis("client.dns.lookup", ["use_all_dns_ips"])


def test_scenario_is_needed_and_designs_have_a_default() -> None:
    with pytest.raises(ConfigurationError, match="the grid has no scenario"):
        complete(Grid(axes={"members": (2,)}))
    grid = complete(Grid(axes={"members": (2,), "rebalance.max.retries": ("4",), "scenario": ("join",)}))
    assert list(grid.axes) == ["scenario", "design", "members", "rebalance.max.retries"]
    assert grid.axes["design"] == ("zookeeper", "eager")


@pytest.mark.parametrize("value", [0, 201, True, 2.0, "3", None])
def test_count_out_of_range_is_refused(value: object) -> None:
    with pytest.raises(ConfigurationError, match=r"seeds is .* between 1 and 200"):
        count("seeds", value)


FILE = """
seeds = 3
seed = 7
repeats = 2
metrics = ["converge_ms", "attempts_failed"]

[grid]
scenario = "crash"      # one value needs no list
design = ["eager", "zookeeper"]
members = "2..8*2"
session-timeout = 3000
rebalance.max.retries = [1, "2"]
"rebalance.backoff.ms" = [250]
auto.commit.enable = true
"""


def test_file_gives_axes_and_counts() -> None:
    grid = parse_grid(FILE, "grid.toml")
    assert (grid.seeds, grid.seed, grid.repeats, grid.factor) == (3, 7, 2, 6)
    assert grid.metrics == ("converge_ms", "attempts_failed")
    assert grid.axes == {
        "scenario": ("crash",),
        "design": ("zookeeper", "eager"),
        "members": (2, 4, 8),
        "session-timeout": (3000,),
        "rebalance.max.retries": ("1", "2"),
        "rebalance.backoff.ms": ("250",),
        "auto.commit.enable": ("true",),
    }


def test_command_line_replaces_axes_and_counts_of_the_file() -> None:
    grid = parse_grid(FILE, "grid.toml").overridden({"members": (16,)}, seeds=1, seed=None)
    assert grid.axes["members"] == (16,)
    assert grid.axes["scenario"] == ("crash",)
    assert (grid.seeds, grid.seed) == (1, 7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[grid\nscenario = 'join'", "grid.toml, line 1, column 6: not TOML: Expected ']'"),
        (
            "seeds = 3\nseds = 2\n[grid]\nscenario = 'join'",
            "grid.toml, line 2: unknown key 'seds'. Did you mean 'seeds'",
        ),
        ("members = 4", "line 1: unknown key 'members'. Use one of seed, seeds"),
        ("seeds = 3", "grid.toml: no axes. Add a table [grid]"),
        ("seeds = 3\n\n[grid]", "grid.toml, line 3: no axes"),
        ("grid = 3", "line 1: no axes"),
        ("[grid]\nscenario = 'join'\nmembers = [2, 'x']", "line 3: members=x: must be a whole number"),
        ("[grid]\nscenario = 'join'\nmembers = [[2]]", "line 3: members has [2]: a value must be a number"),
        ("[grid]\nmembers = 2000-01-01", "line 2: members has datetime.date(2000, 1, 1)"),
        ("[grid]\nrebalance.max.retires = 1", "line 2: unknown setting 'rebalance.max.retires'"),
        ('[grid]\n"rebalance.max.retires" = 1', "line 2: unknown setting 'rebalance.max.retires'"),
        ("[grid.rebalance.max]\nretires = 1", "line 2: unknown setting 'rebalance.max.retires'"),
        ("seeds = 0\n[grid]\nscenario = 'join'", "line 1: seeds is 0: must be a whole number between 1 and 200"),
        ("metrics = 3\n[grid]\nscenario = 'join'", "line 1: metrics must be a list of names"),
        ("metrics = ['lag']\n[grid]\nscenario = 'join'", "line 1: unknown metric 'lag'. Use one of converge_ms"),
    ],
)
def test_wrong_file_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_grid(text, "grid.toml")
    assert message in place_first(str(refused.value))


def test_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match=r"no such file or folder .*none.toml"):
        scenario_or_grid(tmp_path / "none.toml")
    (tmp_path / "grid.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match=r"not UTF-8 text \(.*grid.toml\)"):
        scenario_or_grid(tmp_path / "grid.toml")


def test_examples_can_be_planned() -> None:
    assert EXAMPLES
    for path in EXAMPLES:
        complete(scenario_or_grid(path))
