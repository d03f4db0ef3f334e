"""A rebalance as messages, from the events that an analysis kept: the same as in a diagram of the traces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from comparison.pipeline.bronze.kinds import EVENT_SCHEMAS
from comparison.report.diagrams.sequence import sequence
from comparison.report.history.group_history import read_history
from comparison.report.view import conversations as module
from comparison.report.view import events as reading
from comparison.report.view.conversations import conversations_of
from comparison.report.view.events import KINDS_READ, read_events
from comparison.report.view.model import ANSWER, NOTE, REFUSED, REQUEST, WATCH, Conversation
from kernel.trace.reader import read_trace
from kernel.trace.run_clock import events_in_order
from tests.support.runs.seen_runs import analysed_cut, analysed_inline, write_hostile

RECORDED = Path(__file__).parents[1]
DESIGNS = {
    "crash": "zookeeper",
    "coordinated/join-eager": "eager",
    "coordinated/join-cooperative": "cooperative",
    "coordinated/join-server": "server",
    "coordinated/crash-delayed": "delayed",
}


def _traces(name: str) -> list[Any]:
    return [read_trace(path) for path in sorted((RECORDED / name).glob("*.jsonl"))]


def _is_fetch(event: dict[str, Any]) -> bool:
    return event["kind"] == "request_answered" and event["api"] in ("Fetch", "Metadata", "ListOffsets")


def _of(name: str) -> tuple[Conversation, ...]:
    events = tuple(
        event for event in events_in_order(_traces(name)) if event["kind"] in KINDS_READ and not _is_fetch(event)
    )
    return conversations_of(events, DESIGNS[name])


@pytest.mark.parametrize("name", DESIGNS)
def test_rebalances_and_messages_are_those_of_a_diagram(name: str) -> None:
    history = read_history(_traces(name))
    found = _of(name)
    assert [each.number for each in found] == [each.number for each in history.rounds]
    for told, round_ in zip(found, history.rounds, strict=True):
        drawn = sequence(history, round_.rebalances, brief=len({r.member.name for r in round_.rebalances}) > 1)
        # Deliveries and fetches are not read: a page has no room for them.
        missing = [each.text for each in told.messages if each.text.split(" (")[0].split(" x ")[0] not in drawn]
        assert missing == []
        assert told.from_ms <= told.until_ms


def test_members_watch_zookeeper_and_are_refused_a_claim() -> None:
    crash = max(_of("crash"), key=lambda each: sum(m.kind == REFUSED for m in each.messages))
    assert crash.actors[-1] == "ZooKeeper"
    notified = [each for each in crash.messages if each.kind == WATCH]
    assert notified
    assert all(each.sender == "ZooKeeper" and each.from_ms <= each.until_ms for each in notified)
    assert any(each.length_ms > 0 for each in notified)  # the change is known from whoever made it
    refused = [each.text for each in crash.messages if each.kind == REFUSED]
    assert any(each.startswith("R11 create") and "NodeExists" in each for each in refused)
    assert crash.causes


def test_request_that_waits_at_the_coordinator_is_sent_once_and_answered_later() -> None:
    told = _of("coordinated/join-eager")[-1]
    asked = [each for each in told.messages if each.kind == REQUEST and each.text == "JoinGroup"]
    answered = [each for each in told.messages if each.kind == ANSWER and each.text.startswith("JoinGroup: generation")]
    assert len(asked) >= len(answered) > 1
    assert {each.receiver for each in asked} == {each.sender for each in answered} <= set(told.actors)
    assert all(each.length_ms == 0 for each in asked)
    states = [each.text for each in told.messages if each.kind == NOTE and each.sender.startswith("broker")]
    assert any("Stable" in each for each in states)
    assert told.generations


def test_coordinator_is_between_its_members_and_zookeeper() -> None:
    assert _of("coordinated/join-server")[-1].actors == ("m1", "m2", "m3", "broker 1", "ZooKeeper", "a broker")


def test_long_conversation_says_how_much_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MEMBERS_MAX", 1)
    monkeypatch.setattr(module, "MESSAGES_MAX", 3)
    told = _of("crash")[0]
    assert len(told.messages) == 3
    assert told.messages_left_out > 0
    assert len(told.members_left_out) == 2


def test_of_many_rebalances_the_first_after_the_change_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DESCRIBED_MAX", 1)
    name = "crash"
    events = tuple(event for event in events_in_order(_traces(name)) if event["kind"] in KINDS_READ)
    first, second, *_ = _of(name)
    for zero_ms, wanted in ((0.0, first), (first.until_ms, second)):
        told = [each.number for each in conversations_of(events, "zookeeper", zero_ms) if each.messages]
        assert told == [wanted.number]
    assert conversations_of((), "eager") == ()


def test_events_are_read_as_they_were_traced(tmp_path: Path) -> None:
    analysed_cut(tmp_path)
    found = {run_id.rpartition("/")[2]: each for run_id, each in read_events(tmp_path).items()}
    for design in ("zookeeper", "eager"):
        traces = [read_trace(path) for path in sorted((tmp_path / "split-brain" / design / "trace").glob("*.jsonl"))]
        wanted = [event for event in events_in_order(traces) if event["kind"] in KINDS_READ]
        assert [(e["ns"], e["kind"]) for e in found[design].events] == [(e["ns"], e["kind"]) for e in wanted]
        assert all(event.items() <= read.items() for event, read in zip(wanted, found[design].events, strict=True))
        assert found[design].left_out == 0


def test_events_of_a_long_run_are_the_first_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    analysed_cut(tmp_path)
    whole = read_events(tmp_path)
    monkeypatch.setattr(reading, "EVENTS_MAX", 5)
    for run_id, cut in read_events(tmp_path).items():
        assert cut.events == whole[run_id].events[: len(cut.events)]
        assert cut.left_out == len(whole[run_id].events) - len(cut.events) > 0


def test_names_of_a_hostile_trace_are_printable(tmp_path: Path) -> None:
    write_hostile(tmp_path)
    analysed_inline(tmp_path)
    (events,) = read_events(tmp_path).values()
    for told in conversations_of(events.events, "zookeeper"):
        assert all(text.isprintable() for text in (told.causes, *told.actors, *(each.text for each in told.messages)))


def test_every_kind_is_in_the_tables() -> None:
    assert KINDS_READ.keys() <= EVENT_SCHEMAS.keys()
