"""Which members of a server group may commit, which clients may use its id, and what administrators see and do."""

from __future__ import annotations

import pytest

from coordinator.groups.answers import CommitAnswer, DeleteGroupAnswer, DeleteOffsetsAnswer, JoinAnswer
from coordinator.groups.classic.states import GroupState
from coordinator.groups.errors import Error
from coordinator.groups.records import ServerKey, ServerMember, ServerRecord
from coordinator.groups.requests import Commit, DeleteGroup, DeleteOffsets, Join, OffsetToCommit, Producer, Protocol
from coordinator.service.record_codec import decode_all, encode
from coordinator.service.record_reader import MalformedRecord
from kernel.values import TopicPartition
from tests.support.groups.server import GROUP, REBALANCE_TIMEOUT_MS, Question, Served


def stable(*members: str) -> Served:
    world = Served()
    world.register(*members)
    world.settle(*members)
    return world


def delete(world: Served) -> Question:
    return world.request(lambda token: DeleteGroup(token=token, group_id=GROUP))


def join(world: Served, member_id: str = "") -> Question:
    return world.request(
        lambda token: Join(
            token=token,
            group_id=GROUP,
            member_id=member_id,
            client_id="c",
            client_host="/127.0.0.1",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=(Protocol("range", b""),),
            fresh_id="1",
            must_return_with_id=False,
        )
    )


def test_commit_is_checked_by_member_generation_and_partition_in_this_order() -> None:
    world = stable("a", "b")
    assert world.errors(world.commit("c", {"t-0": 1}, generation=1)) == {"t-0": "UNKNOWN_MEMBER_ID"}
    assert world.errors(world.commit("a", {"t-0": 1}, generation=0)) == {"t-0": "ILLEGAL_GENERATION"}
    assert world.errors(world.commit("a", {"t-0": 1}, generation=2)) == {"t-0": "ILLEGAL_GENERATION"}
    mixed = world.commit("a", {"t-0": 1, "t-3": 2})
    assert world.errors(mixed) == {"t-0": "NONE", "t-3": "PARTITION_NOT_ASSIGNED"}
    assert world.committed() == {"t-0": 1}
    assert world.traced("offset_written", "partition", "offset", "by", "epoch") == [(0, 1, "a", 1)]
    refused = world.traced("offset_refused", "partition", "by", "epoch", "error")
    assert refused[-1] == (3, "a", 1, "PARTITION_NOT_ASSIGNED")
    assert Served().errors(Served().commit("a", {"t-0": 1}, generation=1)) == {"t-0": "UNKNOWN_MEMBER_ID"}


def test_commit_is_acknowledged_when_durable_and_not_when_fenced() -> None:
    world = stable("a")
    world.holding = True
    waits = world.commit("a", {"t-0": 1})
    assert (waits.answer, world.committed()) == (None, {})
    world.write_all(Error.NOT_COORDINATOR)
    assert (world.errors(waits), world.committed()) == ({"t-0": "NOT_COORDINATOR"}, {})


def test_commit_of_a_moving_partition_is_refused_once_the_next_generation_is_being_stored() -> None:
    world = stable("a")
    world.holding = True
    in_time = world.commit("a", {"t-0": 1})
    world.register("b")
    world.pass_ms(REBALANCE_TIMEOUT_MS)  # a is dropped, generation 2 is being stored
    too_late = world.commit("a", {"t-0": 2})
    world.write_all()
    assert (world.errors(in_time), world.errors(too_late)) == ({"t-0": "NONE"}, {"t-0": "ILLEGAL_GENERATION"})
    assert world.ask("b").answer.partitions[0].offset == 1


@pytest.mark.parametrize("producer", [None, Producer(1, 0)])
def test_commits_without_a_member_are_refused_while_the_group_has_members(producer: Producer | None) -> None:
    world = stable("a")

    def commit() -> CommitAnswer:
        offsets = (OffsetToCommit("t", 0, 5),)
        question = world.request(lambda token: Commit(token=token, group_id=GROUP, offsets=offsets, producer=producer))
        answer: CommitAnswer = question.answer
        return answer

    assert [error for _, _, error in commit().partitions] == [Error.UNKNOWN_MEMBER_ID]
    world.unregister("a")
    world.obey("a")
    world.pass_ms(60_000)
    assert [error for _, _, error in commit().partitions] == [Error.NONE]


def test_group_id_belongs_to_the_design_that_has_members() -> None:
    world = stable("a")
    assert join(world).answer == JoinAnswer(error=Error.INCONSISTENT_GROUP_PROTOCOL, member_id="")
    world.unregister("a")
    world.obey("a")
    world.pass_ms(60_000)
    joined = join(world)
    assert joined.answer is None  # the initial delay
    assert world.ask("a").received[0] == "INCONSISTENT_GROUP_PROTOCOL"
    assert world.errors(world.commit("a", {"t-0": 1})) == {"t-0": "INCONSISTENT_GROUP_PROTOCOL"}
    assert world.machine.describe(GROUP).protocol_type == "consumer"
    assert [row.protocol_type for row in world.machine.list() if row] == ["consumer"]


