"""Counts by name, outcome and window; phases of rebalances; delivered records over time."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa

from comparison.pipeline.bronze.tables import rows_of
from comparison.pipeline.gold.run import measure
from comparison.pipeline.silver import counts
from comparison.pipeline.silver.arrays import ENCODED_TEXT
from comparison.pipeline.silver.context import Window
from comparison.pipeline.silver.readings import ReadingInterval
from comparison.pipeline.silver.rounds import phases_of
from comparison.results.counts import area_of
from comparison.results.keys import WHOLE_RUN
from kernel.zookeeper import errors
from kernel.zookeeper.errors import ZooKeeperError
from tests.support.trace.traces import MS, e, staged, tables, traced_run

A = {"member": "a", "stream": 0}


def op(
    at_ms: float, name: str, path: str, *, error: str = "", step: str = "", process: str = "m1", since: float | None = 0
) -> dict:
    """An operation answered at a time, and sent `since` milliseconds before; None: not sent."""
    latency_ns = None if since is None else int(since * MS)
    fields = {"ok": not error, "error": error, "step": step, "latency_ns": latency_ns}
    return e(at_ms, process, "zk_op", op=name, path=path, zxid=1, **fields)


def change(at_ms: float, name: str = "join") -> dict:
    return e(at_ms, "runner", "change_started", change=name, round=1, members=3)


def test_area_of_a_path() -> None:
    areas = {
        "/consumers/g/ids": "ids",
        "/consumers/g/ids/c1": "ids",
        "/consumers/g/owners/t/0": "owners",
        "/chroot/consumers/g/offsets/t/0": "offsets",
        "/consumers/g": "consumers",
        "/brokers/ids/1": "brokers",
        "/brokers/topics/t": "topics",
        "/controller": "controller",
        "": "",
    }
    assert {path: area_of(path) for path in areas} == areas


def test_operations_are_counted_in_the_window_they_fall_into() -> None:
    cases = {
        "join": [
            op(1, "getData", "/brokers/ids/1", step="R1"),
            change(2),
            op(2, "getData", "/brokers/ids/1", step="R1"),
            op(3, "create", "/consumers/g/owners/t/0", error="NodeExists", step="R11"),
            op(4, "getChildren", "/brokers/ids", process="broker-1"),
            e(5, "m1", "request_answered", api="Fetch", version=4, correlation=1, broker=1, error=""),
            e(
                6,
                "m1",
                "request_answered",
                api="Heartbeat",
                version=4,
                correlation=2,
                broker=1,
                error="NOT_COORDINATOR",
            ),
            e(7, "m1", "attempt_ended", attempt=1, outcome="conflict", **A),
            e(9, "runner", "stage_entered", stage="final"),
            op(9, "create", "/consumers", step="late"),
        ]
    }

    found = {
        (row.window, row.role, row.kind, row.name, row.outcome, row.step, row.area): row.n
        for row in staged(cases, lambda tables, context: counts.counts_of(tables, context.windows))["join"]
        if row.role != "runner"
    }
    assert found == {
        (-1, "member", "zk_op", "getData", "ok", "R1", "brokers"): 2,
        **{
            (window, role, *what): 1
            for window in (-1, 0)
            for role, *what in (
                ("member", "zk_op", "create", "NodeExists", "R11", "owners"),
                ("broker", "zk_op", "getChildren", "ok", "", "brokers"),
                ("member", "request_answered", "Fetch", "ok", "", ""),
                ("member", "request_answered", "Heartbeat", "NOT_COORDINATOR", "", ""),
                ("member", "attempt_ended", "", "conflict", "", ""),
            )
        },
        (0, "member", "zk_op", "getData", "ok", "R1", "brokers"): 1,
    }


def test_operations_under_way_at_a_reading_may_be_on_either_side_of_it() -> None:
    get, put = ("getData", "/consumers/g"), ("setData", "/consumers/g")
    events = [
        op(980, *get, since=10),  # answered before the reading was asked for
        op(1_005, *get, since=30),  # under way at the reading before
        op(1_900, *get, since=895),  # sent during it, and answered late by a busy machine
        op(1_500, *get, since=1),
        op(1_500, *get, since=1, error="NoNode"),  # the server counts only successful ones
        op(1_500, *put, since=1),
        op(1_500, *put, since=1, error="ConnectionLost"),  # it may have been performed
        op(1_500, *put, since=None, error="ConnectionLost"),  # it was never sent
        op(1_500, "sync", "/consumers/g", since=1),  # the server does not count it
        op(2_400, *put, since=401),  # performed before the reading after, and answered late by a busy machine
        op(2_400, *put, since=300),  # sent after it
    ]
    readings = {"join-1": ReadingInterval(1_000 * MS, 1_010 * MS, 2_000 * MS, 2_050 * MS)}
    rows = counts.operations_between(tables(events), readings)
    assert {(row.namespace, row.is_read): (row.traced, row.sure, row.possible) for row in rows} == {
        ("consumers", True): (2, 1, 3),
        ("consumers", False): (1, 1, 3),
    }


def test_every_error_of_zookeeper_says_whether_the_servers_may_have_performed_the_operation() -> None:
    answered = {
        *(errors.BadVersion, errors.NoChildrenForEphemerals, errors.NoChroot, errors.NoNode, errors.NodeExists),
        *(errors.NodeTooLarge, errors.NotEmpty, errors.OperationRefused, errors.RolledBack),
    }
    known = {each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, ZooKeeperError)}
    assert set(counts.UNANSWERED) == {each.__name__ for each in known - answered - {ZooKeeperError}}


def test_phase_lasts_until_the_next_one_or_the_end_of_its_attempt() -> None:
    def phase(at_ms: float, name: str) -> dict:
        return e(at_ms, "m1", "phase_entered", phase=name, attempt=1, **A)

    cases = {
        "whole": [
            e(0, "m1", "rebalance_started", trigger="ids", **A),
            phase(1, "stop"),
            phase(4, "claim"),
            e(9, "m1", "attempt_ended", attempt=1, outcome="ok", **A),
            e(10, "m1", "rebalance_ended", outcome="ok", **A),
        ],
        "killed": [e(0, "m1", "rebalance_started", trigger="ids", **A), phase(1, "stop")],
        "not named yet": [
            e(1, "m1", "phase_entered", phase="join", attempt=1, stream=0),
            e(3, "m1", "phase_entered", phase="claim", attempt=1, member="b", stream=0),
            e(4, "m1", "attempt_ended", attempt=1, outcome="ok", member="b", stream=0),
            e(9, "m1", "phase_entered", phase="join", attempt=1, stream=0),
        ],
    }
    rows = staged(cases, lambda tables, context: phases_of(rows_of(tables, *tables), context.memberships))
    assert {row.phase: (row.from_ns // MS, row.until_ns // MS) for row in rows["whole"]} == {
        "rebalance": (0, 10),
        "stop": (1, 4),
        "claim": (4, 9),
    }
    assert rows["killed"] == []
    found = [(row.member, row.phase, row.from_ns // MS, row.until_ns // MS) for row in rows["not named yet"]]
    assert sorted(found) == [("b", "claim", 3, 4), ("b", "join", 1, 3)]


def test_poll_that_goes_back_without_a_new_start_is_out_of_order() -> None:
    def poll(at_ms: float, first: int, last: int) -> dict:
        return e(at_ms, "m1", "records_delivered", p=0, first=first, last=last, **A)

    started = e(3, "m1", "position_started", p=0, offset=0, **A)
    cases = {
        "goes on": [poll(1, 0, 4), poll(2, 5, 9)],
        "skips": [poll(1, 0, 4), poll(2, 7, 9)],
        "starts again": [poll(1, 0, 4), started, poll(4, 0, 4)],
        "goes back": [poll(1, 0, 4), poll(2, 4, 9)],
    }
    found = {case: measure(traced_run(), tables(events))[0].out_of_order for case, events in cases.items()}
    assert found == {"goes on": 0, "skips": 0, "starts again": 0, "goes back": 1}


def test_records_of_the_group_are_binned_from_the_start_of_the_measured_span() -> None:
    def poll(at_ms: float, process: str, records: int) -> dict:
        return e(at_ms, process, "records_delivered", p=0, first=0, last=records - 1, **A)

    cases = {
        "run": [
            poll(50, "m1", 7),  # while the group is formed
            e(1_000, "runner", "stage_entered", stage="steady"),
            poll(1_000, "m1", 1),
            poll(1_099, "m2", 2),
            poll(1_250, "m1", 4),
            e(1_300, "runner", "stage_entered", stage="final"),
            poll(1_350, "m1", 8),
        ]
    }
    found, _ = measure(traced_run(), tables(cases["run"]))
    assert {each.bin: each.records for each in found.delivered} == {0: 3, 2: 4, None: 15}


def test_counts_are_the_same_where_texts_are_numbers_in_dictionaries_of_several_pieces() -> None:
    answered = [
        e(at_ms, "m1", "request_answered", api=api, version=4, correlation=1, broker=1, error="")
        for at_ms, api in ((1, "Fetch"), (2, "Fetch"), (3, "Heartbeat"), (4, "Fetch"))
    ]
    whole = tables(answered)
    windows = [Window(WHOLE_RUN, 0, 10 * MS), Window(0, 2 * MS, 4 * MS)]
    table = whole["request_answered"]
    types = [ENCODED_TEXT if field.type == pa.string() else field.type for field in table.schema]
    schema = pa.schema(list(zip(table.column_names, types, strict=True)))
    for cuts in ([0, 4], [0, 2, 4], [0, 3, 4]):
        pieces = [table.slice(low, high - low).cast(schema) for low, high in pairwise(cuts)]
        encoded = {"request_answered": pa.concat_tables(pieces)}
        assert sorted(counts.counts_of(encoded, windows), key=repr) == sorted(
            counts.counts_of(whole, windows), key=repr
        )
    (only,) = counts.counts_of({"request_answered": pieces[0].slice(0, 2)}, windows[:1])
    assert (only.name, only.role, only.n, only.first_ns) == ("Fetch", "member", 2, 1 * MS)
