"""A run's figures made up for tests of what reads them: everything kept, unless said otherwise."""

from __future__ import annotations

from typing import Any

from comparison.pipeline.result import METRICS, Change, Counted, Outcome, Run


def counted(what: str, measured: int | None, model: int | None) -> Counted:
    return Counted(what=what, measured=measured, model=model, formula="N")


def change(name: str = "join", **given: Any) -> Change:
    """One that settled after 300 ms."""
    usual: dict[str, Any] = {
        "change": name,
        "round": 1,
        "members": 5,
        "from_ms": 1_000.0,
        "settled_ms": 310.0,
        "healed_ms": None,
        "converge_ms": 300.0,
        "takeover_ms": 40.0,
        "target": "",
        "rounds": 1,
        "unowned_partition_s": 1.5,
        "unowned_longest_s": 0.5,
        "two_delivering_partition_s": 0.0,
        "moved": 3,
        "moved_minimum": 2,
        "stopped": 12,
        "stopped_kept": 0,
        "kept": None,
        "kept_delivered": None,
        "stalled_s": 0.1,
        "attempts": 5,
        "attempts_failed": 0,
        "notifications": 4,
        "zk_reads": 119,
        "zk_writes": 25,
        "zk_commits": 12,
        "requests": {},
        "counted": [],
    }
    return Change(**{**usual, **given})


def run(scenario: str = "join", design: str = "zookeeper", **given: Any) -> Run:
    """A complete run in which nothing went wrong; figures (by their names) and fields may be given."""
    metrics: dict[str, float | None] = dict.fromkeys(METRICS, 0.0)
    metrics |= dict.fromkeys(("final_read", "final_behind", "final_beyond"))
    metrics |= {"delivered": 1_000.0, "duplicates": 10.0, "commits": 60.0, "converge_ms": 300.0}
    metrics |= {name: given.pop(name) for name in METRICS.keys() & given.keys()}
    usual: dict[str, Any] = {
        "path": f"/runs/{scenario}/{design}",
        "scenario": scenario,
        "design": design,
        "implementations": ["ours"],
        "seed": 1,
        "outcome": "complete",
        "error": "",
        "drained": True,
        "parameters": {"members": 4, "partitions": 12, "topics": 1, "streams": 1, "brokers": 2, "rate": 200},
        "duration_s": 6.0,
        "tolerance_ms": 1.0,
        "events": 2_000,
        "quarantined": {},
        "missing_events": 0,
        "metrics": metrics,
        "requests": {},
        "zk_operations": {},
        "phases": [],
        "changes": [change()],
        "waits": [],
        "delivery": None,
        "counters": [],
        "coordinators": [],
        "overlaps": [],
        "failures": [],
        "verdicts": [],
        "verdict": Outcome.UNKNOWN,
    }
    return Run(**{**usual, **given})
