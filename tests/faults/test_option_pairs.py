"""Every two options of `run` together: as expected, or refused at once with a reason.

Verify, for a covering array over the options, that no two of them make a run that fails, hangs or is judged wrongly.

Setup: short scenarios (one join, leave or crash), real processes; a ZooKeeper for the run, or the tests' shared one.

Expectation: planning refuses the combination with a `ConfigurationError` that says what to do, or the run completes
with every verdict as expected. Only what such a combination cannot show may be unknown (`NOT_SHOWN`).
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from comparison.pipeline.figures.checks import NONE_PREDICTED
from comparison.pipeline.figures.group_checks import NONE_KEPT
from comparison.scenarios.plan.applicability import check_applicability
from comparison.scenarios.run.experiments import plan
from kernel.designs import DESIGN_NAMES
from kernel.errors import ConfigurationError
from kernel.zookeeper.embedded import EmbeddedZooKeeper
from tests.faults.pairs import covering_rows
from tests.support.runs.experiments import Laboratory

pytestmark = pytest.mark.faults

SEED = 20120517
STRATEGY = "partition.assignment.strategy"
OPTIONS: dict[str, tuple[object, ...]] = {
    "design": DESIGN_NAMES,
    "settings": (
        {},
        {STRATEGY: "roundrobin"},
        {"auto.commit.interval.ms": "200", "num.partitions": "3"},
        {"fix.commit.fence": "epoch"},
        {"heartbeat.interval.ms": "5000"},
        {"session.timeout.ms": "4000"},
    ),
    "scenario": ("join", "leave", "crash"),
    "members": (1, 3, 6),
    "partitions": (1, 5, 12),
    "topics": (1, 2),
    "streams": (1, 2),
    "rate": (2, 100),
    "brokers": (1, 3),
    "preset": ("equal-timers", "kafka-defaults"),
    "session_timeout_ms": (None, 2000),
    "zookeeper": ("embedded", "running"),
}
ROWS = covering_rows(OPTIONS)
#: What some combinations cannot show: the model does not cover them, or there are too few partitions to keep one.
NOT_SHOWN = {"counts": f"unknown: {NONE_PREDICTED}", "kept partitions never stop": f"unknown: {NONE_KEPT}"}
#: Otherwise a row would show nothing but Connect's five minutes.
SHORT_DELAY = {"scheduled.rebalance.max.delay.ms": "2000"}


def named(row: dict[str, Any]) -> str:
    return " ".join(str(value) for value in row.values())


def given(row: dict[str, Any]) -> dict[str, object]:
    """The parameters of a row, by their names in a plan."""
    settings = {**row["settings"], **(SHORT_DELAY if row["design"] == "delayed" else {})}
    return {
        **{name: row[name] for name in row if name not in ("design", "scenario", "zookeeper")},
        "settings": settings,
    }


def refusal(row: dict[str, Any]) -> str:
    """Why a row is refused before anything starts; '' if it is accepted."""
    try:
        check_applicability([row["design"]], row["settings"])
        plan([row["scenario"]], [row["design"]], given(row))
    except ConfigurationError as error:
        return str(error)
    return ""


def softened(row: dict[str, Any]) -> dict[str, Any]:
    """A refused row with other settings, or with more than one member, so that its other pairs are run."""
    without = {**row, "settings": {}}
    return without if not refusal(without) else {**without, "members": 3}


REFUSED = [row for row in ROWS if refusal(row)]
#: Each once: several refused rows may become the same row.
FEASIBLE = list({named(row): row for row in (softened(row) if row in REFUSED else row for row in ROWS)}.values())
#: What is run at every change, in addition to all other scenarios: one row for each of two designs, with sessions that
#: a busy machine's pauses do not end, since counts are exact.
AT_EVERY_CHANGE = [
    next(row for row in FEASIBLE if row["design"] == design) | {"session_timeout_ms": 10_000}
    for design in ("zookeeper", "eager")
]


def test_rows_cover_every_two_options() -> None:
    for first, second in combinations(OPTIONS, 2):
        met = [(row[first], row[second]) for row in ROWS]
        assert all((a, b) in met for a in OPTIONS[first] for b in OPTIONS[second]), (first, second)
    assert len(ROWS) < 60


@pytest.mark.parametrize("row", REFUSED, ids=named)
def test_incompatible_options_are_refused_with_a_remedy(row: dict[str, Any]) -> None:
    reason = refusal(row)
    assert any(
        word in reason.lower() for word in ("use --", "leave it out", "leave the setting out", "must be below")
    ), reason


@pytest.mark.parametrize(
    "row",
    [
        *(pytest.param(row, id=named(row)) for row in AT_EVERY_CHANGE),
        *(pytest.param(row, marks=pytest.mark.long, id=named(row)) for row in FEASIBLE),
    ],
)
def test_compatible_options_end_with_every_verdict_as_expected(
    row: dict[str, Any], zookeeper: EmbeddedZooKeeper, laboratory: Laboratory, tmp_path: Path
) -> None:
    address = zookeeper.connect_string if row["zookeeper"] == "running" else "embedded"
    found = laboratory.unexpected(tmp_path, row["scenario"], row["design"], seed=SEED, zookeeper=address, **given(row))
    assert not {check: reason for check, reason in found.items() if reason != NOT_SHOWN.get(check)}
