"""Decoding chunks: every kind of event comes back as it was written, and damaged lines are unusable for the same
reasons as in the plain reader.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comparison.pipeline.bronze import alike
from comparison.pipeline.bronze import decode as decoding
from comparison.pipeline.bronze.decode import KEPT_CHARACTERS, KEPT_LINES, Decoded, beginning
from comparison.pipeline.bronze.kinds import UNKNOWN_KIND
from comparison.pipeline.bronze.runs import TraceFile
from comparison.pipeline.bronze.tables import decoded_tables
from kernel.trace import reader
from kernel.trace.check import problems
from kernel.trace.events import COMMON_FIELDS, KINDS
from kernel.trace.reader import Reason, end_of, event_of
from kernel.trace.words import WORDS
from tests.support.properties import examples
from tests.support.trace.drawn_events import ANY_EVENT, TEXTS, events_of_kind, line_of

#: What a damaged byte becomes: parts of JSON, and bytes that are not.
DAMAGE = st.sampled_from(list(b'"{}[],:\\019-.eatnx \x00\x7f'))


@pytest.fixture(autouse=True, scope="module")
def _nothing_is_alike() -> Iterator[None]:
    """Every line comes to the decoder; test_alike.py has the others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alike, "LINES_MIN", 1 << 40)
        yield


def as_mapping(kind: str, event: Any) -> dict[str, Any]:
    """The decoded event, with every field of its kind."""
    return {**msgspec.to_builtins(event), "kind": getattr(event, "kind", kind)}


def with_every_field(event: dict[str, Any]) -> dict[str, Any]:
    """The event as the decoder has it: fields that are absent are null, those of no meaning are dropped."""
    kind = event["kind"]
    names = [*COMMON_FIELDS, *(KINDS[kind].fields if kind in KINDS else ())]
    return {name: event.get(name) for name in names}


def in_order(decoded: Decoded) -> dict[str, list[dict[str, Any]]]:
    return {kind: [as_mapping(kind, each) for each in events] for kind, events in decoded.events.items() if events}


def by_the_reader(chunk: bytes) -> tuple[dict[str, list[dict[str, Any]]], list[tuple[int, Reason]]]:
    """The plain reader's result: the events by kind, and the place and reason of each unusable line."""
    events: dict[str, list[dict[str, Any]]] = {}
    unusable = []
    for number, line in enumerate(chunk.split(b"\n"), start=1):
        if line.strip() and end_of(line) is None:
            event, reason, _ = event_of(line)
            if reason is not None:
                unusable.append((number, reason))
            elif event is not None:
                kind = event["kind"] if event["kind"] in KINDS else UNKNOWN_KIND
                events.setdefault(kind, []).append(with_every_field(event))
    return events, unusable


def decoded(chunk: bytes) -> Decoded:
    found, tables = decoded_tables(chunk, TraceFile(Path("m0.jsonl"), 0))
    assert {kind: len(table) for kind, table in tables.items()} == {
        kind: len(events) for kind, events in found.events.items()
    }
    return found


def assert_like_the_reader(chunk: bytes) -> None:
    found = decoded(chunk)
    events, unusable = by_the_reader(chunk)
    assert in_order(found) == events
    assert [(each.line, each.reason) for each in found.unusable] == unusable
    assert found.reasons == Counter(str(reason) for _, reason in unusable)
    lines = [beginning(line) for line in chunk.split(b"\n")]
    assert all(each.text == lines[each.line - 1] for each in found.unusable)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_is_decoded_as_it_was_written(kind: str) -> None:
    @given(st.lists(events_of_kind(kind), min_size=1, max_size=3))
    @settings(max_examples=examples(10))
    def check(events: list[dict[str, Any]]) -> None:
        assert not any(problems(event) for event in events)
        found = decoded(b"".join(map(line_of, events)))
        assert in_order(found) == {kind: [with_every_field(event) for event in events]}
        assert found.unusable == []
        assert found.places.tolist() == [[event["seq"], event["ns"]] for event in events]

    check()


@pytest.mark.parametrize(("kind", "field"), sorted(WORDS))
def test_unknown_word_is_unusable_for_the_pipeline_and_the_reader_alike(kind: str, field: str) -> None:
    near = st.sampled_from([case(word) for word in WORDS[kind, field] for case in (str.upper, str.title)])

    @given(events_of_kind(kind), st.one_of(near, TEXTS).filter(lambda word: word not in WORDS[kind, field]))
    @settings(max_examples=examples(20))
    def check(event: dict[str, Any], word: str) -> None:
        good = line_of(event)
        chunk = good + line_of({**event, field: word})
        assert_like_the_reader(chunk)
        assert decoded(chunk).reasons == {Reason.FLAWED: 1}
        assert [each for each in problems({**event, field: word}) if not each.startswith(f"{field} is not ")] == []

    check()


