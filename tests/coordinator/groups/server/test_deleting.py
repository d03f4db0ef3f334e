"""DeleteGroups of a group of the server design while an earlier deletion is being stored."""

from __future__ import annotations

from coordinator.groups.errors import Error
from coordinator.groups.requests import DeleteGroup
from tests.support.groups.server import GROUP, Question, Served


def being_deleted() -> tuple[Served, Question]:
    """A group without members, and the request whose deletion is not durable yet."""
    world = Served()
    world.register("a")
    world.settle("a")
    world.unregister("a")
    world.pass_ms(60_000)
    assert world.state == "Empty"
    world.holding = True
    first = delete(world)
    assert (world.state, first.answer) == ("Dead", None)
    return world, first


def delete(world: Served) -> Question:
    return world.request(lambda token: DeleteGroup(token=token, group_id=GROUP))


def test_group_that_is_being_deleted_is_not_found_and_its_deletion_goes_on() -> None:
    world, first = being_deleted()
    assert delete(world).answer.error is Error.GROUP_ID_NOT_FOUND
    assert (world.state, first.answer, len(world.writes)) == ("Dead", None, 1)
    world.write_all()
    assert first.answer.error is Error.NONE
    assert not world.log


def test_group_that_is_being_deleted_can_be_deleted_after_that_has_failed() -> None:
    world, first = being_deleted()
    assert delete(world).answer.error is Error.GROUP_ID_NOT_FOUND
    world.write_all(Error.UNKNOWN_SERVER_ERROR)
    assert (first.answer.error, world.state) == (Error.UNKNOWN_SERVER_ERROR, "Empty")
    assert delete(world).answer.error is Error.NONE
