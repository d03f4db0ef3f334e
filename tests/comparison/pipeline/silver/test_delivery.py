"""Ranges of polls, joined where one continues the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings

from comparison.ownership.groups import Memberships
from comparison.pipeline.bronze.tables import Tables
from comparison.pipeline.silver.context import Context
from comparison.pipeline.silver.deliveries import NO_SERIAL, acks_of, claims_of, delivered_of
from comparison.pipeline.silver.naming import Naming, naming_rows
from tests.support.oracle.intervals import CLAIM_KINDS, key_of, names_partition, of, stream_of
from tests.support.properties import examples
from tests.support.trace.strategies import traces
from tests.support.trace.traces import MS, context, e, rows, staged, tables


def poll(at_ms: float, first: int, last: int, *, process: str = "m1", serials: bool = True) -> dict:
    numbers = {"serial_first": first + 100, "serial_last": last + 100} if serials else {}
    return e(at_ms, process, "records_delivered", p=0, first=first, last=last, member="a", stream=0, **numbers)


def acked(at_ms: float, first: int, last: int) -> dict:
    return e(at_ms, "runner", "records_acked", p=0, first=first, last=last, serial_first=first, serial_last=last)


def notified(at_ms: float, what: str, t: str = "t0", **who: Any) -> dict:
    return e(at_ms, "m1", f"partitions_{what}", t=t, **{"member": "a", "stream": 0, **who})


def _stretches(tables: Tables, context: Context) -> list[Any]:
    claims = claims_of(tables, context)
    return rows(delivered_of(tables, claims, context, Naming(naming_rows(tables))).stretches)


def _ranges(tables: Tables, context: Context) -> list[tuple[str, int, int, str]]:
    found = []
    for each in _stretches(tables, context):
        found.append(("offsets", each.first, each.end, each.process))
        if each.serial_first != NO_SERIAL:
            found.append(("serials", each.serial_first, each.serial_end, each.process))
    return sorted(found)


def test_polls_that_continue_each_other_are_one_range() -> None:
    cases = {
        "goes on": [poll(1, 0, 4), poll(2, 5, 5), poll(3, 6, 9)],
        "skips": [poll(1, 0, 4), poll(2, 6, 9)],
        "goes back": [poll(1, 0, 4), poll(2, 3, 9)],
        "another goes on": [poll(1, 0, 4), poll(2, 5, 9, process="m2")],
        "without numbers": [poll(1, 0, 4, serials=False)],
    }
    found = staged(cases, _ranges)
    assert found == {
        "goes on": [("offsets", 0, 10, "m1"), ("serials", 100, 110, "m1")],
        "skips": [
            ("offsets", 0, 5, "m1"),
            ("offsets", 6, 10, "m1"),
            ("serials", 100, 105, "m1"),
            ("serials", 106, 110, "m1"),
        ],
        "goes back": [
            ("offsets", 0, 5, "m1"),
            ("offsets", 3, 10, "m1"),
            ("serials", 100, 105, "m1"),
            ("serials", 103, 110, "m1"),
        ],
        "another goes on": [
            ("offsets", 0, 5, "m1"),
            ("offsets", 5, 10, "m2"),
            ("serials", 100, 105, "m1"),
            ("serials", 105, 110, "m2"),
        ],
        "without numbers": [("offsets", 0, 5, "m1")],
    }


def test_acknowledged_records_are_wanted_by_their_serials() -> None:
    cases = {"acked": [acked(1, 0, 9), acked(2, 10, 19), acked(3, 30, 39)]}
    found = staged(cases, lambda tables, _: acks_of(tables))["acked"]
    assert sorted((row.first, row.end) for row in found) == [(0, 20), (30, 40)]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([poll(1, 0, 4), poll(1_001, 5, 9)], [(0, 10, 1, 1_001)]),
        ([poll(1, 0, 4), poll(1_001.001, 5, 9)], [(0, 5, 1, 1), (5, 10, 1_001.001, 1_001.001)]),
        ([poll(1, 0, 4), notified(2, "revoked"), poll(3, 5, 9)], [(0, 5, 1, 1), (5, 10, 3, 3)]),
        ([poll(1, 0, 4), notified(2, "assigned"), poll(3, 5, 9)], [(0, 5, 1, 1), (5, 10, 3, 3)]),
        ([poll(1, 0, 4), notified(2, "lost", "t1 t0"), poll(3, 5, 9)], [(0, 5, 1, 1), (5, 10, 3, 3)]),
        ([poll(1, 0, 4), notified(2, "revoked", "t1"), poll(3, 5, 9)], [(0, 10, 1, 3)]),
        ([poll(1, 0, 4), notified(2, "revoked", stream=1), poll(3, 5, 9)], [(0, 10, 1, 3)]),
        ([poll(1, 0, 4), notified(2, "revoked", member="b"), poll(3, 5, 9)], [(0, 10, 1, 3)]),
        ([poll(1, 0, 4), poll(2, 5, 9, serials=False)], [(0, 5, 1, 1), (5, 10, 2, 2)]),
        ([poll(1, 0, 4, serials=False), poll(2, 5, 9, serials=False)], [(0, 10, 1, 2)]),
        ([poll(1, 0, 4), poll(2, 5, 9) | {"serial_first": 106, "serial_last": 110}], [(0, 5, 1, 1), (5, 10, 2, 2)]),
        ([poll(1, 0, 4), poll(2, 5, 9) | {"stream": 1}], [(0, 5, 1, 1), (5, 10, 2, 2)]),
        ([poll(1, 0, 4), poll(2, 5, 9) | {"topic": "u"}], [(0, 5, 1, 1), (5, 10, 2, 2)]),
        ([poll(1, 0, 4), poll(2, 5, 9) | {"partition": 1}], [(0, 5, 1, 1), (5, 10, 2, 2)]),
        ([poll(1, 7, 7), poll(2, 7, 7), poll(3, 8, 8)], [(7, 8, 1, 1), (7, 9, 2, 3)]),
    ],
    ids=[
        *("a second later", "more than a second later", "revoked in between", "assigned again in between"),
        *("lost with another one in between", "another partition revoked", "another stream's revoked"),
        *("another member's revoked", "numbers end", "without numbers", "a number is skipped", "another stream"),
        *("another topic", "another partition", "the same record twice"),
    ],
)
def test_stretch_ends_where(events: list[dict], expected: list[tuple]) -> None:
    found = sorted(staged({"run": events}, _stretches)["run"], key=lambda each: each.seq)
    assert [(each.first, each.end, each.from_ns / MS, each.until_ns / MS) for each in found] == expected


@settings(max_examples=examples(100), deadline=None)
@given(traces())
def test_stretches_have_every_record_of_every_poll_and_nothing_that_could_be_joined(events: list[dict]) -> None:
    everything = tables(events, numbered=True)
    around = context(everything)
    found = _stretches(everything, around)
    groups = Memberships.of_events(events)
    polls = of(events, "records_delivered")
    # Every record, once for each time, by whom and with which number.
    assert Counter(record for each in found for record in _records_of(each)) == Counter(
        (key_of(event, groups), stream_of(event), offset, number)
        for event in polls
        for offset, number in zip(
            range(event["first"], event["last"] + 1),
            range(event["serial_first"], event["serial_last"] + 1)
            if event["serial_first"] is not None
            else [None] * (event["last"] - event["first"] + 1),
            strict=True,
        )
    )
    # The first and the last poll are in it, and a stretch goes on as long as it can.
    at = {(event["process"], event["seq"]): event["t_ns"] for event in polls}
    assert all(at[each.process, each.seq] == each.from_ns for each in found)
    assert all(at[each.process, each.seq_last] == each.until_ns for each in found)
    by_line: dict[tuple, list] = {}
    for each in sorted(found, key=lambda each: each.seq):
        by_line.setdefault((each.process, each.member, each.stream, each.topic, each.partition), []).append(each)
    claims = of(events, *CLAIM_KINDS)
    for (*stream, topic, partition), line in by_line.items():
        for before, each in pairwise(line):
            is_notified = any(
                before.seq_last < claim["seq"] < each.seq
                for claim in claims
                if list(stream_of(claim)) == stream and names_partition(claim, topic, partition)
            )
            goes_on = (before.end, before.serial_end) == (each.first, each.serial_first)
            assert is_notified or not goes_on or each.from_ns - before.until_ns > 1_000 * MS


def _records_of(each: Any) -> list[tuple]:
    key, stream = (each.group, each.topic, each.partition), (each.process, each.member, each.stream)
    offsets = range(each.first, each.end)
    numbers: Sequence[int | None] = [None] * len(offsets)
    if each.serial_first != NO_SERIAL:
        numbers = range(each.serial_first, each.serial_end)
    return [(key, stream, *record) for record in zip(offsets, numbers, strict=True)]


@settings(max_examples=examples(60), deadline=None)
@given(traces())
def test_claims_and_acknowledged_numbers_are_those_of_their_events(events: list[dict]) -> None:
    everything = tables(events, numbered=True)
    groups = Memberships.of_events(events)
    claims = rows(claims_of(everything, context(everything)))
    assert Counter(
        (each.kind, each.t_ns, each.seq, each.process, each.member, each.stream, each.group, each.topic, each.partition)
        for each in claims
    ) == Counter(
        (
            event["kind"],
            event["t_ns"],
            event["seq"],
            *stream_of(event),
            groups.group(event["process"], event["member"]),
            *place.values(),
        )
        for event in of(events, *CLAIM_KINDS)
        for place in event["partitions"]
    )
    acks = rows(acks_of(everything))
    assert Counter((each.topic, each.partition, n) for each in acks for n in range(each.first, each.end)) == Counter(
        (event["topic"], event["partition"], n)
        for event in of(events, "records_acked")
        for n in range(event["serial_first"], event["serial_last"] + 1)
    )
