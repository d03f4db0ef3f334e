"""The two APIs of the server design as bytes: the page's example, round trips, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.protocol.server.commands import (
    AwaitCommand,
    Command,
    CommandAnswer,
    CommitOwned,
    CommittedPartition,
    OwnedCommitAnswer,
    OwnedOffset,
    StartedPartition,
)
from coordinator.protocol.server.errors import ServerError
from coordinator.protocol.server.member_znode import TOPICS_MAX, registration_payload, subscribed_topics
from coordinator.protocol.server.messages import (
    WAIT_MS_MAX,
    await_body,
    command_answer_body,
    commit_answer_body,
    commit_body,
    read_await,
    read_command_answer,
    read_commit,
    read_commit_answer,
)
from kernel.wire import codec
from kernel.wire.errors import MalformedFrame
from kernel.wire.versions import Api

INT32 = st.integers(0, 2**31 - 1)
INT64 = st.integers(0, 2**63 - 1)
IDS = st.text("abcé-_.0", min_size=3, max_size=9)
TOPICS = st.text("abc-_.0", min_size=1, max_size=9)
ASKED = AwaitCommand(group_id="g", member_id="a", generation=4, stopped=3, topics=("t",), wait_ms=30_000)
COMMIT = CommitOwned(group_id="g", member_id="a", generation=4, offsets=(OwnedOffset("t", 0, 17),))


def request_body(api: Api, body: dict[str, object]) -> object:
    return codec.decode_request(codec.encode_request(api, 0, 3, "client", body)[4:]).body


def response_body(api: Api, body: dict[str, object]) -> object:
    return codec.decode_response(api, 0, codec.encode_response(api, 0, 3, body)[4:])[1]


def test_start_has_the_bytes_that_the_page_shows() -> None:
    answer = CommandAnswer(command=Command.START, generation=5, partitions=(StartedPartition("t", 1, 9),))
    shown = "0000001e 00000003 0000 02 00000005 00000001 0001 74 00000001 0000000000000009"
    assert codec.encode_response(Api.AwaitCommand, 0, 3, command_answer_body(answer)) == bytes.fromhex(shown)


@given(
    st.builds(
        lambda generation, stopped, **rest: AwaitCommand(
            generation=generation, stopped=min(generation, stopped), **rest
        ),
        generation=st.integers(-1, 2**31 - 1),
        stopped=st.integers(-1, 2**31 - 1),
        group_id=IDS,
        member_id=IDS,
        strategy=st.text(max_size=9),
        topics=st.lists(TOPICS, max_size=3).map(tuple),
        wait_ms=st.integers(0, WAIT_MS_MAX),
    )
)
def test_await_command_survives_a_round_trip(asked: AwaitCommand) -> None:
    assert read_await(request_body(Api.AwaitCommand, await_body(asked))) == asked


@given(
    st.builds(
        CommandAnswer,
        error=st.sampled_from(ServerError),
        command=st.sampled_from(Command),
        generation=INT32,
        partitions=st.lists(st.builds(StartedPartition, TOPICS, INT32, INT64 | st.just(-1)), max_size=3).map(tuple),
    )
)
def test_command_survives_a_round_trip(answer: CommandAnswer) -> None:
    assert read_command_answer(response_body(Api.AwaitCommand, command_answer_body(answer))) == answer


OFFSETS = st.lists(
    st.builds(OwnedOffset, TOPICS, INT32, INT64, st.text(max_size=4)), max_size=4, unique_by=lambda o: o[:2]
)
RESULTS = st.lists(st.builds(CommittedPartition, TOPICS, INT32, st.sampled_from(ServerError)), max_size=4)


@given(OFFSETS, RESULTS)
def test_commit_and_its_answer_survive_a_round_trip(
    offsets: list[OwnedOffset], results: list[CommittedPartition]
) -> None:
    commit = replace(COMMIT, offsets=tuple(offsets))
    assert read_commit(request_body(Api.CommitOwned, commit_body(commit))) == commit
    answer = OwnedCommitAnswer(partitions=tuple(results))
    assert read_commit_answer(response_body(Api.CommitOwned, commit_answer_body(answer))) == answer


@pytest.mark.parametrize(
    "change",
    [
        {"group_id": ""},
        {"group_id": "."},
        {"member_id": "a/b"},
        {"member_id": "\n"},
        {"member_id": "x" * 2_000},
        {"generation": -2},
        {"stopped": -2},
        {"strategy": "r" * 2_000},
        {"topics": ("",)},
        {"topics": ("t" * 250,)},
        {"topics": ("t",) * (TOPICS_MAX + 1)},
        {"wait_ms": -1},
        {"wait_ms": WAIT_MS_MAX + 1},
    ],
)
def test_await_command_out_of_bounds_is_a_malformed_frame(change: dict[str, object]) -> None:
    body = request_body(Api.AwaitCommand, await_body(ASKED) | change)
    with pytest.raises(MalformedFrame):
        read_await(body)


@pytest.mark.parametrize(
    "offset",
    [
        {"partition": -1},
        {"offset": -1},
        {"topic": ""},
        {"partition": 1},  # twice
    ],
)
def test_a_commit_out_of_bounds_is_a_malformed_frame(offset: dict[str, object]) -> None:
    fine = {"topic": "t", "partition": 1, "offset": 1, "metadata": None}
    body = request_body(Api.CommitOwned, commit_body(COMMIT) | {"offsets": [fine, fine | {"partition": 0} | offset]})
    with pytest.raises(MalformedFrame):
        read_commit(body)


@pytest.mark.parametrize("change", [{"command": 3}, {"error_code": 9_999}, {"command": 1, "generation": -1}])
def test_answer_that_violates_the_protocol_is_a_malformed_frame(change: dict[str, object]) -> None:
    body = response_body(Api.AwaitCommand, command_answer_body(CommandAnswer()) | change)
    with pytest.raises(MalformedFrame):
        read_command_answer(body)


def test_a_member_runs_what_it_started_until_it_has_stopped_it() -> None:
    assert ASKED.runs == 4
    assert replace(ASKED, stopped=4).runs == -1
    assert replace(ASKED, generation=-1, stopped=-1).runs == -1


def test_registration_without_the_mark_is_not_of_this_design() -> None:
    assert subscribed_topics(registration_payload(("b", "a"), 1)) == ("a", "b")
    unmarked = b'{"version":1,"subscription":{"t":1},"pattern":"static","timestamp":"1"}'
    nonsense = b'{"design":"server","subscription":{"\\ud800":1}}', b'{"design":"server","subscription":{"":1}}'
    for data in (*nonsense, unmarked, b"", b"[1]", b"\xff", b'{"design":"server","subscription":[1]}', b"[" * 100_000):
        assert subscribed_topics(data) is None
