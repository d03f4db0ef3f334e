"""Every scenario as a failure-injection test: really run and analysed, and checked by its verdicts.

Verify, for each scenario under each design, what the design guarantees, that an expected historical fault occurs, and
the exact counts of the model.

Setup: an embedded ZooKeeper (an ensemble of three where links are cut), two brokers, members as processes, a producer
that numbers its records; a separate folder for each run.

Steps: those of `comparison.scenarios.plan.catalogue`; then drain, final reads, stop.

Expectation per failure type: `comparison.pipeline.figures.verdicts`, each of which must be `as expected`. A run that
does not finish is a failure of the test, not an `unknown`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from comparison.scenarios.plan.catalogue import CATALOGUE
from kernel.designs import DESIGN_NAMES
from kernel.trace.reader import read_trace
from kernel.zookeeper.embedded import EmbeddedZooKeeper
from tests.support.runs.agreement import disagreements, figures_of
from tests.support.runs.cells import CELLS, sizes_of
from tests.support.runs.experiments import Laboratory

pytestmark = pytest.mark.faults

SEED = 20120517
#: More seeds where a race or the phase of a timer decides, in the designs whose authorities differ.
MORE_SEEDS = (1, 7)
RACES = ("mass-start", "pause", "split-brain", "split-brain-ensemble")
#: What CI runs: each design at least once. `make test` has others simulated (tests/comparison/simulation/
#: test_catalogue.py), and `make test-faults` runs every scenario in every design.
IN_CI = {
    "split-brain": ("zookeeper", "consumer"),
    "split-brain-ensemble": ("eager",),
    "crash": ("delayed",),
    "pause": ("server",),
    "join": ("cooperative",),
    "rolling-restart": ("static",),
    "slow-member": ("eager",),
    "coordinator-failover": ("eager",),
    "add-partitions": ("consumer",),
}
RUNS = [(scenario, design) for scenario, design in CELLS if design in IN_CI.get(scenario, ())]
#: Of whose runs terminal, report, diagram, `describe`, Perfetto, playground and result.json have to say the same.
AGREED = ("pause", "split-brain", "rolling-restart", "slow-member")
#: Those whose default timers take minutes.
MINUTES = {("unnoticed-partitions", "eager"), ("unnoticed-partitions", "cooperative")}


def marks_of(cell: tuple[str, str]) -> list[pytest.MarkDecorator]:
    """What leaves a cell out of CI, or of all runs but the long ones."""
    if cell in MINUTES:
        return [pytest.mark.long]
    return [] if cell in RUNS else [pytest.mark.catalogue]


RACING = [cell for cell in CELLS if cell[0] in RACES and cell[1] in ("zookeeper", "server", "eager")]


@pytest.fixture(scope="module")
def seed(given_seed: int | None) -> int:
    return SEED if given_seed is None else given_seed


def test_every_design_is_among_what_ci_runs() -> None:
    assert {design for _, design in RUNS} == set(DESIGN_NAMES)
    assert len(RUNS) == sum(map(len, IN_CI.values()))


@pytest.mark.parametrize(
    ("scenario", "design"), [pytest.param(*cell, marks=marks_of(cell), id=" ".join(cell)) for cell in CELLS]
)
def test_scenario_ends_with_every_verdict_as_expected(
    scenario: str, design: str, seed: int, laboratory: Laboratory, tmp_path: Path
) -> None:
    found = laboratory.unexpected(tmp_path, scenario, design, seed=seed, **sizes_of(scenario))
    assert not found, f"seed {seed}"
    if scenario in AGREED:
        ((_, said),) = figures_of(*laboratory.analysed)
        assert disagreements(said) == [], f"seed {seed}"


@pytest.mark.parametrize(
    "scenario", ["pause", pytest.param("crash", marks=pytest.mark.long), pytest.param("join", marks=pytest.mark.long)]
)
def test_run_on_an_external_zookeeper_is_judged_by_an_observer(
    scenario: str, zookeeper: EmbeddedZooKeeper, laboratory: Laboratory, tmp_path: Path
) -> None:
    """Its transaction log cannot be read; the offsets that it shows are merged with those that members know of."""
    address = zookeeper.connect_string
    assert not laboratory.unexpected(tmp_path, scenario, "zookeeper", seed=SEED, zookeeper=address), f"seed {SEED}"


@pytest.mark.long
@pytest.mark.parametrize(
    ("settings", "outcomes"), [({}, "conflict"), ({"fix.sync.before.reads": "true"}, "ok")], ids=["default", "sync"]
)
def test_member_at_the_lagging_server_fails_its_first_attempt_unless_it_syncs(
    settings: dict[str, str], outcomes: str, laboratory: Laboratory, tmp_path: Path
) -> None:
    """Attempts of other members may fail in both: what they claim is not always released yet."""
    assert not laboratory.unexpected(tmp_path, "stale-view", "zookeeper", seed=SEED, settings=settings), f"seed {SEED}"
    behind = f"m{CATALOGUE['stale-view'].defaults.members + 1}"
    path = tmp_path / "latest" / "stale-view" / "zookeeper" / "trace" / f"{behind}.jsonl"
    ended = [event["outcome"] for event in read_trace(path).events if event["kind"] == "attempt_ended"]
    assert ended[0] == outcomes


@pytest.mark.long
@pytest.mark.parametrize(
    ("scenario", "settings"),
    [("rebalance-failed", {"rebalance.backoff.ms": "2000"}), ("ghost-owner", {"fix.checked.release": "true"})],
    ids=["rebalance-failed", "ghost-owner"],
)
def test_other_settings_take_the_fault_away(
    scenario: str, settings: dict[str, str], laboratory: Laboratory, tmp_path: Path
) -> None:
    assert not laboratory.unexpected(tmp_path, scenario, "zookeeper", seed=SEED, settings=settings), f"seed {SEED}"


@pytest.mark.long
@pytest.mark.parametrize("seed", MORE_SEEDS)
@pytest.mark.parametrize(("scenario", "design"), RACING, ids=[" ".join(run) for run in RACING])
def test_races_end_with_every_verdict_as_expected_under_any_seed(
    scenario: str, design: str, seed: int, laboratory: Laboratory, tmp_path: Path
) -> None:
    assert not laboratory.unexpected(tmp_path, scenario, design, seed=seed), f"seed {seed}"


@pytest.mark.long
@pytest.mark.parametrize(
    ("scenario", "design", "parameters"),
    [
        ("join", "zookeeper", {"topics": 2, "streams": 2}),
        ("join", "eager", {"topics": 2, "streams": 2}),
        ("crash", "eager", {"preset": "kafka-defaults"}),
    ],
    ids=lambda value: " ".join(f"{name}={each}" for name, each in value.items()) if isinstance(value, dict) else value,
)
def test_other_parameters_than_the_defaults_end_with_nothing_unexpected(
    scenario: str, design: str, parameters: dict[str, object], laboratory: Laboratory, tmp_path: Path
) -> None:
    found = laboratory.unexpected(tmp_path, scenario, design, seed=SEED, **parameters)
    # What the model does not cover is unknown, which is no fault.
    assert not {check: text for check, text in found.items() if text.startswith("not as expected")}, f"seed {SEED}"