@pytest.mark.parametrize("ending", ["", ":befor", ":After", "before", ":after\n", ":after:"])
def test_reading_of_another_moment_than_before_or_after_is_unusable(ending: str) -> None:
    event = {"seq": 0, "ns": 0, "kind": "counters_read", "process": "r", "member": None, "stream": None, "cause": ""}
    event |= {"server": "s1", "namespace": "consumers", "reads": 1, "writes": 1}
    chunk = line_of({**event, "at": "join:before"}) + line_of({**event, "at": f"join{ending}"})
    assert_like_the_reader(chunk)
    assert decoded(chunk).reasons == {Reason.FLAWED: 1}
    assert problems({**event, "at": f"join{ending}"}) == ["at does not end in :before or :after"]


@given(st.lists(ANY_EVENT, max_size=8))
def test_events_of_several_kinds_stay_in_the_order_of_their_lines(events: list[dict[str, Any]]) -> None:
    found = decoded(b"".join(map(line_of, events)))
    for kind, mine in in_order(found).items():
        assert mine == [with_every_field(event) for event in events if event["kind"] == kind]
    assert found.places.tolist() == [[event["seq"], event["ns"]] for event in events]
    assert found.places.shape == (len(events), 2)


def damaged(draw: st.DrawFn, line: bytes) -> bytes:
    """The line with one damage that leaves its end intact."""
    text = line[:-1]
    place = draw(st.integers(0, len(text)))
    match draw(st.sampled_from(["keep", "replace", "insert", "cut out", "tear"])):
        case "replace":
            text = text[:place] + bytes([draw(DAMAGE)]) + text[place + 1 :]
        case "insert":
            text = text[:place] + bytes([draw(DAMAGE)]) + text[place:]
        case "cut out":
            text = text[:place] + text[place + draw(st.integers(1, 20)) :]
        case "tear":
            text = text[:place]
    return text + b"\n"


@st.composite
def damaged_chunks(draw: st.DrawFn) -> bytes:
    lines = [damaged(draw, line_of(event)) for event in draw(st.lists(ANY_EVENT, max_size=5))]
    for place in draw(st.lists(st.integers(0, len(lines)), max_size=2)):
        lines.insert(
            place, draw(st.sampled_from([b"\n", b"garbage\n", b" \r\n", b'{"end":{"events":1,"monotonic_ns":2}}\n']))
        )
    chunk = b"".join(lines)
    return chunk[: draw(st.integers(0, len(chunk)))] if draw(st.booleans()) else chunk


@given(damaged_chunks())
@settings(max_examples=examples(500))
def test_damaged_lines_are_unusable_for_the_reasons_of_the_plain_reader(chunk: bytes) -> None:
    assert_like_the_reader(chunk)


@given(st.lists(ANY_EVENT, min_size=2, max_size=4), st.data())
def test_line_ends_that_are_lost_or_added_cost_their_lines(events: list[dict[str, Any]], data: st.DataObject) -> None:
    chunk = b"".join(map(line_of, events))
    if data.draw(st.booleans()):
        place = data.draw(st.sampled_from([at for at, byte in enumerate(chunk[:-1]) if byte == ord("\n")]))
        chunk = chunk[:place] + chunk[place + 1 :]
    else:
        place = data.draw(st.integers(0, len(chunk)))
        chunk = chunk[:place] + b"\n" + chunk[place:]
    assert_like_the_reader(chunk)


def line_with(kind: str, fields: str) -> bytes:
    place = '"seq":1,"ns":2,"process":"m0","member":null,"stream":null,"cause":""'
    return f'{{{place},"kind":"{kind}",{fields}}}\n'.encode()


def wanted(count: int) -> bytes:
    return line_with("topic_wanted", f'"topic":"t","wanted":{count}')


def delivered(first: int, last: int, *, serials: str = "3,4") -> bytes:
    serial_first, serial_last = serials.split(",")
    numbers = f'"first":{first},"last":{last},"serial_first":{serial_first},"serial_last":{serial_last}'
    return line_with("records_delivered", f'"topic":"t","partition":0,{numbers}')


def parameters(depth: int) -> bytes:
    return line_with("run_started", f'"parameters":{{"x":{"[" * (depth - 1)}{"]" * (depth - 1)}}}')


