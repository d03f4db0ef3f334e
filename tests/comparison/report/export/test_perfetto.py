"""A run as a Perfetto trace, decoded and replayed as a viewer would read it."""

from __future__ import annotations

import io
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

from comparison.report.export.perfetto import write_perfetto
from comparison.report.export.stream import stream_of
from kernel.trace.reader import read_trace
from tests.support.runs.seen_runs import write_cut, write_hostile
from tests.support.trace.traces import e, write_run


class Seen:
    """What a viewer shows: by the names from the top, slices with their seconds, instants and values."""

    def __init__(self, folder: Path) -> None:
        files = sorted((folder / "trace").glob("*.jsonl"))
        written = io.BytesIO()
        write_perfetto(stream_of([read_trace(path) for path in files]), written)
        self.packets = Trace.FromString(written.getvalue()).packet
        described = {
            p.track_descriptor.uuid: p.track_descriptor for p in self.packets if p.HasField("track_descriptor")
        }
        self.processes = [each.process.process_name for each in described.values() if each.HasField("process")]
        self.slices: defaultdict[str, list[tuple[str, float, float]]] = defaultdict(list)
        self.instants: defaultdict[str, list[str]] = defaultdict(list)
        self.values: defaultdict[str, list[int]] = defaultdict(list)
        self.facts: dict[str, dict[str, Any]] = {}
        names: dict[int, str] = {}
        for uuid, each in described.items():
            names[uuid] = f"{names[each.parent_uuid]}/{each.name}" if each.parent_uuid else each.name
        self._replay(names)

    def _replay(self, names: dict[int, str]) -> None:
        opened: defaultdict[int, list[tuple[str, int]]] = defaultdict(list)
        before = 0
        for packet in self.packets:
            if not packet.HasField("track_event"):
                continue
            event, at, name = packet.track_event, packet.timestamp, names[packet.track_event.track_uuid]
            assert at >= before
            before = at
            if event.type == TrackEvent.TYPE_SLICE_BEGIN:
                assert not opened[event.track_uuid], f"{name}: a slice begins inside of another"
                opened[event.track_uuid].append((event.name, at))
            elif event.type == TrackEvent.TYPE_SLICE_END:
                what, since = opened[event.track_uuid].pop()
                self.slices[name].append((what, since / 1e9, at / 1e9))
            elif event.type == TrackEvent.TYPE_INSTANT:
                self.instants[name].append(event.name)
                self.facts[event.name] = {note.name: _value(note) for note in event.debug_annotations}
            else:
                self.values[name].append(event.counter_value)
        assert not any(opened.values())


def _value(note: Any) -> Any:
    return getattr(note, note.WhichOneof("value"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("perfetto")
    write_cut(folder)
    return folder / "split-brain"


@pytest.fixture(scope="module")
def zookeeper(runs: Path) -> Seen:
    return Seen(runs / "zookeeper")


def test_processes_have_tracks_of_their_own(zookeeper: Seen) -> None:
    assert zookeeper.processes == ["m1 (member)", "m2 (member)", "observer", "runner"]


def test_two_members_that_deliver_at_once_are_on_two_tracks_of_one_name(zookeeper: Seen) -> None:
    delivered = zookeeper.slices["partitions/t-0/delivers"]
    assert sorted(delivered) == [("m1", 1.0, 8.5), ("m2", 5.0, 9.5)]
    assert zookeeper.slices["m1 (member)/owns"] == [("t-0", 0.8, 8.6)]


def test_authority_names_owners_until_it_clears_them(zookeeper: Seen) -> None:
    assert zookeeper.slices["partitions/t-0/named by ZooKeeper"] == [("m1", 0.8, 4.5), ("m2", 4.8, 10.5)]


def test_phases_lie_in_their_rebalances(zookeeper: Seen) -> None:
    assert zookeeper.slices["m1 (member)/phases"] == [("join", 0.6, 0.7), ("claim", 0.7, 0.75)]
    assert zookeeper.slices["m1 (member)/rebalances"] == [("rebalance (x)", 0.6, 0.75)]


def test_what_the_run_did_is_slices(zookeeper: Seen) -> None:
    assert zookeeper.slices["run/faults"] == [("cut m1", 2.0, 8.0)]
    assert zookeeper.slices["run/changes"] == [("form 1", 0.5, 0.9)]
    assert zookeeper.slices["run/stages"] == [("steady", 1.0, 10.0), ("final", 10.0, 10.5)]


def test_commits_are_instants_and_committed_offsets_a_counter(zookeeper: Seen) -> None:
    assert zookeeper.instants["partitions/t-0/commits"] == ["m1 commits 8", "m2 commits 30", "m1 moves back by 21 to 9"]
    assert zookeeper.values["partitions/t-0/committed offset"] == [8, 30, 9]
    assert zookeeper.facts["m2 commits 30"]["offset"] == 30


def test_records_are_counted(zookeeper: Seen) -> None:
    counted = zookeeper.values["m1 (member)/records delivered"]
    assert counted == list(range(1, len(counted) + 1))
    assert len(zookeeper.instants["m1 (member)/records"]) == len(counted)


def test_coordinator_has_states_generations_and_refusals(runs: Path) -> None:
    eager = Seen(runs / "eager")
    states = [name for name, _, _ in eager.slices["group g/state"]]
    assert states[1:3] == ["CompletingRebalance, generation 1", "Stable, generation 1"]
    assert eager.values["group g/generation"] == [0, 1, 1, 1, 2, 2]
    assert eager.instants["partitions/t-0/commits"][-1] == "m1 commits 9: UNKNOWN_MEMBER_ID"


def test_clock_of_the_run_is_tied_to_the_wall_clock(zookeeper: Seen) -> None:
    clocks = [packet.clock_snapshot.clocks for packet in zookeeper.packets if packet.HasField("clock_snapshot")]
    assert [(each.clock_id, each.timestamp > 0) for each in clocks[0]] == [(6, False), (1, True)]


def test_names_of_a_hostile_trace_are_printable(tmp_path: Path) -> None:
    write_hostile(tmp_path)
    seen = Seen(tmp_path / "split-brain" / "zookeeper")
    names = [*seen.slices, *seen.instants, *seen.values, *(n for found in seen.slices.values() for n, _, _ in found)]
    assert any("</script>" in name for name in names)
    assert all(name.isprintable() for name in names)


def test_bystanders_operations_say_how_long_they_took(tmp_path: Path) -> None:
    events = [
        e(10, "bystander", "bystander_op", op="getData", ok=True, latency_ns=1_500_000),
        e(20, "bystander", "bystander_op", op="setData", ok=False, latency_ns=9_000_000, error="ConnectionLost"),
    ]
    seen = Seen(write_run(tmp_path / "herd", [e(0, "runner", "run_started", parameters={}), *events]))
    (found,) = [names for track, names in seen.instants.items() if track.endswith("ZooKeeper")]
    assert found == ["getData took 1.5 ms", "setData took 9.0 ms: ConnectionLost"]
