"""The structure of result.json is published, and its figures are those that the pipeline measures."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from comparison.results.metrics import CHANGE_METRICS, METRICS
from comparison.results.result import RESULT, SCHEMA_PATH, formatted, read_result, schema
from kernel.platform.json_file import DamagedFile
from tests.support.runs.results import change, every_design


def test_published_schema_is_up_to_date() -> None:
    assert json.loads(SCHEMA_PATH.read_text()) == json.loads(msgspec.json.encode(schema())), (
        "run: python -m comparison.results.result"
    )


def test_every_figure_of_a_change_is_an_attribute_of_one() -> None:
    assert [name for name in CHANGE_METRICS if not hasattr(change(), name)] == []


def test_a_row_is_part_of_a_row_that_is_shown_as_well() -> None:
    labelled = [metric for metric in METRICS.values() if metric.label]
    assert not labelled[0].is_part
    assert all(metric.label for metric in METRICS.values() if metric.is_part)


@pytest.mark.parametrize(("version", "advice"), [(99, "use the version that wrote it"), (1, "Analyse the run again")])
def test_other_version_of_the_result_is_refused(tmp_path: Path, version: int, advice: str) -> None:
    path = tmp_path / RESULT
    path.write_bytes(formatted({"schema_version": version}))
    with pytest.raises(DamagedFile, match=f"schema version {version}.*{advice}"):
        read_result(path)


def test_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / RESULT
    path.write_bytes(formatted(every_design()))
    assert read_result(path) == every_design()
    path.write_bytes(path.read_bytes().replace(b'"verdict": "as expected"', b'"verdict": "good"'))
    with pytest.raises(DamagedFile, match="Invalid enum value"):
        read_result(path)


@pytest.mark.parametrize(
    ("converge_ms", "healed_ms", "expected"),
    [(6_700.0, 5_000.0, 1_700.0), (3_000.0, 5_000.0, 0.0), (3_000.0, 0.4, 3_000.0), (300.0, None, 300.0)],
)
def test_settling_counts_from_the_heal_of_a_fault_that_lasted(
    converge_ms: float, healed_ms: float | None, expected: float
) -> None:
    assert change("freeze", converge_ms=converge_ms, healed_ms=healed_ms).converge_healed_ms == expected


def test_requests_at_the_authority_are_those_of_the_coordinator_and_all_operations_on_zookeeper() -> None:
    asked = {"JoinGroup": 2, "ConsumerGroupHeartbeat": 5, "Heartbeat": 40, "Fetch": 900}
    assert change(requests=asked, zk_reads=10, zk_writes=3).authority_requests == 20
