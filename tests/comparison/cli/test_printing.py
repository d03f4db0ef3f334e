"""How `consume` shows rebalances, and folds records into counts."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping

import pytest

from comparison.cli.printing import COUNTS, COUNTS_S, NOTHING, Printer
from comparison.cli.rebalances import Rebalanced, Rebalances, SeenTracer
from kernel.consumer import MemberPlace
from kernel.trace.writer import SilentTracer
from kernel.values import Batch, Record, TopicPartition

MS = 1_000_000
ENDED = Rebalanced(
    stream=0, trigger="subscribe", outcome="ok", attempts=1, took_ms=31.5, phases_ms={"join": 20.25, "resume": 11.25}
)


def rebalances_of(*seen: tuple[str, int, Mapping[str, object]], stream: int | None = 0) -> list[Rebalanced]:
    found: list[Rebalanced] = []
    rebalances = Rebalances(found.append)
    for kind, at_ms, fields in seen:
        rebalances.see(kind, stream, at_ms * MS, fields)
    return found


def test_phases_of_all_attempts_are_added_up_and_a_backoff_is_one_of_them() -> None:
    (found,) = rebalances_of(
        ("rebalance_started", 100, {"trigger": "members"}),
        ("attempt_started", 100, {"attempt": 1}),
        ("phase_entered", 110, {"phase": "join"}),
        ("phase_entered", 140, {"phase": "backoff"}),
        ("attempt_ended", 200, {"outcome": "conflict"}),
        ("attempt_started", 230, {"attempt": 2}),
        ("phase_entered", 230, {"phase": "join"}),
        ("phase_entered", 240, {"phase": "claim"}),
        ("attempt_ended", 245, {"outcome": "ok"}),
        ("rebalance_ended", 250, {"outcome": "ok"}),
        stream=None,
    )
    assert (found.stream, found.trigger, found.outcome, found.attempts, found.took_ms) == (0, "members", "ok", 2, 150)
    assert found.phases_ms == {"join": 40, "backoff": 60, "claim": 5}


def test_what_ends_without_having_started_is_no_rebalance() -> None:
    assert not rebalances_of(("phase_entered", 1, {"phase": "join"}), ("rebalance_ended", 2, {"outcome": "ok"}))


def test_each_streams_rebalance_is_followed_by_itself() -> None:
    found: list[Rebalanced] = []
    rebalances = Rebalances(found.append)
    for stream in (0, 1):
        rebalances.see("rebalance_started", stream, stream * 10 * MS, {"trigger": f"t{stream}"})
    for stream in (1, 0):
        rebalances.see("rebalance_ended", stream, 50 * MS, {"outcome": "ok"})
    assert [(each.stream, each.trigger, each.took_ms) for each in found] == [(1, "t1", 40), (0, "t0", 50)]


@pytest.mark.parametrize(
    ("place", "shown"),
    [
        (MemberPlace(member_id="g_host-1"), "member g_host-1 (stream 0)"),
        (
            MemberPlace(member_id="a", generation=3, leader="a", coordinator="h:9092 (id 1)"),
            "generation 3, member a, which leads, coordinator h:9092 (id 1) (stream 0)",
        ),
        (
            MemberPlace(member_id="a", generation=3, leader="b", coordinator="h:9092 (id 1)"),
            "generation 3, member a, leader b, coordinator h:9092 (id 1) (stream 0)",
        ),
    ],
)
def test_rebalance_shows_its_times_and_the_members_place(
    capsys: pytest.CaptureFixture[str], place: MemberPlace, shown: str
) -> None:
    printer = Printer("text")
    printer.places = lambda: {0: place}
    printer.rebalanced(ENDED)
    head = (
        r"rebalance: done at \d\d:\d\d:\d\d\.\d{3} after 0\.032 s \(join 0\.020, resume 0\.011\), trigger subscribe, "
    )
    assert re.fullmatch(head + re.escape(shown) + "\n", capsys.readouterr().out)


def batch(partition: int, first: int, count: int) -> Batch:
    records = tuple(Record("t", partition, first + at, 0, None, b"v") for at in range(count))
    return Batch(0, TopicPartition("t", partition), records)


def test_records_are_counted_and_the_counts_printed_once_a_second(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    printer = Printer("text", COUNTS, now_s=lambda: now)
    printer.batch(batch(1, 10, 3))
    printer.batch(batch(0, 0, 1))
    printer.polled()
    assert capsys.readouterr().out == ""
    now += COUNTS_S
    printer.batch(batch(1, 13, 2))
    printer.polled()
    assert capsys.readouterr().out == "records: 6: 1 of t-0 up to @0, 5 of t-1 up to @14\n"
    printer.polled()
    assert capsys.readouterr().out == ""
    assert printer.records == 6


def test_neighbours_with_equal_counts_or_positions_make_a_range(capsys: pytest.CaptureFixture[str]) -> None:
    printer = Printer("text", COUNTS, now_s=lambda: 0.0)
    for partition in range(7):
        printer.batch(batch(partition, 10, 3 if partition == 3 else 2))
        printer.reset(TopicPartition("t", partition), 9 if partition == 5 else 10, "latest")
    printer.say("left", "")
    assert capsys.readouterr().out.splitlines() == [
        "reset: t-0..4 to @10, t-5 to @9, t-6 to @10 (auto.offset.reset=latest)",
        "records: 15: 2 each of t-0..2 up to @11, 3 of t-3 up to @12, 2 each of t-4..6 up to @11",
        "left",
    ]


def test_counts_come_before_whatever_is_printed_next(capsys: pytest.CaptureFixture[str]) -> None:
    printer = Printer("json", COUNTS, now_s=lambda: 0.0)
    printer.batch(batch(0, 5, 2))
    asyncio.run(printer.on_revoked(0, frozenset({TopicPartition("t", 0)})))
    counted, revoked = map(json.loads, capsys.readouterr().out.splitlines())
    assert counted["partitions"] == [{"topic": "t", "partition": 0, "first": 5, "last": 6, "count": 2}]
    assert (counted["event"], revoked["event"]) == ("records", "revoked")


def test_nothing_of_records_is_printed_when_nobody_wants_them(capsys: pytest.CaptureFixture[str]) -> None:
    printer = Printer("text", NOTHING)
    printer.batch(batch(0, 0, 2))
    printer.say("left", f"after {printer.records} records")
    assert capsys.readouterr().out == "left: after 2 records\n"


def test_resets_of_positions_make_one_line_before_the_records(capsys: pytest.CaptureFixture[str]) -> None:
    printer = Printer("text", COUNTS)
    seen = SeenTracer(SilentTracer(), Rebalances(printer.rebalanced), printer.reset)
    for partition in (1, 0):
        seen.emit("position_reset", stream=0, topic="t", partition=partition, offset=partition + 7, reset="largest")
    assert capsys.readouterr().out == ""
    printer.polled()
    printer.polled()
    assert capsys.readouterr().out == "reset: t-0 to @7, t-1 to @8 (auto.offset.reset=largest)\n"
    seen.emit("position_reset", stream=0, topic="t", partition=0, offset=3, reset="earliest")
    printer.batch(Batch(0, TopicPartition("t", 0), (Record("t", 0, 3, 0, None, None),)))
    printer.polled()
    printer.say("left", "")
    reset, records, left = capsys.readouterr().out.splitlines()
    assert reset == "reset: t-0 to @3 (auto.offset.reset=earliest)"
    assert (records, left) == ("records: 1: 1 of t-0 up to @3", "left")
