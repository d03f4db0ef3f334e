"""Trace files are followed as they grow, whatever state their last line is in, and give one order of events."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from comparison.playground.live.following import SLACK_NS, Follower, Tail


def line(ns: int, kind: str = "k", **fields: object) -> bytes:
    return json.dumps({"ns": ns, "kind": kind, **fields}).encode() + b"\n"


def times(events) -> list[int]:
    return [event["ns"] for event in events]


def test_header_end_marker_and_broken_lines_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "m1.jsonl"
    path.write_bytes(b'{"header": {}}\n' + line(1) + b"{torn\n[]\n" + line(2) + b'{"end": {"events": 2}}\n')
    assert times(Tail(path).read()) == [1, 2]


def test_a_torn_last_line_is_read_once_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "m1.jsonl"
    tail = Tail(path)
    assert tail.read() == []
    path.write_bytes(line(1) + line(2)[:7])
    assert times(tail.read()) == [1]
    with path.open("ab") as file:
        file.write(line(2)[7:])
    assert times(tail.read()) == [2]
    assert tail.read() == []


@given(st.lists(st.integers(1, 50), max_size=20), st.integers(1, 400))
def test_bounded_readings_lose_nothing(tmp_path_factory, sizes, bytes_max) -> None:
    path = tmp_path_factory.mktemp("tail") / "m1.jsonl"
    path.write_bytes(b"".join(line(number, text="x" * size) for number, size in enumerate(sizes)))
    tail = Tail(path)
    read = tail.read(bytes_max)
    while tail.has_more:
        read += tail.read(bytes_max)
    assert times(read) == list(range(len(sizes)))


def test_events_of_all_files_come_in_the_order_of_their_times_once_they_are_complete(tmp_path: Path) -> None:
    (tmp_path / "m1.jsonl").write_bytes(line(10) + line(30))
    (tmp_path / "m2.jsonl").write_bytes(line(20))
    (tmp_path / "observer.jsonl").write_bytes(line(15))
    follower = Follower(tmp_path, lambda name: name != "observer")
    follower.add({"ns": 25, "kind": "elsewhere"})
    assert times(follower.read(SLACK_NS + 25)) == [10, 20, 25]
    (tmp_path / "m3.jsonl").write_bytes(line(28))
    assert times(follower.read(SLACK_NS + 100)) == [28, 30]


def test_a_file_that_has_more_holds_back_what_is_later_than_its_last_event(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "m1.jsonl"
    path.write_bytes(line(10) + line(40))
    (tmp_path / "m2.jsonl").write_bytes(line(20))
    follower = Follower(tmp_path, lambda _: True)
    bounded = Tail.read
    monkeypatch.setattr(Tail, "read", lambda tail: bounded(tail, len(line(10))))
    assert [times(follower.read(SLACK_NS + 100)) for _ in range(3)] == [[10], [20, 40], []]
