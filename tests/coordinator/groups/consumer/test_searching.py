"""When a group's regular expressions are searched for, and what members get then."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator.groups.consumer.searching import BETWEEN_SEARCHES_MS
from coordinator.groups.consumer_records import RegexKey
from coordinator.groups.errors import Error
from tests.support.groups.consumer import GROUP, SETTINGS, WALL_MS, World, by_name

LONG = replace(SETTINGS, session_timeout_ms=100_000)


@pytest.fixture
def world() -> World:
    """A member has joined with an expression, and its topics have been found."""
    world = World({"foo": 2, "bar": 1}, LONG)
    joined = world.join("a", topics=None, topic_regex="fo.*")
    assert (joined.epoch, joined.assignment) == (1, {})
    world.search()
    return world


def test_member_gets_the_topics_with_the_next_epoch(world: World) -> None:
    answer = world.beat("a")
    assert (answer.epoch, by_name(answer.assignment)) == (2, {"foo": [0, 1]})
    assert world.log[RegexKey(GROUP, "fo.*")] == (("foo",), 1, WALL_MS)
    world.advance(BETWEEN_SEARCHES_MS + 1)
    world.beat("a")
    assert not world.searches, "nothing has changed"


def test_another_expression_waits_until_ten_seconds_after_the_last_search(world: World) -> None:
    world.beat("a")
    assert world.join("b", topics=None, topic_regex="ba.*").epoch == 2  # no new epoch, as in 4.1.1
    world.advance(BETWEEN_SEARCHES_MS)
    world.beat("b")
    assert not world.searches
    world.advance(1)
    world.beat("a")  # a heartbeat of any member that brings an expression, or has one
    assert [(search.group_id, search.regexes) for search in world.searches] == [(GROUP, ("ba.*", "fo.*"))]
    world.beat("b")
    assert len(world.searches) == 1
    world.search()
    assert by_name(world.beat("b").assignment) == {"bar": [0]}
    assert world.beat("a").epoch == 3


def test_expression_that_others_use_already_has_its_topics_at_once(world: World) -> None:
    world.beat("a")
    assert world.join("b", topics=None, topic_regex="fo.*").epoch == 3
    assert by_name(world.beat("a").assignment) == {"foo": [0]}


def test_created_topics_are_found_and_others_change_nothing(world: World) -> None:
    world.beat("a")
    world.advance(BETWEEN_SEARCHES_MS + 1)
    world.sizes["baz"], world.names_version = 1, 2
    world.beat("a")
    world.search()
    assert world.beat("a").epoch == 2
    world.advance(BETWEEN_SEARCHES_MS + 1)
    world.sizes["food"], world.names_version = 1, 3
    world.beat("a")
    world.search()
    assert by_name(world.beat("a").assignment) == {"foo": [0, 1], "food": [0]}
    assert world.epochs["a"] == 3


def test_search_is_repeated_at_the_refresh_interval(world: World) -> None:
    world.settings = replace(LONG, regex_refresh_ms=20_000)
    world.beat("a")
    world.advance(20_000)
    world.beat("a")
    assert not world.searches
    world.advance(1)
    world.beat("a")
    assert world.searches


def test_failed_search_changes_nothing_and_is_repeated() -> None:
    world = World({"foo": 1}, LONG)
    world.join("a", topics=None, topic_regex="fo.*")
    world.searches.clear()
    world.step(lambda turn: world.groups.matched(GROUP, {}, turn))
    world.beat("a")
    assert not world.searches
    world.advance(BETWEEN_SEARCHES_MS + 1)
    world.beat("a")
    world.search()
    assert by_name(world.beat("a").assignment) == {"foo": [0]}


def test_topics_that_could_not_be_stored_are_searched_again(world: World) -> None:
    world.beat("a")
    world.advance(BETWEEN_SEARCHES_MS + 1)
    world.sizes["food"], world.names_version = 1, 2
    world.beat("a")
    world.hold()
    world.search()
    world.settle(Error.UNKNOWN_SERVER_ERROR)
    assert world.group.epoch == 2
    world.advance(BETWEEN_SEARCHES_MS + 1)
    world.beat("a")
    world.search()
    assert world.beat("a").epoch == 3


def test_successor_has_the_topics_and_searches_again_when_it_may(world: World) -> None:
    world.beat("a")
    successor = world.successor()
    successor.names_version = 7
    assert successor.beat("a").epoch == 2
    assert not successor.searches
    successor.advance(BETWEEN_SEARCHES_MS + 1)
    successor.beat("a")
    successor.search()
    assert successor.beat("a").epoch == 2, "the same topics"


def test_member_that_gives_its_expression_up_loses_its_topics(world: World) -> None:
    world.beat("a")
    answer = world.beat("a", topic_regex="", topics=("bar",))
    assert (answer.epoch, by_name(answer.assignment)) == (2, {})
    assert not world.group.regexes
    assert by_name(world.beat("a", owned={}).assignment) == {"bar": [0]}


def test_expression_of_the_last_member_is_searched_at_once_for_the_next_one(world: World) -> None:
    world.beat("a")
    world.leave("a")
    assert not world.group.regexes
    world.join("b", topics=None, topic_regex="fo.*")
    world.search()
    assert by_name(world.beat("b").assignment) == {"foo": [0, 1]}


def test_failed_search_keeps_its_pause_where_nothing_is_stored() -> None:
    world = World({"foo": 1}, LONG)
    world.join("a", topics=None, topic_regex="fo.*")
    world.searches.clear()
    world.step(lambda turn: world.groups.matched(GROUP, {}, turn))
    world.leave("a")
    world.join("b", topics=None, topic_regex="fo.*")
    world.advance(BETWEEN_SEARCHES_MS)
    world.beat("b")
    assert not world.searches
    world.advance(1)
    world.beat("b")
    world.search()
    assert by_name(world.beat("b").assignment) == {"foo": [0]}


def test_changed_expression_leaves_the_partitions_until_its_topics_are_found(world: World) -> None:
    world.beat("a")
    for _ in range(2):
        answer = world.beat("a", topic_regex="fo.*|ba.*")
        assert (answer.epoch, answer.assignment) == (2, None)
    assert [search.regexes for search in world.searches] == [("fo.*|ba.*",)], "at the heartbeat after the change"
    world.search()
    answer = world.beat("a")
    assert (answer.epoch, by_name(answer.assignment)) == (3, {"foo": [0, 1], "bar": [0]})


def test_changed_expression_that_matches_nothing_takes_the_partitions_away_when_that_is_found(world: World) -> None:
    world.beat("a")
    world.beat("a", topic_regex="zz.*")
    assert world.beat("a").assignment is None
    world.search()
    answer = world.beat("a")
    assert (answer.epoch, by_name(answer.assignment)) == (2, {})


def test_expression_that_is_given_up_for_nothing_leaves_the_partitions(world: World) -> None:
    world.beat("a")
    for _ in range(2):
        answer = world.beat("a", topic_regex="")
        assert (answer.epoch, answer.assignment) == (2, None)
    assert not world.group.regexes
    assert not world.searches


def test_topic_that_a_changed_expression_will_match_makes_no_epoch_of_its_own(world: World) -> None:
    world.beat("a")
    world.sizes["baz"], world.names_version, world.view = 1, 2, object()
    assert world.beat("a", topic_regex="baz").epoch == 2
    world.sizes["foo"], world.view = 5, object()  # which nobody subscribes to any more
    assert world.beat("a").epoch == 2
    world.search()
    assert (world.beat("a").epoch, world.beat("a", {}).epoch) == (2, 3)
    assert by_name(world.group.members["a"].assigned) == {"baz": [0]}


def test_expression_that_is_forgotten_is_a_reason_to_search_the_others(world: World) -> None:
    world.beat("a")
    world.join("b", topics=None, topic_regex="ba.*")
    world.advance(BETWEEN_SEARCHES_MS + 1)
    world.beat("b")
    world.search()
    world.advance(BETWEEN_SEARCHES_MS + 1)
    world.beat("b", topic_regex="fo.*")
    assert [search.regexes for search in world.searches] == [("fo.*",)]
    world.search()
    world.join("c", topics=None, topic_regex="ba.*")
    assert not world.searches, "it waits for the pause"


def test_members_who_join_before_a_target_is_made_are_taken_for_subscribed_like_the_first(world: World) -> None:
    answer = world.join("b", topics=None, topic_regex="ba.*")
    assert (answer.epoch, by_name(answer.assignment)) == (2, {"foo": [1]}), "as 4.1.1, until the next epoch"
    world.advance(BETWEEN_SEARCHES_MS + 1)
    world.beat("a")
    world.search()
    assert by_name(world.beat("b").assignment) == {}
    assert by_name(world.beat("b", {}).assignment) == {"bar": [0]}
