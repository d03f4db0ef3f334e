"""What the trace says of groups of the `consumer` design, and when."""

from __future__ import annotations

from functools import partial

from coordinator.groups.errors import Error
from kernel.trace.events import KINDS
from tests.support.groups.consumer import GROUP, World


def said(world: World, since: int = 0) -> list[tuple[object, ...]]:
    """Each event as (kind, the fields that say something)."""
    return [
        (event.kind, *(value for name, value in event.fields.items() if name not in ("group", "topic")))
        for event in world.events[since:]
    ]


def test_rebalance_begins_with_the_new_epoch_and_ends_when_every_member_has_its_target() -> None:
    world = World({"foo": 2})
    world.join("a", "foo")
    assert said(world) == [
        ("group_member_joined", "a"),
        ("group_changed", "Assigning", 1, 1, "member joined"),
        ("authority_named", 0, "a", 1),
        ("authority_named", 1, "a", 1),
        ("group_member_advanced", "a", 1),
        ("group_changed", "Stable", 1, 1, "every member has its target"),
    ]
    mark = len(world.events)
    world.join("b", "foo")
    world.beat("a")
    world.beat("a", owned={"foo": [0]})
    world.beat("b")
    assert said(world, mark) == [
        ("group_member_joined", "b"),
        ("group_changed", "Assigning", 2, 2, "member joined"),
        ("group_member_advanced", "b", 2),
        ("group_changed", "Reconciling", 2, 2, "target computed"),
        ("authority_cleared", 1, "a", 1, "revoked"),
        ("group_member_advanced", "a", 2),
        ("authority_named", 1, "b", 2),
        ("group_changed", "Stable", 2, 2, "every member has its target"),
    ]
    mark = len(world.events)
    world.beat("a")
    world.beat("b")
    assert world.events[mark:] == []
    assert all(event.kind in KINDS for event in world.events)


def test_members_that_leave_fall_silent_or_keep_what_they_shall_give_up_lose_their_partitions_for_that_reason() -> None:
    world = World({"foo": 2})
    world.join("a", "foo", rebalance_timeout_ms=1_000)
    world.join("b", "foo")
    world.beat("a")
    mark = len(world.events)
    world.advance(1_000)
    assert said(world, mark) == [
        ("group_member_left", "a", "not revoked in time"),
        ("group_changed", "Assigning", 3, 1, "partitions not revoked in time"),
        ("authority_cleared", 0, "a", 1, "not revoked in time"),
        ("authority_cleared", 1, "a", 1, "not revoked in time"),
    ]
    world.beat("b")
    mark = len(world.events)
    world.advance(3_000)
    assert said(world, mark) == [
        ("group_member_left", "b", "session"),
        ("group_changed", "Empty", 4, 0, "session expired"),
        ("authority_cleared", 0, "b", 3, "session"),
        ("authority_cleared", 1, "b", 3, "session"),
    ]
    world.join("c", "foo")
    mark = len(world.events)
    world.leave("c")
    assert said(world, mark)[:2] == [
        ("group_member_left", "c", "leave"),
        ("group_changed", "Empty", 6, 0, "member left"),
    ]


def test_static_member_that_returns_under_another_id_takes_over_without_a_new_epoch() -> None:
    world = World({"foo": 1})
    world.join("a", "foo", instance_id="i")
    world.leave("a", -2, instance_id="i")
    mark = len(world.events)
    world.join("b", "foo", instance_id="i")
    assert said(world, mark) == [
        ("group_member_left", "a", "fenced"),
        ("group_member_joined", "b"),
        ("authority_cleared", 0, "a", 1, "fenced"),
        ("authority_named", 0, "b", 1),
        ("group_member_advanced", "b", 1),
        ("group_changed", "Stable", 1, 1, "every member has its target"),
    ]


def test_nothing_is_traced_before_it_is_durable_nor_if_it_cannot_be_stored() -> None:
    world = World({"foo": 1})
    world.hold()
    world.send("a", 0, rebalance_timeout_ms=5_000, topics=("foo",), owned={})
    assert world.events == []
    world.settle(Error.UNKNOWN_SERVER_ERROR)
    assert world.events == []


def test_successor_names_the_owners_again_and_a_deleted_group_is_dead() -> None:
    world = World({"foo": 1})
    world.join("a", "foo")
    successor = world.successor()
    assert said(successor) == [("authority_named", 0, "a", 1)]
    successor.leave("a")
    successor.step(partial(successor.groups.delete, GROUP, None))
    assert said(successor)[-1] == ("group_changed", "Dead", 2, 0, "deleted")
    world.step(world.groups.unload)
    assert said(world)[-1] == ("group_changed", "Dead", 1, 1, "coordinator moved")