def test_offsets_of_a_group_with_members_are_not_deleted_and_do_not_expire() -> None:
    world = stable("a")
    world.commit("a", {"t-0": 1})
    world.reload()  # from then on it looks for expired offsets
    world.settle("a")
    world.now_ms += world.machine.limits.retention_ms + 1
    (key,) = (key for key in world.timers if not key.group_id)
    world._perform(world.machine.timer_fired(key, world.now))
    assert world.committed() == {"t-0": 1}
    request = (("t", 0),)
    asked = world.request(lambda token: DeleteOffsets(token=token, group_id=GROUP, partitions=request))
    assert asked.answer == DeleteOffsetsAnswer(error=Error.NON_EMPTY_GROUP)
    assert delete(world).answer == DeleteGroupAnswer(Error.NON_EMPTY_GROUP)
    world.unregister("a")
    world.obey("a")
    world.pass_ms(60_000)
    # They are old, but the group has only just become empty: it may be a restart (KIP-211).
    world._perform(world.machine.timer_fired(key, world.now))
    assert world.committed() == {"t-0": 1}
    world.now_ms += world.machine.limits.retention_ms
    world._perform(world.machine.timer_fired(key, world.now))
    assert world.committed() == {}
    # With nothing left it is forgotten, and members that join later start a new group.
    assert world.machine.knows(GROUP)
    world._perform(world.machine.timer_fired(key, world.now))
    assert (world.log, world.machine.knows(GROUP)) == ({}, False)
    world.register("b")
    world.settle("b")
    assert world.player("b").generation == 1


def test_an_empty_group_without_offsets_is_kept_for_a_while_after_a_takeover() -> None:
    world = stable("a")
    world.unregister("a")
    world.obey("a")
    world.pass_ms(60_000)
    world.now_ms += world.machine.limits.retention_ms
    world.reload()
    (key,) = (key for key in world.timers if not key.group_id)
    world._perform(world.machine.timer_fired(key, world.now))
    assert world.machine.knows(GROUP)
    world.now_ms += world.machine.limits.retention_ms
    world._perform(world.machine.timer_fired(key, world.now))
    assert (world.log, world.machine.knows(GROUP)) == ({}, False)


@pytest.mark.parametrize("has_offsets", [True, False])
def test_an_empty_group_is_deleted_with_everything(has_offsets: bool) -> None:
    world = stable("a")
    if has_offsets:
        world.commit("a", {"t-0": 1})
    world.unregister("a")
    world.obey("a")
    world.pass_ms(60_000)
    world.holding = True
    failed = delete(world)
    asked = world.ask("a", wait_ms=0)
    assert asked.received[0] == "COORDINATOR_NOT_AVAILABLE"
    world.write_all(Error.COORDINATOR_NOT_AVAILABLE)
    assert failed.answer == DeleteGroupAnswer(Error.COORDINATOR_NOT_AVAILABLE)
    assert world.state == "Empty"
    assert delete(world).answer == DeleteGroupAnswer(Error.NONE)
    assert (world.log, world.machine.knows(GROUP), list(world.machine.list())) == ({}, False, [])
    assert delete(world).answer == DeleteGroupAnswer(Error.GROUP_ID_NOT_FOUND)


def test_tools_see_the_group_under_the_protocol_type_server() -> None:
    world = stable("a", "b")
    world.commit("a", {"t-0": 1})
    seen = world.machine.describe(GROUP)
    assert (seen.state, seen.protocol_type, seen.protocol_name) == (GroupState.STABLE, "server", "range")
    assert [(member.member_id, member.client_id) for member in seen.members] == [("a", "c"), ("b", "c")]
    (row,) = filter(None, world.machine.list(["stable"], ["Classic"]))
    assert (row.group_id, row.protocol_type, row.state) == (GROUP, "server", GroupState.STABLE)
    assert not any(world.machine.list(["Empty"]))
    assert not list(world.machine.list([], ["consumer"]))


def test_generation_is_stored_under_its_own_key_and_damage_is_reported() -> None:
    members = (ServerMember("a", ("t", "ü"), (TopicPartition("t", 0),)), ServerMember("b", (), ()))
    change = ServerKey("g"), ServerRecord(7, "range", (("t", 1),), members)
    key, value = encode(change)
    assert key == bytes.fromhex("7534 0001 67")
    assert value is not None
    assert list(decode_all([(key, value)])) == [change]
    assert encode((ServerKey("g"), None)) == (key, None)
    for damaged in (value[:-1], b"\0\1" + value[2:], value[:13] + b"\x7f" + value[14:], b""):
        with pytest.raises(MalformedRecord):
            list(decode_all([(key, damaged)]))
