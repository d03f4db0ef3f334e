"""Rounds as conversations: which commands members receive, when, and what is stored before."""

from __future__ import annotations

import pytest

from coordinator.groups.effects import ForgetIds, ReadAgain, WatchIds
from coordinator.groups.errors import Error
from kernel.assignors.checking import BadAssignment
from tests.support.groups.server import GROUP, REBALANCE_TIMEOUT_MS, Served


def stable(*members: str, **fields: object) -> Served:
    world = Served(**fields)  # type: ignore[arg-type]
    world.register(*members)
    world.settle(*members)
    assert world.state == "Stable"
    return world


def test_first_await_creates_the_group_and_waits_until_the_id_is_seen() -> None:
    world = Served()
    question = world.ask("a")
    assert question.answer is None
    assert (world.watches, world.state, world.log) == ([WatchIds(GROUP)], "Empty", {})
    world.register("a")
    assert question.received == ("START", 1, ("t-0", "t-1", "t-2", "t-3"))
    assert world.record.generation == 1
    assert world.state == "CompletingRebalance"
    assert world.obey("a").answer is None
    assert world.state == "Stable"
    assert REBALANCE_TIMEOUT_MS not in world.timers.values()


def test_await_is_answered_with_nothing_after_its_wait_or_when_the_next_one_arrives() -> None:
    world = stable("a")
    first = world.ask("a", wait_ms=50)
    second = world.ask("a", wait_ms=50)
    assert first.received == ("NOTHING", -1, ())
    world.pass_ms(49)
    assert second.answer is None
    world.pass_ms(1)
    assert second.received == ("NOTHING", -1, ())
    assert world.ask("a", wait_ms=0).received == ("NOTHING", -1, ())


def test_new_member_is_admitted_after_all_members_have_stopped() -> None:
    world = stable("a")
    waiting = world.players["a"].question
    world.register("b")
    started = world.ask("b")
    assert waiting is not None
    assert waiting.received == ("STOP", 1, ())
    assert (started.answer, world.state, world.record.generation) == (None, "PreparingRebalance", 1)
    world.players["a"].obey()
    assert world.ask("a").received == ("START", 2, ("t-0", "t-1"))
    assert started.received == ("START", 2, ("t-2", "t-3"))
    world.settle("a", "b")
    assert world.state == "Stable"
    assert world.traced("group_changed", "state", "generation", "reason")[-3:] == [
        ("PreparingRebalance", 1, "members changed"),
        ("CompletingRebalance", 2, "assignment stored"),
        ("Stable", 2, "all members have started"),
    ]
    assert world.traced("authority_cleared", "owner", "epoch") == [("a", 1)] * 4
    named = world.traced("authority_named", "partition", "owner", "epoch")[4:]
    assert named == [(0, "a", 2), (1, "a", 2), (2, "b", 2), (3, "b", 2)]


def test_next_generation_starts_at_the_committed_offsets() -> None:
    world = stable("a")
    world.register("b")
    player = world.players["a"]
    committed = world.commit("a", {"t-0": 5, "t-3": 7})  # commanded to stop, but still the owner
    assert world.errors(committed) == {"t-0": "NONE", "t-3": "NONE"}
    player.obey()
    offsets = [part.offset for who in "ab" for part in world.ask(who).answer.partitions]
    assert offsets == [5, -1, -1, 7]


def test_member_that_does_not_stop_is_dropped_and_readmitted_once_it_has() -> None:
    world = stable("a", "b")
    world.register("c")
    world.ask("c")
    world.obey("b")
    world.pass_ms(REBALANCE_TIMEOUT_MS - 1)
    assert world.state == "PreparingRebalance"
    world.pass_ms(1)
    assert [member.member_id for member in world.record.members] == ["b", "c"]
    assert world.traced("group_member_left", "id", "reason") == [("a", "not stopped in time")]
    world.settle("b", "c")
    late = world.commit("a", {"t-0": 9})
    assert world.errors(late) == {"t-0": "UNKNOWN_MEMBER_ID"}
    # It returns: first it stops what it runs, then a round admits it.
    assert world.players["a"].question.answer is not None  # type: ignore[union-attr]  # stop(1), unread until now
    again = world.ask("a", generation=2 - 1, stopped=-1)
    assert again.received == ("STOP", 1, ())
    assert world.state == "Stable"
    world.obey("a")
    world.settle("a", "b", "c")
    assert [member.member_id for member in world.record.members] == ["a", "b", "c"]
    assert (world.state, world.record.generation) == ("Stable", 3)


