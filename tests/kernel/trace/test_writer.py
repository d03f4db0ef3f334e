"""The writer: no emitted event is lost, nothing malformed is written, and threads do not tear lines."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kernel.trace.events import KINDS, SCHEMA_VERSION, Role
from kernel.trace.reader import EndMarker, Reason, read_trace
from kernel.trace.writer import TraceIdentity, TraceWriter, boot_id
from tests.support.time.manual_clock import ManualClock
from tests.support.trace.tracers import ListTracer

IDENTITY = TraceIdentity(run="r", scenario="crash", design="eager", role=Role.MEMBER, process="m0", seed=7)

#: Emits forever, and after each event prints how many it has emitted.
_ENDLESS = """
import sys
from pathlib import Path
from kernel.trace.events import Role
from kernel.trace.writer import TraceIdentity, TraceWriter
identity = TraceIdentity(run="r", scenario="s", design="eager", role=Role.MEMBER, process="m")
writer = TraceWriter(Path(sys.argv[1]), identity)
emitted = 0
while True:
    writer.emit("member_failed", error="x" * 300)
    emitted += 1
    sys.stdout.write(f"{emitted}\\n")
    sys.stdout.flush()
"""


def test_header_names_the_process_and_ties_its_clocks(tmp_path: Path) -> None:
    clock = ManualClock(monotonic_ns=5_000, wall_ms=1_000)
    TraceWriter(tmp_path / "t", IDENTITY, clock=clock).close()
    header = read_trace(tmp_path / "t").header
    assert header == {
        "schema": SCHEMA_VERSION,
        "run": "r",
        "scenario": "crash",
        "design": "eager",
        "role": "member",
        "implementation": "ours",
        "process": "m0",
        "seed": 7,
        "clock": "monotonic",
        "boot_id": boot_id(),
        "monotonic_ns": 5_000,
        "wall_ns": 1_000_000_000,
        "pid": os.getpid(),
    }


def test_event_is_readable_before_the_writer_is_closed(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t", IDENTITY)
    writer.emit("member_started", member="a", group="g", cause="fault:none")
    (event,) = read_trace(tmp_path / "t").events
    assert (event["kind"], event["seq"], event["process"], event["member"]) == ("member_started", 0, "m0", "a")
    writer.close()


def test_malformed_event_raises_and_writes_nothing(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t", IDENTITY)
    with pytest.raises(ValueError, match="group is missing"):
        writer.emit("member_started", member="a")
    writer.emit("member_started", member="a", group="g")
    writer.close()
    (event,) = read_trace(tmp_path / "t").events
    assert event["seq"] == 0  # the refused event took no number


def test_trace_file_is_never_overwritten(tmp_path: Path) -> None:
    TraceWriter(tmp_path / "t", IDENTITY).close()
    with pytest.raises(FileExistsError):
        TraceWriter(tmp_path / "t", IDENTITY)


def test_event_after_close_is_ignored(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t", IDENTITY)
    writer.close()
    writer.emit("member_failed", error="late")
    assert read_trace(tmp_path / "t").events == ()


def test_end_marker_is_the_last_line_and_written_once(tmp_path: Path) -> None:
    clock = ManualClock(monotonic_ns=5_000)
    writer = TraceWriter(tmp_path / "t", IDENTITY, clock=clock)
    writer.emit("member_failed", error="a")
    assert read_trace(tmp_path / "t").end is None
    writer.emit("member_failed", error="b")
    clock.advance_ms(1)
    writer.close()
    writer.emit("member_failed", error="late")
    writer.close()
    lines = (tmp_path / "t").read_bytes().splitlines()
    assert len(lines) == 4
    assert lines[-1] == b'{"end":{"events":2,"monotonic_ns":1005000}}'
    assert read_trace(tmp_path / "t").end == EndMarker(2, 1_005_000)


#: Fills the file up to its limit, then closes the trace.
_CLOSED_WHEN_FULL = """
import contextlib, os, resource, signal, sys
from pathlib import Path
from kernel.trace.events import Role
from kernel.trace.writer import TraceIdentity, TraceWriter
path, emitted = Path(sys.argv[1]), sys.argv[2] == "emitted"
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
writer = TraceWriter(path, TraceIdentity(run="r", scenario="s", design="eager", role=Role.MEMBER, process="m"))
writer.emit("member_failed", error="x")
size = path.stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, resource.RLIM_INFINITY))
if emitted:
    with contextlib.suppress(OSError):
        writer.emit("member_failed", error="y")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
writer.close()
writer.close()
"""


@pytest.mark.parametrize("case", ["emitted", "closed"])
def test_full_disk_leaves_no_end_marker_and_close_does_not_raise(tmp_path: Path, case: str) -> None:
    """Not even when there is room again: the file lacks an event that was emitted."""
    arguments = [sys.executable, "-c", _CLOSED_WHEN_FULL, str(tmp_path / "t"), case]
    subprocess.run(arguments, check=True)
    trace = read_trace(tmp_path / "t")
    assert (len(trace.events), trace.end) == (1, None)
    assert [q.reason for q in trace.quarantined] == [Reason.TORN]


def test_threads_share_a_writer_without_tearing_a_line(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t", IDENTITY)

    def emit_many(stream: int) -> None:
        for _ in range(200):
            writer.emit("member_failed", stream=stream, error="e" * 200)

    threads = [threading.Thread(target=emit_many, args=(stream,)) for stream in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close()
    trace = read_trace(tmp_path / "t")
    assert trace.quarantined == ()
    assert [event["seq"] for event in trace.events] == list(range(800))


def test_kill_9_loses_nothing_that_was_emitted(tmp_path: Path) -> None:
    path = tmp_path / "t"
    with subprocess.Popen([sys.executable, "-c", _ENDLESS, str(path)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if int(line) >= 100:
                break
        child.send_signal(signal.SIGKILL)
        acknowledged = [int(line) for line in child.stdout if line.endswith("\n")]
    trace = read_trace(path)
    # The event that was being written, and so not acknowledged, may be torn.
    assert [q.reason for q in trace.quarantined] in ([], [Reason.TORN])
    assert trace.end is None
    assert len(trace.events) >= max(acknowledged, default=100)
    assert [event["seq"] for event in trace.events] == list(range(len(trace.events)))


def test_full_disk_tears_at_most_the_last_line(tmp_path: Path) -> None:
    limit = 4096
    code = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    code += f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n" + _ENDLESS
    child = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "t")], capture_output=True, text=True, check=False
    )
    assert "File too large" in child.stderr
    trace = read_trace(tmp_path / "t")
    assert len(trace.events) == len(child.stdout.split())
    assert [q.reason for q in trace.quarantined] in ([], [Reason.TORN])


def test_tee_gets_each_event_after_it_was_written(tmp_path: Path) -> None:
    seen: list[int] = []
    writer = TraceWriter(tmp_path / "t", IDENTITY, tee=lambda _: seen.append(len(read_trace(tmp_path / "t").events)))
    writer.emit("member_failed", error="a")
    writer.emit("member_failed", error="b")
    writer.close()
    assert seen == [1, 2]


def test_every_kind_is_documented() -> None:
    assert all(kind.meaning and kind.optional <= set(kind.fields) for kind in KINDS.values())


def test_list_tracer_checks_as_the_writer_does() -> None:
    tracer = ListTracer()
    with pytest.raises(ValueError, match="error should be text"):
        tracer.emit("member_failed", error=3)
    tracer.emit("member_failed", error="e")
    tracer.emit("member_closed", group="g")
    assert [event["kind"] for event in tracer.of("member_closed")] == ["member_closed"]
