"""An Empty group of the `consumer` design gives way to a classic one, and is back if that cannot be stored."""

from __future__ import annotations

import pytest

from coordinator.groups.answers import JoinAnswer
from coordinator.groups.errors import Error
from coordinator.groups.requests import DeleteGroup
from tests.support.groups.mixed import GROUP, MixedPartition


def emptied() -> MixedPartition:
    """A group whose last member has left, with an offset."""
    at = MixedPartition()
    at.consumer("m")
    assert at.commit("m", 1, absent_group_is_named=True) is Error.NONE
    at.consumer("m", -1)
    assert at.kind == "consumer Empty"
    return at


def test_empty_group_gives_way_to_a_classic_one() -> None:
    at = emptied()
    at.form("a")
    assert at.kind == at.successor().kind == "classic Stable"
    assert GROUP not in at.machine.consumer.groups


@pytest.mark.parametrize("error", [Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE])
def test_group_that_gave_way_is_back_if_its_successor_cannot_be_stored(error: Error) -> None:
    at = emptied()
    before, log = at.group, dict(at.log)
    asked = at.fails(error, at.send_join)
    assert at.answers[asked] == JoinAnswer(error=error, member_id="")
    assert at.group is before
    assert at.kind == at.successor().kind == "consumer Empty"
    assert at.log == log
    at.advance(60_000)
    assert (at.kind, at.log) == ("consumer Empty", log), "no timer of the successor is left"
    assert at.consumer("n").epoch == before.epoch > 1


def test_member_that_got_an_id_from_a_group_that_could_not_be_stored_starts_again() -> None:
    at = emptied()
    at.hold()
    given = at.join(must_return_with_id=True)
    assert given.error is Error.MEMBER_ID_REQUIRED
    at.settle(Error.COORDINATOR_NOT_AVAILABLE)
    assert at.kind == "consumer Empty"
    assert at.join(given.member_id).error is Error.UNKNOWN_MEMBER_ID
    at.form("a")
    assert at.kind == at.successor().kind == "classic Stable"


def test_generation_of_a_group_that_could_not_be_stored_does_not_stay_in_the_log() -> None:
    at = emptied()
    log = dict(at.log)
    at.hold()
    at.send_join()
    at.advance(500)
    at.settle(Error.COORDINATOR_NOT_AVAILABLE)
    assert at.log == log
    assert at.kind == "consumer Empty"


def test_group_that_gave_way_is_back_even_if_its_successor_is_being_deleted() -> None:
    at = emptied()
    at.hold()
    at.join(must_return_with_id=True)
    at.send(DeleteGroup)
    at.settle(Error.COORDINATOR_NOT_AVAILABLE)
    assert at.kind == at.successor().kind == "consumer Empty"
