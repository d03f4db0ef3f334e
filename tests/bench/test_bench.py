"""The bench can be trusted: its frames are Kafka's, its arithmetic is right, and it runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench import bystanders, lean
from bench.figures import Figures, at_least, at_most, ratio, spread
from bench.lean import Member
from bench.lean_groups import Course
from kernel.wire.codec import decode_request, encode_response
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api


def member() -> Member:
    return Member("c7", "g", 7, "c7-id", 3, b"")


def decoded(frame: bytes):
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    return decode_request(frame[4:])


def answer_of(api: Api, version: int, body: dict[str, object]) -> bytes:
    """An answer as a broker sends it, size included."""
    return encode_response(api, version, 7, body)


# -- frames ------------------------------------------------------------------------------------------------------------


def test_requests_conform_to_the_schema():
    join = decoded(member().join())
    assert (join.api, join.version, join.client_id) == (Api.JoinGroup, 5, "c7")
    assert (join.body.group_id, join.body.member_id, join.body.protocols[0].name) == ("g", "c7-id", "range")
    sync = decoded(member().sync({"a": b"x", "b": b"yy"}))
    assert [(row.member_id, row.assignment) for row in sync.body.assignments] == [("a", b"x"), ("b", b"yy")]
    heartbeat = decoded(member().heartbeat())
    assert (heartbeat.version, heartbeat.body.generation_id, heartbeat.body.member_id) == (4, 3, "c7-id")
    commit = decoded(member().commit("t", [5, 6], 42))
    assert [(p.partition_index, p.committed_offset) for p in commit.body.topics[0].partitions] == [(5, 42), (6, 42)]
    leave = decoded(lean.leave("g", ["a", "b"], "c"))
    assert [row.member_id for row in leave.body.members] == ["a", "b"]
    fetch = decoded(lean.fetch_offsets("g", "t", [1, 2], "c"))
    assert list(fetch.body.topics[0].partition_indexes) == [1, 2]
    created = decoded(lean.create_topic("t", 9))
    assert (created.body.topics[0].name, created.body.topics[0].num_partitions) == ("t", 9)
    assert decoded(lean.find("g", "c")).body.key == "g"


def test_constant_answers_conform_to_the_schema():
    for error in (ErrorCode.none, ErrorCode.rebalance_in_progress):
        body = {"error_code": error}
        assert member().heartbeat_answer(error.value) == answer_of(Api.Heartbeat, 4, body)
    rows = [{"partition_index": number, "error_code": ErrorCode.none} for number in (5, 6)]
    topics = [{"name": "t", "partitions": rows}]
    assert member().commit_answer("t", [5, 6]) == answer_of(Api.OffsetCommit, 7, {"topics": topics})


def test_answers_are_decoded_as_they_were_encoded():
    rows = [{"member_id": f"m{n}", "group_instance_id": None, "metadata": b"x" * n} for n in range(3)]
    body = {"error_code": ErrorCode.none, "generation_id": 4, "protocol_name": "range", "leader": "m0"}
    joined = lean.joined(answer_of(Api.JoinGroup, 5, {**body, "member_id": "m0", "members": rows}))
    assert joined == lean.Joined(0, 4, "m0", ("m0", "m1", "m2"))
    synced = answer_of(Api.SyncGroup, 3, {"error_code": ErrorCode.none, "assignment": b"mine"})
    assert lean.synced(synced) == (0, b"mine")
    partition = {"committed_leader_epoch": -1, "metadata": "", "error_code": ErrorCode.none}
    offsets = [{**partition, "partition_index": n, "committed_offset": 10 * n} for n in (1, 2)]
    fetched = {"topics": [{"name": "t", "partitions": offsets}], "error_code": ErrorCode.none}
    assert lean.fetched_offsets(answer_of(Api.OffsetFetch, 5, fetched)) == (0, {("t", 1): 10, ("t", 2): 20})


# -- arithmetic --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("joined_last", "answered_first", "delay_s"),
    [
        (0.0, 0.6, 0.5),  # nobody joined after the first one
        (0.3, 1.1, 1.0),
        (0.7, 1.6, 1.5),
        (1.2, 1.6, 1.5),  # answered before another delay could end: the last join fell into an earlier one
    ],
)
def test_delay_is_extended_by_members_that_join_within_it(joined_last: float, answered_first: float, delay_s: float):
    joins = 1 if joined_last == 0.0 else 9
    course = Course(100.0, joined_last=100 + joined_last, answered_first=100 + answered_first, joins=joins)
    assert course.delay_s(0.5) == delay_s


def test_bystanders_are_judged_by_heartbeats_in_flight_during_the_change():
    before, across, within, after = (9.0, 1.0), (9.9, 300.0), (11.0, 7.0), (20.0, 900.0)
    course = {"began": 10.0, "connected": 10.5, "stable": 12.0, "ended": 13.0}
    filler = [(10.6 + number / 1000, 2.0) for number in range(500)]
    found = bystanders.judged([before, across, *filler, within, after], 0, course)
    assert (found["max"], found["p50"], found["quiet_p99"], found["samples"]) == (300.0, 2.0, 1.0, 502)
    assert found["connecting_p99"] == 300.0


def test_bystanders_without_enough_samples_are_rejected():
    course = {"began": 10.0, "connected": 10.5, "stable": 12.0, "ended": 13.0}
    with pytest.raises(RuntimeError, match="did not get enough CPU"):
        bystanders.judged([(11.0, 1.0)], 0, course)


def test_ratios_are_of_medians_and_their_range_is_of_neighbouring_runs():
    assert spread([3.0, 1.0, 2.0], ".1f") == "2.0 (1.0-3.0)"
    assert ratio([2.0, 4.0, 6.0], [1.0, 4.0, 2.0]) == "2.00 (1.00-3.00)"
    assert ratio([2.0], []) == "not run"
    assert (at_least(1.6)(16.0, 10.0), at_least(1.6)(15.9, 10.0), at_least(1.6)(1.0, None)) == (True, False, None)
    assert (at_most(0.5)(5.0, 10.0), at_most(0.5)(5.1, 10.0)) == (True, False)


def test_every_run_is_in_the_file(tmp_path: Path):
    figures = Figures(statements=["two cores"])
    figures.add("heartbeats", "ours", {"connections": 1}, {"per_s": 5.0})
    figures.write(tmp_path / "figures.json")
    (run,) = json.loads((tmp_path / "figures.json").read_text())["runs"]
    assert run == {"measure": "heartbeats", "side": "ours", "about": {"connections": 1}, "figures": {"per_s": 5.0}}


# -- the whole ---------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="cores are pinned and epoll is used on Linux only")
def test_smallest_measure_runs_and_leaves_its_figures(tmp_path: Path):
    file = tmp_path / "figures.json"
    command = [sys.executable, "-m", "bench", "--smoke", "--only", "heartbeats", "--ours-only"]
    done = subprocess.run(
        [*command, "--members", "3", "--json", str(file)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    written = json.loads(file.read_text())
    assert written["left_out"] == ["Kafka 4.1.1: --ours-only"]
    assert [run["about"] for run in written["runs"]] == [{"connections": 3}]
    assert written["runs"][0]["figures"]["answers"] > 0
