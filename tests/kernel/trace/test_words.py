"""Words of a trace: the ones that are written are the ones that are read, and no recorded trace has another."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.groups.classic.states import GroupState
from coordinator.groups.consumer.states import ConsumerGroupState
from coordinator.groups.server.states import ServerGroupState
from kernel.trace.events import COMMON_FIELDS, KINDS, Role, Type
from kernel.trace.reader import Reason, read_header, read_trace
from kernel.trace.words import WORDS
from kernel.trace.writer import TraceIdentity, TraceWriter
from kernel.wire.versions import Api
from kernel.zookeeper.operations import SessionState, WatchEvent

_TESTS = Path(__file__).parents[2]


def test_words_belong_to_texts_of_the_schema() -> None:
    assert all({**COMMON_FIELDS, **KINDS[kind].fields}[field] is Type.TEXT for kind, field in WORDS)


def test_words_are_those_of_the_enumerations_that_write_them() -> None:
    states = {state.value for each in (GroupState, ServerGroupState, ConsumerGroupState) for state in each}
    assert set(WORDS["group_changed", "state"]) == states
    assert set(WORDS["session_changed", "state"]) == set(SessionState)
    assert set(WORDS["zk_notified", "event"]) == set(WatchEvent)
    assert set(WORDS["request_answered", "api"]) == {api.name for api in Api}


@pytest.mark.parametrize("path", sorted(_TESTS.rglob("*.jsonl")), ids=lambda path: str(path.relative_to(_TESTS)))
def test_no_line_of_a_recorded_trace_is_unusable(path: Path) -> None:
    trace = read_trace(path)
    assert trace.header is not None
    assert trace.quarantined == ()


def test_unknown_word_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "m1.jsonl"
    writer = TraceWriter(path, TraceIdentity(run="r", scenario="s", design="eager", role=Role.MEMBER, process="m1"))
    before = path.read_bytes()
    with pytest.raises(ValueError, match="phase is not detect, stop,"):
        writer.emit("phase_entered", phase="dancing", attempt=1)
    assert path.read_bytes() == before
    writer.close()


@pytest.mark.parametrize(
    ("field", "word"), [("design", "lazy"), ("role", "MEMBER"), ("implementation", "theirs"), ("clock", "sundial")]
)
def test_header_with_an_unknown_word_is_unusable(tmp_path: Path, field: str, word: str) -> None:
    path = tmp_path / "m1.jsonl"
    TraceWriter(path, TraceIdentity(run="r", scenario="s", design="eager", role=Role.MEMBER, process="m1")).close()
    good = {"design": "eager", "role": "member", "implementation": "ours", "clock": "monotonic"}[field]
    path.write_text(path.read_text().replace(f'"{field}":"{good}"', f'"{field}":"{word}"'))
    header, reason, detail = read_header(path)
    assert (header, reason) == (None, Reason.NO_HEADER)
    assert detail.startswith(f"{field} is not {good}") or good in detail
