"""Figures of an invented run, for tests of code that reads them: all as expected unless stated otherwise."""

from __future__ import annotations

from typing import Any

from comparison.pipeline.analysis import compose
from comparison.results.metrics import METRICS
from comparison.results.outcomes import VerdictOutcome
from comparison.results.refusals import Refusal
from comparison.results.result import NotApplicable, Result
from comparison.results.run import Bystander, Change, Counted, Delivery, Run, Skipped, Standstill, Wait
from comparison.scenarios.plan.catalogue import CATALOGUE, judged_by


def counted(what: str, measured: int | None, model: int | None) -> Counted:
    return Counted(what=what, measured=measured, model=model, formula="N")


def change(name: str = "join", **given: Any) -> Change:
    """A change that settled after 300 ms."""
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
        "kept_shown": None,
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


def skipped(partition: int = 0, records: int = 5, committed: int | None = None) -> Skipped:
    """A reset to the log's end behind these records."""
    where = {"group": "g", "topic": "t", "partition": partition, "first": 10, "end": 10 + records}
    return Skipped(**where, records=records, reset="latest", committed=committed, by="m1/m1/0", at_ms=1_000.0)


def standstill(seconds: float, **causes: float) -> Standstill:
    where = {"group": "g", "topic": "t", "partition": 3}
    return Standstill(**where, from_ms=1_000.0, until_ms=1_000.0 + 1_000 * seconds, causes=causes)


def refused(place: str, error: str = "INCONSISTENT_GROUP_PROTOCOL", asked: int = 1, **given: Any) -> Refusal:
    """A member that was refused so often, and never got in."""
    usual = {"group": "g", "api": "JoinGroup", "at_ms": 1_000.0, "was_in": False, "admitted_ms": None}
    return Refusal(place=place, error=error, asked=asked, **{**usual, **given})


def run(scenario: str = "join", design: str = "zookeeper", **given: Any) -> Run:
    """A complete run without problems; figures (by name) and fields may be given."""
    metrics: dict[str, float | None] = dict.fromkeys(METRICS, 0.0)
    metrics |= dict.fromkeys(("final_read", "final_behind", "final_beyond", "converge_healed_ms"))
    metrics |= dict.fromkeys(name for name in METRICS if name.startswith("bystander_"))
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
        "verdict": VerdictOutcome.UNKNOWN,
    }
    if scenario in CATALOGUE:
        given["parameters"] = {
            "checks": list(judged_by(CATALOGUE[scenario])),
            **given.get("parameters", usual["parameters"]),
        }
    return Run(**{**usual, **given})


#: The group's sizes after the joins of `herd`.
HERD_SIZES = (3, 6, 11, 21)


def joins(design: str = "zookeeper", sizes: tuple[int, ...] = HERD_SIZES, more: int = 0, **given: Any) -> Run:
    """N^2 operations and N-1 notifications in zookeeper, 2N and none in others; `more` operations than in the model."""
    changes = []
    for number, n in enumerate(sizes, start=1):
        counts = {"zookeeper": [("reads", n * n - 10), ("writes", 10), ("notifications", n - 1)]}.get(
            design, [("JoinGroup", n), ("SyncGroup", n), ("generations", 1)]
        )
        exact = [counted(what, count + more * (what in ("reads", "JoinGroup")), count) for what, count in counts]
        notified = n - 1 if design == "zookeeper" else 0
        changes.append(change(round=number, members=n, counted=exact, notifications=notified))
    return run("herd", design, changes=changes, **given)


def waited(ms: float | None = 0.5, **given: Any) -> Bystander:
    """50 gets before a join; the 99th percentile is ten times the median."""
    usual: dict[str, Any] = {
        "change": "join",
        "round": 1,
        "members": 3,
        "stage": "before",
        "op": "getData",
        "answered": 50,
        "failed": 1,
        "p50_ms": ms,
        "p99_ms": ms and 10 * ms,
        "max_ms": ms and 20 * ms,
    }
    return Bystander(**{**usual, **given})


def herd() -> Result:
    """A result with `herd` in two designs: in zookeeper a bystander waits longer the larger the group is."""
    runs = [
        joins(
            design,
            bystanders=[
                waited(0.5 * (1 + factor * round_ * (stage == "during")), round=round_, members=n, stage=stage, op=op)
                for round_, n in enumerate(HERD_SIZES, start=1)
                for stage in ("before", "during")
                for op in ("getData", "setData")
            ],
        )
        for design, factor in (("zookeeper", 3), ("eager", 0))
    ]
    return compose(runs)


#: Five restarts: generations, stopped, moved, unowned partition-seconds, the slowest restart. The classic designs'
#: figures were measured on Kafka 4.1.1 with librdkafka.
RESTARTS = {
    "zookeeper": (10, 108, 46, 9.5, 1_500.0),
    "server": (10, 108, 46, 12.0, 1_700.0),
    "eager": (10, 108, 46, 13.9, 1_800.0),
    "static": (0, 0, 0, 13.0, 1_100.0),
    "cooperative": (15, 10, 23, 17.6, 2_600.0),
    "delayed": (15, 0, 0, 30.0, 4_200.0),
    "consumer": (10, 10, 22, 11.3, 2_400.0),
}


def restarted(design: str) -> Run:
    """A rolling restart of five members, with all figures in the first restart."""
    rounds, stopped, moved, unowned, slowest = RESTARTS[design]
    quiet = {"members": 5, "rounds": 0, "stopped": 0, "moved": 0, "unowned_partition_s": 0.0, "converge_ms": 900.0}
    costly = {"rounds": rounds, "stopped": stopped, "moved": moved, "unowned_partition_s": unowned}
    changes = [change("form")] + [
        change("restart", **{**quiet, "round": number, "stalled_s": 0.0, "from_ms": 1_000.0 * number})
        for number in range(2, 6)
    ]
    changes.insert(1, change("restart", **{**quiet, **costly, "converge_ms": slowest, "stalled_s": 0.0}))
    delivery = Delivery(from_ms=0.0, bin_ms=100.0, records=[20] * 60)
    return run("rolling-restart", design, changes=changes, delivery=delivery, verdict=VerdictOutcome.EXPECTED)


def slowed(design: str) -> Run:
    """m2 is slow from the first second on, when another member joins."""
    stands_still = design in ("server", "eager", "static")
    records = [20] * 20 + ([0] * 40 if stands_still else [15] * 40) + [20] * 20
    wait = {"generation": 3, "from_ms": 1_100.0, "waited_for": "m2", "gone": False, "waiting": 3}
    waits = [Wait(**wait, longest_ms=5_000.0, total_ms=14_000.0)] if design not in ("zookeeper", "consumer") else []
    stalled_s = 4.8 if stands_still else 0.0
    slow = change("slow", members=None, from_ms=0.0, healed_ms=7_000.0, target="m2", stalled_s=0.0)
    return run(
        "slow-member",
        design,
        changes=[slow, change(from_ms=50.0, stalled_s=stalled_s)],
        stalled_s=stalled_s,
        waits=waits,
        delivery=Delivery(from_ms=0.0, bin_ms=100.0, records=records),
        verdict=VerdictOutcome.EXPECTED,
    )


def every_design() -> Result:
    """A result with a rolling restart in all designs, and a slow member in all but one."""
    runs = [*(restarted(design) for design in RESTARTS), *(slowed(design) for design in RESTARTS if design != "server")]
    left_out = NotApplicable(scenario="slow-member", design="server", reason="no member is slow")
    return compose(runs, [left_out])