def test_member_that_never_starts_is_dropped_and_the_others_get_its_partitions() -> None:
    world = Served()
    world.register("a", "mute")
    world.settle("a")
    assert world.state == "CompletingRebalance"
    world.pass_ms(REBALANCE_TIMEOUT_MS)
    world.settle("a")
    assert (world.state, world.players["a"].owned) == ("Stable", tuple(("t", n) for n in range(4)))
    assert world.traced("group_member_left", "id", "reason") == [("mute", "not started in time")]


def test_member_that_dies_while_stopping_is_not_waited_for() -> None:
    world = stable("a", "b")
    world.register("c")
    world.obey("a")
    assert world.state == "PreparingRebalance"
    world.unregister("b")
    assert world.state == "CompletingRebalance"
    assert world.record.generation == 2


def test_members_that_register_while_the_assignment_is_stored_start_the_next_round_at_once() -> None:
    world = Served()
    world.holding = True
    world.register("a")
    world.ask("a")
    world.ids["b"] = ("t",)
    world.see()
    world.write_all()
    assert world.players["a"].question.received == ("START", 2, ("t-0", "t-1"))  # type: ignore[union-attr]
    assert world.record.generation == 2


def test_group_that_becomes_empty_keeps_counting_generations() -> None:
    world = stable("a")
    world.unregister("a")
    assert (world.state, world.record.generation, world.record.members) == ("Empty", 2, ())
    assert world.watches[-1] == WatchIds(GROUP)  # its request waits for a STOP
    assert world.players["a"].question.received == ("STOP", 1, ())  # type: ignore[union-attr]
    world.obey("a")
    world.pass_ms(60_000)
    assert world.watches[-1] == ForgetIds(GROUP)
    world.register("a")
    world.settle("a")
    assert (world.state, world.record.generation) == ("Stable", 3)


def test_group_without_registered_members_is_removed_with_its_watch() -> None:
    world = Served()
    question = world.ask("a", wait_ms=10)
    world.pass_ms(10)
    assert question.received == ("NOTHING", -1, ())
    assert world.watches == [WatchIds(GROUP), ForgetIds(GROUP)]
    assert not world.machine.knows(GROUP)


def test_changed_subscription_is_read_again_when_a_request_names_it() -> None:
    world = stable("a", "b")
    world.sizes["u"] = 2
    world.ids["a"] = ("t", "u")  # the znode's data: no watch fires
    world.players["a"].question = None
    world.ask("a", topics=("u", "t"))
    assert ReadAgain(GROUP, "a") in world.watches
    world.settle("a", "b")
    assert set(world.players["a"].owned) == {("t", 0), ("t", 1), ("u", 0), ("u", 1)}
    assert world.traced("group_changed", "reason").count(("subscriptions changed",)) == 1


def test_created_or_grown_subscribed_topic_begins_a_round_and_others_do_not() -> None:
    world = Served(sizes={})
    world.register("a")
    world.settle("a")
    assert world.players["a"].owned == ()
    world.grow("t", 1)
    world.grow("u", 5)
    world.settle("a")
    assert (world.players["a"].owned, world.record.generation) == ((("t", 0),), 2)
    world.grow("t", 2)
    world.settle("a")
    assert (len(world.players["a"].owned), world.record.generation) == (2, 3)


def test_sticky_keeps_the_owners_of_the_stored_generation() -> None:
    world = stable("a", "b", strategy="sticky")
    before = {who: set(world.players[who].owned) for who in "ab"}
    world.register("c")
    world.settle("a", "b", "c")
    moved = sum(len(before[who] - set(world.players[who].owned)) for who in "ab")
    assert moved == 1


# -- while the strategy computes ------------------------------------------------------------------------------------


def test_awaits_are_answered_in_time_while_the_strategy_computes() -> None:
    world = Served(thinking=True)
    world.register("a")
    question = world.ask("a", wait_ms=500)
    world.pass_ms(10 * REBALANCE_TIMEOUT_MS)  # a member that has nothing to stop is never late
    assert question.received == ("NOTHING", -1, ())
    assert (world.state, world.log, len(world.deciding)) == ("PreparingRebalance", {}, 1)
    parked = world.ask("a")
    world.decide()
    assert parked.received == ("START", 1, ("t-0", "t-1", "t-2", "t-3"))


