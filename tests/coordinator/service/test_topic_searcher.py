"""Regular expressions asked of the handlers: searched beside the heartbeats, stored, and found by a successor."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from coordinator.service import topic_searcher
from coordinator.service.topic_regex import InvalidRegexError, compiled, problem
from coordinator.service.topics import Topics
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from tests.support.coordinators.in_memory import LoneCoordinator
from tests.support.time.manual_clock import ManualClock


class Story:
    def __init__(self, coordinator: LoneCoordinator) -> None:
        self.coordinator = coordinator

    async def beat(self, epoch: int, *, member: str = "m", **told: Any) -> Any:
        joining = {"rebalance_timeout": 300_000, "topic_partitions": []}
        body = {"group_id": "g", "member_id": member, "member_epoch": epoch, **({} if epoch else joining), **told}
        connection = await self.coordinator.connect(member)
        answer = await connection.call(Api.ConsumerGroupHeartbeat, 1, **body)
        connection.close()
        return answer

    def topics(self, answer: Any) -> list[str]:
        names = self.coordinator.cluster.snapshot.topic_names
        return sorted(names[row.topic_id] for row in answer.assignment.topic_partitions)


@asynccontextmanager
async def playing(clock: ManualClock, **topics: int) -> AsyncIterator[Story]:
    coordinator = LoneCoordinator(clock, {}, topics)
    await coordinator.lead_all()
    try:
        yield Story(coordinator)
    finally:
        await coordinator.stop()


async def test_topics_that_match_come_with_a_later_epoch_internal_ones_too_as_from_4_1_1(
    virtual_clock: ManualClock,
) -> None:
    async with playing(virtual_clock, foo=1, food=1, bar=1) as told:
        joined = await told.beat(0, subscribed_topic_regex="foo.*|__.*")
        assert (joined.error_code, joined.member_epoch, told.topics(joined)) == (ErrorCode.none, 1, [])
        await asyncio.sleep(1)
        found = await told.beat(1)
        assert (found.member_epoch, told.topics(found)) == (2, ["__consumer_offsets", "foo", "food"])
        told.coordinator.cluster.change_topic("fool", 1)
        await asyncio.sleep(10)
        await told.beat(2)
        await asyncio.sleep(1)
        assert told.topics(await told.beat(2)) == ["__consumer_offsets", "foo", "food", "fool"]


async def test_wrong_expression_is_refused_with_kafkas_words(virtual_clock: ManualClock) -> None:
    async with playing(virtual_clock, foo=1) as told:
        refused = await told.beat(0, subscribed_topic_regex="fo[")
        assert refused.error_code.name == "invalid_regular_expression"
        assert refused.error_message == (
            "SubscribedTopicRegex `fo[` is not a valid regular expression: missing closing ]."
        )
        assert (await told.beat(5, subscribed_topic_regex="fo[")).error_code is ErrorCode.group_id_not_found


async def test_successor_knows_what_was_found(virtual_clock: ManualClock) -> None:
    async with playing(virtual_clock, foo=1) as told:
        await told.beat(0, subscribed_topic_regex="foo")
        await asyncio.sleep(1)
        assert told.topics(await told.beat(1)) == ["foo"]
        await told.coordinator.resign_all()
        await told.coordinator.lead_all(1)
        answer = await told.beat(2, rebalance_timeout=300_000, subscribed_topic_names=[], topic_partitions=[])
        assert (answer.member_epoch, told.topics(answer)) == (2, ["foo"])


async def test_search_that_takes_too_long_is_given_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, virtual_clock: ManualClock
) -> None:
    async with playing(virtual_clock, foo=1) as told:
        monkeypatch.setattr(topic_searcher, "MATCHING_S_MAX", 0.0)
        await told.beat(0, subscribed_topic_regex="foo")
        await asyncio.sleep(1)
        assert (await told.beat(1)).member_epoch == 1
        monkeypatch.undo()
        await asyncio.sleep(10)
        await told.beat(1)
        await asyncio.sleep(1)
        assert told.topics(await told.beat(1)) == ["foo"]
    assert "group g: a regular expression took longer than 0 s" in caplog.text


# -- regular expressions for topics, beside what Kafka's re2j answered to the same ones --------------------------------

RECORDED = json.loads((Path(__file__).parent / "regex-answers.json").read_text(encoding="utf-8"))
#: Programs of more than 8 MiB, and repetitions that multiply to more than 1,000.
TOO_LARGE = {
    "(a{100}){11}": "invalid repeat count",
    "(a{1000}){1000}": "invalid repeat count",
    "((a{10}){10}){11}": "invalid repeat count",
    "((a{100}){100}){100}": "invalid repeat count",
    "(\\pL{500}){2}": "pattern too large",
    "(\\pL{1000})": "pattern too large",
}


def answer(pattern: str) -> str | list[int]:
    try:
        regex = compiled(pattern)
    except InvalidRegexError as error:
        return str(error)
    return [place for place, name in enumerate(RECORDED["names"]) if regex.fullmatch(name.encode()) is not None]


def test_expressions_match_and_are_refused_as_by_re2j() -> None:
    wrong = {
        pattern: (expected, found)
        for pattern, expected in RECORDED["answers"].items()
        if (found := answer(pattern)) != TOO_LARGE.get(pattern, expected)
    }
    assert not wrong
    assert len(RECORDED["answers"]) > 350
    assert TOO_LARGE.keys() < RECORDED["answers"].keys()


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("\\QC\\C\\E\\C", "invalid escape sequence"),  # the first \C is quoted
        ("\\QC\\C\\E", None),
        ("\\Q\\C\n", None),
        ("[(?<n>](?<n>a)", None),
        ("(?<n>a)[(?<n>]", None),
        ("[^](?P<n>a)[]](?P<n>b)", None),
        ("[[:alpha:](?<n>a)](?<n>b)(?<m>c)", None),
        ("[{999999999}]", None),
        ("[:alpha:](?<n>a)(?<n>b)", "duplicate capture group name"),
        ("a{1,999999999}", "invalid repeat count"),
        ("a{099999999999}", None),  # not a count
        ("\\p{^Kawi}", "invalid character class range"),
        ("[\\p{Kawi}]", "invalid character class range"),
        ("[\\é]", None),
        ("(?<=a)b", "invalid named capture"),
        ("\ud800", "invalid UTF-8"),
    ],
)
def test_what_only_re2j_refuses_is_found_where_it_stands(pattern: str, why: str | None) -> None:
    assert problem(pattern) == why


@pytest.mark.parametrize("pattern", ["\\pL" * 101, "(\\pL{0,300})"])
def test_expression_that_would_take_long_to_compile_is_refused(pattern: str) -> None:
    assert problem(pattern) == "pattern too large"


def test_thousands_of_names_are_an_expression_that_can_be_used() -> None:
    regex = compiled("|".join(f"topic-{number}" for number in range(3_000)))
    assert regex.fullmatch(b"topic-2999") is not None
    assert regex.fullmatch(b"topic-3000") is None


# -- what groups of the `consumer` design see of the cluster's topics --------------------------------------------------


def test_topics_that_are_created_make_another_version_of_the_names_even_if_the_name_is_known() -> None:
    clock = ManualClock()
    cluster = LoneCoordinator(clock, {}, {"t": 1}).cluster
    topics = Topics(cluster, clock)
    versions = [topics.names_version()]
    cluster.change_topic("t", 2)
    assert topics.names_version() == versions[0], "it has grown"
    cluster.change_topic("t", 0)
    assert topics.names_version() == versions[0], "it has gone"
    cluster.change_topic("u", 1)
    versions.append(topics.names_version())
    cluster.change_topic("u", 0)
    cluster.change_topic("u", 1)
    versions.append(topics.names_version())
    assert versions == sorted(set(versions))
