"""Readings of the servers' counters: in pairs, summed over an ensemble, compared with the trace."""

from __future__ import annotations

import pytest

from comparison.pipeline.figures.server_counters import compare_counters
from comparison.pipeline.measured import CounterReading, RunnerEvent, TracedOperations
from comparison.pipeline.silver.readings import reading_intervals


def reading(
    at: str,
    server: str,
    reads: int,
    writes: int,
    *,
    t_ns: int = 0,
    latency_ns: int | None = 0,
    namespace: str = "consumers",
) -> CounterReading:
    return CounterReading(
        at=at, server=server, namespace=namespace, reads=reads, writes=writes, t_ns=t_ns, latency_ns=latency_ns
    )


def traced(*, is_read: bool, n: int) -> TracedOperations:
    return TracedOperations(
        label="join-1", namespace="consumers", is_read=is_read, traced=n, sure=n - 1, possible=n + 1
    )


#: Three servers: the second one lags behind, the third has not counted anything yet.
ENSEMBLE = [
    reading("join-1:before", "a", 10, 100, t_ns=1, latency_ns=1),
    reading("join-1:before", "b", 20, 100, t_ns=2),
    reading("join-1:before", "c", 0, 1, t_ns=3, namespace="zookeeper"),
    reading("join-1:after", "a", 15, 107, t_ns=8, latency_ns=1),
    reading("join-1:after", "b", 26, 106, t_ns=8),
    reading("join-1:after", "c", 2, 7, t_ns=9),
    reading("join-1:after", "c", 0, 1, t_ns=9, namespace="zookeeper"),
]


def test_reads_of_all_servers_are_added_and_writes_are_the_highest_count() -> None:
    found = compare_counters(ENSEMBLE, [traced(is_read=True, n=13), traced(is_read=False, n=7)])
    assert [(c.label, c.namespace, c.reads, c.server, c.traced, c.traced_min, c.traced_max) for c in found] == [
        ("join-1", "consumers", False, 7, 7, 6, 8),
        ("join-1", "consumers", True, 13, 13, 12, 14),
    ]


def test_operations_on_the_root_are_counted_by_no_server() -> None:
    root = TracedOperations(label="join-1", namespace="", is_read=True, traced=1, sure=1, possible=1)
    found = compare_counters(ENSEMBLE, [traced(is_read=True, n=13), traced(is_read=False, n=7), root])
    assert {c.namespace for c in found} == {"consumers"}


def test_interval_lasts_from_the_end_of_the_readings_before_to_the_beginning_of_those_after() -> None:
    assert reading_intervals(ENSEMBLE) == {"join-1": (0, 3, 7, 9)}


def test_traced_operations_that_no_server_counted_are_reported() -> None:
    pair = [reading("join-1:before", "a", 1, 1), reading("join-1:after", "a", 1, 1)]
    assert [(c.reads, c.server, c.traced) for c in compare_counters(pair, [traced(is_read=True, n=2)])] == [
        (True, 0, 2)
    ]


@pytest.mark.parametrize(
    "readings",
    [
        [],
        [reading("end", "a", 9, 9)],
        ENSEMBLE[:3],
        ENSEMBLE[:4],  # one server is cut off at the second reading
        [reading("join-1:after", "a", 9, 9), reading("join-2:before", "a", 9, 9)],
        [reading("join-1:before", "a", 1, 1, latency_ns=None), reading("join-1:after", "a", 9, 9, latency_ns=None)],
    ],
)
def test_reading_without_its_pair_or_its_duration_is_ignored(readings: list[RunnerEvent]) -> None:
    assert (compare_counters(readings, []), reading_intervals(readings)) == ([], {})