def test_commits_of_the_ending_generation_are_accepted_while_the_strategy_computes() -> None:
    world = stable("a")
    world.thinking = True
    world.grow("t", 5)
    world.obey("a")
    assert len(world.deciding) == 1
    assert world.errors(world.commit("a", {"t-0": 9})) == {"t-0": "NONE"}
    world.decide()
    world.settle("a")
    assert (world.record.generation, world.committed()) == (2, {"t-0": 9})


def test_change_while_the_strategy_computes_starts_a_new_computation_and_only_that_is_stored() -> None:
    world = Served(thinking=True)
    world.register("a")
    world.ask("a")
    world.register("b")
    world.ask("b")
    world.grow("t", 2)
    assert len(world.deciding) == 1  # only one computation at a time
    world.decide()
    assert (len(world.deciding), world.log) == (1, {})
    world.decide()
    world.settle("a", "b")
    assert (world.record.generation, world.record.sizes) == (1, (("t", 2),))
    assert [world.players[who].owned for who in "ab"] == [(("t", 0),), (("t", 1),)]


def test_empty_group_does_not_wait_for_a_computing_strategy() -> None:
    world = stable("a")
    world.thinking = True
    world.grow("t", 5)
    world.obey("a")
    world.unregister("a")
    assert (world.state, world.record.generation, world.record.members) == ("Empty", 2, ())
    world.decide()
    assert (world.state, world.record.generation) == ("Empty", 2)


def test_strategys_answer_is_ignored_once_the_group_was_given_up() -> None:
    world = Served(thinking=True)
    world.register("a")
    question = world.ask("a")
    world.unload()
    assert question.received[0] == "NOT_COORDINATOR"
    world.decide()
    assert world.log == {}


# -- losses -----------------------------------------------------------------------------------------------------------


def test_lost_start_is_repeated_after_a_fenced_write() -> None:
    world = Served()
    world.register("a")
    lost = world.ask("a")
    assert lost.received[0] == "START"
    world.holding = True
    again = world.ask("a")  # still without a generation
    assert again.answer is None
    world.write_all()
    assert again.received == lost.received
    assert world.record.generation == 1


def test_member_that_was_commanded_to_start_must_stop_even_if_it_has_not_confirmed() -> None:
    world = Served()
    world.register("a")
    assert world.ask("a").received[0] == "START"
    world.register("b")
    world.ask("b")
    assert (world.state, world.record.generation) == ("PreparingRebalance", 1)
    world.settle("a", "b")
    assert (world.state, world.record.generation) == ("Stable", 2)


def test_start_is_not_repeated_once_a_round_has_begun() -> None:
    world = Served()
    world.register("a")
    world.ask("a")
    world.holding = True
    again = world.ask("a")
    world.register("b")
    started = world.ask("b")
    assert again.answer is None
    world.write_all()
    assert (again.received, started.received) == (("START", 2, ("t-0", "t-1")), ("START", 2, ("t-2", "t-3")))


def test_fenced_coordinator_does_not_start_members() -> None:
    world = stable("a")
    world.holding = True
    stopped = world.ask("a", stopped=1)
    world.write_all(Error.NOT_COORDINATOR)
    assert stopped.received[0] == "NOT_COORDINATOR"


def test_assignment_that_cannot_be_stored_is_retried_without_starting_members() -> None:
    world = Served()
    world.holding = True
    world.register("a")
    question = world.ask("a")
    world.write_all(Error.COORDINATOR_NOT_AVAILABLE)
    assert question.received[0] == "COORDINATOR_NOT_AVAILABLE"
    parked = world.ask("a")
    assert (parked.answer, world.state, world.log) == (None, "PreparingRebalance", {})
    world.pass_ms(1_000)
    assert parked.received == ("START", 1, ("t-0", "t-1", "t-2", "t-3"))


