"""Figures beside their twin, on runs in which everything happens; and verdicts that no trace may break."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from comparison.pipeline.bronze.runs import TraceRun
from comparison.pipeline.figures.assemble import assemble
from comparison.pipeline.figures.judging import judge
from comparison.pipeline.gold.run import measure
from comparison.results.metrics import METRICS
from comparison.results.outcomes import VerdictOutcome, worst
from comparison.results.run import Run
from comparison.scenarios.plan.catalogue import CATALOGUE
from kernel.designs import DESIGN_NAMES
from tests.support.oracle import figures as oracle_figures
from tests.support.properties import examples
from tests.support.trace.strategies import traces
from tests.support.trace.traces import tables, traced_run

SLOW = settings(deadline=None, derandomize=True, max_examples=examples(60), suppress_health_check=list(HealthCheck))
RUNS = st.builds(
    lambda design, scenario: traced_run(design, scenario=scenario),
    st.sampled_from(DESIGN_NAMES),
    st.sampled_from([*CATALOGUE, "of a later version"]),
)


@SLOW
@given(RUNS, traces())
def test_figures_are_those_of_the_twin(run: TraceRun, events: list[dict[str, Any]]) -> None:
    measured, _ = measure(run, tables(events, numbered=True))
    found = assemble(run, measured)
    assert measured.span is not None
    whole = oracle_figures.counts_of(events, -(1 << 61), measured.span.end_ns)
    assert {name: found.metrics[name] for name in whole if name in METRICS} == {
        name: count for name, count in whole.items() if name in METRICS
    }
    for window, change in zip(measured.changes, found.changes, strict=True):
        counts = oracle_figures.counts_of(events, window.from_ns, window.until_ns)
        assert change.notifications == counts["notifications"]
        assert (change.attempts, change.attempts_failed) == (counts["attempts"], counts["attempts_failed"])
        assert change.zk_reads == counts["zk_reads"] + counts["zk_reads_failed"]
        assert change.zk_writes + change.zk_commits == counts["zk_writes"] + counts["zk_writes_failed"]
        assert change.zk_commits == counts["zk_commits"]
        assert change.stalled_s == oracle_figures.stalled_s(events, measured, window)
    assert found.waits == oracle_figures.waits_of(events, measured.rounds, measured.phases)


@SLOW
@given(RUNS, traces(), st.booleans())
def test_every_run_is_judged_and_conforms_to_the_schema(
    run: TraceRun, events: list[dict[str, Any]], is_damaged: bool
) -> None:
    measured, _ = measure(run, tables(events, numbered=True))
    measured.problems = ["m1.jsonl is empty"] if is_damaged else measured.mistakable
    found = judge(assemble(run, measured))
    assert found.metrics.keys() == METRICS.keys()
    assert found.verdict == worst(verdict.outcome for verdict in found.verdicts)
    if found.problems:
        assert {verdict.outcome for verdict in found.verdicts} <= {VerdictOutcome.UNKNOWN}
        assert all(verdict.reason.startswith(found.problems[0]) for verdict in found.verdicts)
    if found.outcome != "complete":
        assert VerdictOutcome.EXPECTED not in {each.outcome for each in found.verdicts if each.kind != "history"}
    again = msgspec.json.decode(json.dumps(json.loads(msgspec.json.encode(found))), type=Run)
    assert again == found