GOOD = b'{"seq":1,"ns":2,"kind":"member_closed","process":"m0","member":null,"stream":null,"cause":"","group":"g"}\n'


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (GOOD[:40], Reason.TORN),
        (b"garbage", Reason.NOT_JSON),
        (b"[1]", Reason.NOT_JSON),
        (b"null", Reason.NOT_JSON),
        (b"\xff\xfe", Reason.NOT_JSON),
        (b"\0\0\0", Reason.NOT_JSON),
        (b"{" * 10_000, Reason.TORN),
        (GOOD[:-2] + b',"other":' + b"[" * 10_000 + b"]" * 10_000 + b"}", Reason.NESTED),
        (GOOD.replace(b'"group":"g"', b'"group":"\xff"'), Reason.NOT_JSON),
        (GOOD.replace(b'"seq":1', b'"seq":null'), Reason.FLAWED),
        (GOOD.replace(b'"seq":1', b'"seq":1.0'), Reason.FLAWED),
        (GOOD.replace(b'"seq":1', b'"seq":true'), Reason.FLAWED),
        (GOOD.replace(b'"seq":1', b'"seq":9223372036854775808'), Reason.FLAWED),
        (GOOD.replace(b'"seq":1', b'"seq":99999999999999999999999999'), Reason.FLAWED),
        (GOOD.replace(b'"seq":1', b'"seq":2305843009213693952'), Reason.FLAWED),
        (GOOD.replace(b'"group"', b'"other":"\xff","group"'), Reason.NOT_JSON),
        (GOOD.replace(b'"group"', b'"\xff":1,"group"'), Reason.NOT_JSON),
        (wanted(100_000), None),
        (wanted(100_001), Reason.FLAWED),
        (wanted(-1), Reason.FLAWED),
        (delivered(0, 0), None),
        (delivered(0, (1 << 31) - 1), None),
        (delivered(0, 1 << 31), Reason.FLAWED),
        (delivered(5, 4), Reason.FLAWED),
        (delivered(0, (1 << 63) - 1), Reason.FLAWED),
        (delivered(0, 0, serials="7,null"), Reason.FLAWED),
        (delivered(0, 0, serials="7,6"), Reason.FLAWED),
        (delivered(0, 0, serials="null,null"), None),
        (parameters(50), None),
        (parameters(51), Reason.FLAWED),
        (GOOD.replace(b'"ns":2', b'"ns":2305843009213693952'), Reason.TIME),
        (GOOD.replace(b'"ns":2', b'"ns":-9223372036854775808'), Reason.TIME),
        (GOOD.replace(b'"member_closed"', b"7"), Reason.FLAWED),
        (GOOD.replace(b'"member_closed"', b"null"), Reason.FLAWED),
        (GOOD.replace(b'"kind":"member_closed",', b""), Reason.FLAWED),
        (GOOD.replace(b'"member":null,', b""), Reason.FLAWED),
        (GOOD.replace(b'"group":"g"', b'"group":null'), Reason.FLAWED),
        (GOOD + GOOD[:-1], None),
        (GOOD[:-1] + GOOD, Reason.NOT_JSON),
        (GOOD[:-1] + b" \t\r", None),
        (b" \t" + GOOD, None),
        (GOOD.replace(b'"group"', b'"added":[{}],"group"'), None),
        (b'{"end":{"events":"many","monotonic_ns":2}}', Reason.FLAWED),
        (b'{"end":{"events":1,', Reason.TORN),
    ],
)
def test_reason_of_a_line_between_two_good_ones(line: bytes, reason: Reason | None) -> None:
    chunk = GOOD + line.rstrip(b"\n") + b"\n" + GOOD
    assert_like_the_reader(chunk)
    assert [each.reason for each in decoded(chunk).unusable] == ([reason] if reason is not None else [])


def test_unknown_kind_is_an_event_and_its_own_fields_are_dropped() -> None:
    line = GOOD.replace(b"member_closed", b"member_danced")
    assert_like_the_reader(GOOD + line)
    (event,) = decoded(line).events[UNKNOWN_KIND]
    assert (event.kind, event.seq, event.ns, event.process) == ("member_danced", 1, 2, "m0")


@pytest.mark.parametrize("chunk", [b"", b"\n", b" \n\n"])
def test_chunk_without_lines_has_no_events(chunk: bytes) -> None:
    found = decoded(chunk)
    assert (in_order(found), found.unusable, found.places.shape) == ({}, [], (0, 2))


def test_unusable_line_is_shown_by_its_beginning_with_the_problem() -> None:
    chunk = GOOD + GOOD.replace(b'"group":"g"', b'"group":5,"more":"' + b"x" * 1_500 + b'"')
    (unusable,) = decoded(chunk).unusable
    assert (unusable.line, unusable.detail) == (2, "group should be text, is int")
    assert chunk[len(GOOD) :].startswith(unusable.text.encode())
    assert len(unusable.text) == KEPT_CHARACTERS


def test_only_the_first_unusable_lines_are_kept_and_all_are_counted() -> None:
    found = decoded(GOOD + b"garbage\n" * (KEPT_LINES + 5))
    assert [each.line for each in found.unusable] == list(range(2, KEPT_LINES + 2))
    assert found.reasons == {str(Reason.NOT_JSON): KEPT_LINES + 5}


@pytest.mark.parametrize("extra", [-1, 0, 1])
@pytest.mark.parametrize("before", [0, 1, 300])
def test_line_that_is_too_long_is_unusable(monkeypatch: pytest.MonkeyPatch, extra: int, before: int) -> None:
    monkeypatch.setattr(decoding, "LINE_BYTES_MAX", 400)
    monkeypatch.setattr(reader, "LINE_BYTES_MAX", 400)
    long = GOOD.replace(b'"g"', b'"' + b"x" * (400 - len(GOOD) + 2 + extra) + b'"')
    assert len(long) == 401 + extra
    chunk = GOOD * before + long + GOOD * 10
    assert_like_the_reader(chunk)
    assert [each.reason for each in decoded(chunk).unusable] == [Reason.LONG] * (extra == 1)