def test_failed_strategy_is_reported_to_members_and_retried() -> None:
    fails = [True]

    def assign(sizes: dict[str, int], subscriptions: dict[str, object]) -> dict[str, list[object]]:
        if fails[0]:
            raise BadAssignment("no")
        return {member: [] for member in subscriptions}

    world = Served(assign=assign)  # type: ignore[arg-type]
    question = world.ask("a")
    world.register("a")
    assert question.received[0] == "UNKNOWN_SERVER_ERROR"
    fails[0] = False
    parked = world.ask("a")
    world.pass_ms(1_000)
    assert parked.received == ("START", 1, ())


def test_member_that_runs_a_later_generation_than_stored_must_stop() -> None:
    world = stable("a")
    assert world.ask("a", generation=7).received[0] == "ILLEGAL_GENERATION"


def test_member_without_an_id_is_commanded_to_stop() -> None:
    world = stable("a", "b")
    waiting = world.players["b"].question
    world.unregister("b")
    assert waiting is not None
    assert waiting.received == ("STOP", 1, ())
    assert world.obey("b").answer is None


# -- taking over ------------------------------------------------------------------------------------------------------


def test_successor_goes_on_without_a_round_if_nothing_changed() -> None:
    world = stable("a", "b")
    world.commit("a", {"t-0": 3})
    before = world.record
    world.reload()
    assert (world.state, world.watches[-1]) == ("Stable", WatchIds(GROUP))
    world.settle("a", "b")
    assert (world.state, world.record, world.committed()) == ("Stable", before, {"t-0": 3})
    assert world.errors(world.commit("a", {"t-0": 4})) == {"t-0": "NONE"}
    assert world.traced("authority_named", "owner", "epoch")[-4:] == [("a", 1), ("a", 1), ("b", 1), ("b", 1)]


def test_successor_detects_lost_members_and_grown_topics() -> None:
    world = stable("a", "b")
    world.blind = True
    world.unregister("b")
    world.sizes["t"] = 5
    world.blind = False
    world.reload()
    world.settle("a")
    assert (world.record.generation, len(world.players["a"].owned)) == (2, 5)


def test_members_stopped_by_a_crashed_coordinator_are_started_again() -> None:
    world = stable("a", "b")
    world.register("c")
    world.obey("a")
    world.unregister("c")  # the reason for the round was lost with its coordinator
    before = world.record
    world.reload()
    assert world.ask("a").received == ("START", before.generation, ("t-0", "t-1"))
    world.settle("a", "b")
    assert (world.state, world.record) == ("Stable", before)


def test_successor_waits_for_members_that_may_run_the_loaded_generation() -> None:
    world = stable("a", "b")
    world.reload()
    world.register("c")
    world.ask("c")
    world.settle("a")
    assert (world.state, world.record.generation) == ("PreparingRebalance", 1)
    world.settle("b")
    assert world.record.generation == 2


def test_successor_judges_no_commit_before_it_has_read_the_ids() -> None:
    world = stable("a", "b")
    world.blind = True
    world.reload()
    assert world.ask("a").answer is None
    assert world.ask("new").answer is None
    assert world.state == "Stable"


def test_another_strategy_applies_only_after_a_restart() -> None:
    world = stable("a", "b", sizes={"t": 3, "u": 3})
    world.register("a", "b", topics=("t", "u"))
    world.ask("a")
    world.ask("b")
    world.settle("a", "b")
    by_range = world.players["a"].owned
    assert world.ask("a", strategy="roundrobin").received[0] == "INCONSISTENT_STRATEGY"
    assert world.ask("a", strategy="unheard-of").received[0] == "UNKNOWN_STRATEGY"
    assert (world.state, world.record.strategy) == ("Stable", "range")
    world.reload(strategy="roundrobin")
    world.settle("a", "b")
    assert (world.record.strategy, world.record.generation) == ("roundrobin", 3)
    assert world.players["a"].owned != by_range


def test_unloaded_group_answers_not_coordinator() -> None:
    world = stable("a")
    parked = world.players["a"].question
    world.unload()
    assert parked is not None
    assert parked.received[0] == "NOT_COORDINATOR"
    assert (world.watched, world.timers) == (set(), {})


@pytest.mark.parametrize("held", [0, 1])
def test_unstored_generation_is_never_commanded(held: int) -> None:
    world = Served()
    world.holding = True
    world.register("a")
    question = world.ask("a")
    if held:
        world.write_all()
    world.reload()
    assert (question.answer is None) is (not held)
    world.settle("a")
    assert world.record.generation == 1
