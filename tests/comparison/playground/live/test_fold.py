"""What the page shows of a group, from hand-written events."""

from __future__ import annotations

from comparison.playground import messages
from tests.comparison.playground.live.played_events import Scene


def two_members(design: str) -> Scene:
    scene = Scene(design).member("m1").member("m2").at(100).owns("m1", 0, 1).owns("m2", 2)
    for process, number in (("m1", 0), ("m1", 1), ("m2", 2)):
        scene.named(f"{process}-id-0" if design == "zookeeper" else f"{process}-id", number)
    scene.event("stage_entered", stage="steady").drain()
    return scene


def test_members_and_both_truths_are_shown_by_place() -> None:
    scene = two_members("zookeeper")
    assert [(each.name, each.state, each.delivers) for each in scene.group.members] == [
        ("m1", messages.MemberState.RUNNING, ("orders-0", "orders-1")),
        ("m2", messages.MemberState.RUNNING, ("orders-2",)),
    ]
    assert [(each.name, each.owner, each.deliverers) for each in scene.group.partitions] == [
        ("orders-0", "m1", ("m1",)),
        ("orders-1", "m1", ("m1",)),
        ("orders-2", "m2", ("m2",)),
    ]
    assert scene.lanes(messages.IntervalKind.NAMED)[0] == ("m1", "orders-0", 100, None)


def test_an_owner_that_was_named_before_it_said_a_word_gets_its_name_later() -> None:
    scene = Scene("eager").event("process_started", target="m1", child_pid=1).at(50).named("m1-id", 0)
    scene.drain()
    assert scene.partition(0).owner == "m1-id"
    scene.at(90).event("member_started", "m1", member="m1-id", group="lab").owns("m1", 0).at(150).named("", 0)
    scene.drain()
    assert scene.lanes(messages.IntervalKind.NAMED) == [("m1", "orders-0", 50, 150)]


def test_a_group_in_which_nothing_happens_has_no_changes() -> None:
    assert two_members("eager").at(200).drain() == []


def test_a_member_that_is_cut_off_but_delivers_is_an_alarm_and_counted() -> None:
    scene = two_members("zookeeper").at(1000).fault("cut", "m2")
    scene.at(4000).named("m1-id-0", 2).owns("m1", 0, 1, 2)
    for n, at_ms in enumerate((4000, 4400, 4900)):
        scene.at(at_ms).delivered("m2", 2, n, n).at(at_ms + 100).delivered("m1", 2, 10 + n, 10 + n).drain()
    assert scene.shown("m2").state is messages.MemberState.CUT
    assert (scene.partition(2).owner, scene.partition(2).deliverers) == ("m1", ("m1", "m2"))
    scene.at(6000).healed("cut", "m2").owns("m2", kind="partitions_lost").later()
    assert scene.told == [
        "m2 is cut off from ZooKeeper",
        "m2 is cut off, but still delivers orders-2: two members deliver it",
        "m2 reaches ZooKeeper again",
        "orders-2: one member again, after 2.0 s with two",
    ]
    alarm = scene.group.feed[1]
    assert (alarm.severity, alarm.partition, alarm.members) == (messages.Severity.ALARM, "orders-2", ("m1", "m2"))
    assert (
        scene.group.counters.two_delivering_partition_s == 0.8
    )  # from the first poll of the one to the last of the other
    assert scene.lanes(messages.IntervalKind.FAULT) == [("m2", "cut", 1000, 6000)]


def test_a_handover_tells_for_how_long_nobody_delivered() -> None:
    scene = two_members("zookeeper").at(1000).owns("m1", 0, kind="partitions_revoked").at(1200).owns("m2", 1, 2)
    assert scene.later().told == ["m1 released orders-1 before m2 had claimed it: unowned for 0.2 s"]
    assert scene.group.counters.unowned_partition_s == 0.2
    scene = two_members("eager").at(1000).owns("m1", 0, kind="partitions_revoked").at(1200).owns("m2", 1, 2)
    assert scene.later().told == ["m1 revoked orders-1 before m2 was assigned it: nobody delivered it for 0.2 s"]


def test_a_partition_that_is_taken_up_before_it_was_given_up_is_told_too() -> None:
    scene = two_members("eager").at(1000).owns("m2", 1, 2).at(1040).owns("m1", 0, kind="partitions_revoked")
    assert scene.later().told == ["m1 and m2 both had orders-1 for 40 ms"]
    assert scene.group.counters.two_delivering_partition_s == 0  # neither polled meanwhile


def test_everyone_who_stops_and_goes_on_is_told_in_one_sentence() -> None:
    scene = two_members("eager").at(1000).owns("m1", kind="partitions_revoked").owns("m2", kind="partitions_revoked")
    scene.at(1600).owns("m1", 0, 1).owns("m2", 2)
    assert scene.later().told == [
        "m1 and m2 stopped and resumed orders-0, orders-1 and orders-2: nobody delivered them for up to 0.6 s"
    ]


def test_a_killed_member_is_missed_after_a_second_and_its_start_is_another_process() -> None:
    scene = two_members("eager").at(1000).ended("m2", "kill")
    scene.at(2100).drain()
    scene.later(500)
    assert scene.told == ["m2 was killed", "nobody has delivered orders-2 since m2 was killed"]
    assert (scene.shown("m2").state, scene.shown("m2").ended) == (messages.MemberState.ENDED, "killed")
    scene.at(4000).owns("m1", 0, 1, 2).later()
    assert scene.told[-1] == "m2 was killed: nobody delivered orders-2 for 3.0 s, until m1 took over"
    scene.at(7000).member("m2.2").drain()
    assert (scene.shown("m2").process, scene.shown("m2").state) == ("m2.2", messages.MemberState.RUNNING)
    assert scene.at(7100).ended("m2", "kill").drain() == [], "the end of an earlier process changes nothing"


def test_a_process_that_ends_after_another_was_started_in_its_place_leaves_nothing_behind() -> None:
    scene = two_members("static").at(1000).member("m2.2").at(1100).ended("m2", "leave")
    scene.drain()
    assert scene.partition(2).deliverers == ()
    assert scene.shown("m2").state is messages.MemberState.RUNNING


def test_a_frozen_member_delivers_nothing_and_goes_on_believing() -> None:
    scene = two_members("eager").at(1000).fault("freeze", "m2")
    scene.drain()
    assert (scene.shown("m2").state, scene.partition(2).deliverers) == (messages.MemberState.FROZEN, ())
    assert scene.shown("m2").delivers == ("orders-2",)
    assert scene.partition(2).frozen == "m2"
    scene.at(3000).owns("m1", 0, 1, 2).drain()
    assert scene.partition(2).frozen == "", "somebody delivers it"
    scene.at(5000).healed("freeze", "m2").later()
    assert scene.partition(2).deliverers == ("m1", "m2")
    assert "m1 and m2 both deliver orders-2" in scene.told
    nobody = [each for each in scene.lanes(messages.IntervalKind.NOBODY) if each[2] != each[3]]
    assert nobody == [("m2", "orders-2", 1000, 3000)], "it is frozen"


def test_a_frozen_member_that_is_killed_leaves_its_partitions_to_nobody() -> None:
    scene = two_members("eager").at(1000).fault("freeze", "m2").at(2000).ended("m2", "kill")
    scene.drain()
    assert (scene.partition(2).deliverers, scene.partition(2).frozen) == ((), "")
    assert scene.lanes(messages.IntervalKind.NOBODY) == [("m2", "orders-2", 1000, 2000), ("", "orders-2", 2000, None)]


def test_slow_and_stepped_members_are_marked() -> None:
    scene = two_members("zookeeper").fault("slow", "m1", delay_ms=20).fault("step", "m2").later()
    assert scene.shown("m1").delay_ms == 20
    assert scene.shown("m2").stepping
    assert scene.told == ["m1 is slow: it spends 20 ms on each record", "m2 waits before each ZooKeeper operation"]
    scene.healed("slow", "m1").healed("step", "m2").drain()
    assert scene.shown("m1").delay_ms == 0
    assert not scene.shown("m2").stepping


def test_a_step_that_waits_shows_its_rows_of_the_table() -> None:
    table = (
        messages.StepRow(step="R5", phase="release", does="delete the owner nodes", requests="delete x k"),
        messages.StepRow(step="R11", phase="claim", does="create the owner nodes", requests="create x k'"),
    )
    scene = Scene("zookeeper", table=table).member("m1").at(500)
    waits = {"op": "delete", "path": "/consumers/lab/owners/orders/3", "step": "R5"}
    scene.event("zk_waiting", "m1", behind=0, **waits).at(600).event("zk_waiting", "m1", behind=2, **waits).drain()
    (waiting,) = scene.group.waiting
    assert (waiting.member, waiting.operation, waiting.rows, waiting.since_ms, waiting.behind) == (
        "m1", "delete", (0,), 500, 2,
    )  # fmt: skip
    scene.event("zk_waiting", "m1", behind=0).drain()
    assert scene.group.waiting == ()


def test_counters_count_what_members_do_and_nobody_else() -> None:
    scene = two_members("zookeeper")
    for process in ("m1", "broker-1", "runner"):
        scene.event("zk_notified", process, path="/p", event="changed")
        scene.event("zk_op", process, op="getData", path="/p", ok=True, step="R1")
        scene.event("zk_op", process, op="create", path="/p", ok=False, step="R11")
        scene.event("zk_op", process, op="setData", path="/consumers/lab/offsets/orders/0", ok=True, step="commit")
        scene.event("request_answered", process, api="Heartbeat", error="")
        scene.event("request_answered", process, api="Fetch", error="")
        scene.event("rebalance_started", process, trigger="x")
    scene.drain()
    assert scene.group.counters == messages.Counters(
        notifications=1, zk_reads=1, zk_writes=1, commit_requests=1, heartbeats=1, rebalances=1
    )


def test_records_and_offsets_that_come_again_are_counted() -> None:
    scene = two_members("zookeeper").delivered("m1", 0, 0, 9).committed("m1", 0, 10)
    scene.delivered("m2", 0, 5, 14).committed("m2", 0, 4).later(9000)
    counters = scene.group.counters
    assert (counters.delivered, counters.duplicates, counters.moved_back) == (20, 5, 1)
    assert (scene.partition(0).delivered, scene.partition(0).committed) == (15, 4)
    assert set(scene.told) == {
        "m2 delivered 5 records of orders-0 again",
        "m2 committed an older offset of orders-0, and ZooKeeper took it: moved back by 6 records",
    }


def test_zookeepers_own_log_is_believed_rather_than_what_members_know_of_it() -> None:
    scene = two_members("zookeeper").committed("m1", 0, 10).committed("m2", 0, 4).committed("m1", 0, 6).later(9000)
    assert scene.group.counters.moved_back == 1
    scene.event("stage_entered", stage="stop").at(1000)
    for offset in (10, 6, 4, 3):  # two answers came in another order, and one was lost
        scene.event("offset_written", "observer", topic="orders", partition=0, offset=offset, by="m1-id", epoch=1)
    scene.later(9000)
    assert scene.group.counters.moved_back == 3
    assert (scene.partition(0).committed, len(scene.told)) == (3, 1)


def test_what_a_coordinator_refuses_is_counted_and_told() -> None:
    scene = two_members("eager").committed("m1", 1, 7, "refused", "ILLEGAL_GENERATION")
    where = {"topic": "orders", "partition": 1, "offset": 7, "epoch": 1}
    scene.event("offset_refused", "broker-2", **where, by="m1-id", error="ILLEGAL_GENERATION").later(9000)
    assert scene.group.counters.refused == 1
    assert scene.told == ["the coordinator refused m1's commit of orders-1 (ILLEGAL_GENERATION)"]


def test_a_coordinator_says_itself_what_it_stores() -> None:
    scene = two_members("eager").committed("m1", 0, 10)
    scene.event("offset_written", "broker-2", topic="orders", partition=0, offset=10, by="m1-id", epoch=1)
    scene.event("records_acked", topic="orders", partition=0, first=0, last=19, serial_first=0, serial_last=19)
    scene.later()
    assert (scene.partition(0).committed, scene.partition(0).end) == (10, 20)
    assert scene.told == []


def test_the_coordinator_shows_state_generation_leader_and_members() -> None:
    scene = two_members("eager")
    for place in ("m1", "m2"):
        scene.event("group_member_joined", "broker-2", group="lab", id=f"{place}-id")
    changes = {"group": "lab", "generation": 3, "members": 2}
    scene.event("group_changed", "broker-2", **changes, state="PreparingRebalance", reason="member added")
    scene.event("phase_entered", "m2", member="m2-id", stream=0, phase="decide", attempt=1)
    scene.at(300).event("group_changed", "broker-2", **changes, state="Stable", reason="assignment stored").later()
    assert scene.group.coordinator == messages.Coordinator(
        state="Stable",
        came_from="PreparingRebalance",
        since_ms=300,
        reason="assignment stored",
        generation=3,
        leader="m2",
        members=("m1", "m2"),
    )
    assert scene.shown("m2").leads
    assert scene.told == [
        "the coordinator begins a rebalance: member added",
        "generation 3 is in force, with 2 members",
    ]
    scene.event("group_member_left", "broker-2", group="lab", id="m1-id", reason="session").later()
    assert scene.group.coordinator.members == ("m2",)
    assert scene.told[-1] == "the coordinator no longer lists m1 (session)"


def test_the_coordinator_of_epochs_says_when_each_member_has_its_target() -> None:
    scene = two_members("consumer")
    changes = {"group": "lab", "generation": 3, "members": 2}
    for at_ms, state, reason in (
        (100, "Assigning", "member joined"),
        (100, "Reconciling", "target computed"),
        (400, "Stable", "every member has its target"),
    ):
        scene.at(at_ms).event("group_changed", "broker-2", **changes, state=state, reason=reason)
    scene.later()
    assert scene.told == [
        "the coordinator begins a rebalance: member joined",
        "epoch 3: each of 2 members has its target",
    ]


def test_phases_are_lanes_of_their_member() -> None:
    scene = two_members("zookeeper").event("phase_entered", "m1", phase="join", attempt=1)
    scene.drain()
    assert scene.shown("m1").rebalancing == "join"
    scene.at(150).event("phase_entered", "m1", phase="claim", attempt=1)
    scene.at(190).event("attempt_ended", "m1", attempt=1, outcome="conflict").later()
    assert scene.lanes(messages.IntervalKind.PHASE) == [("m1", "join", 100, 150), ("m1", "claim", 150, 190)]
    assert scene.told == ["m1 found a partition still claimed by another member; retrying after a backoff"]


def test_what_is_done_by_hand_is_told() -> None:
    scene = two_members("eager")
    scene.event("change_started", change="join", round=1, members=4, detail={"targets": ["m3", "m4"]})
    scene.event("change_started", change="leave", round=2, members=3, detail={"targets": ["m1"]})
    scene.event("change_started", change="partition-increase", round=3, members=3, detail={"before": 6, "after": 7})
    scene.event("rate_set", rate=300).later()
    assert scene.told == [
        "m3 and m4 are started",
        "m1 is asked to leave",
        "1 partition added: 7 now",
        "the producer now sends 300 records/s",
    ]
    assert scene.group.rate == 300


def test_what_is_done_and_what_comes_of_it_is_marked_in_the_lanes() -> None:
    scene = two_members("zookeeper")
    for at_ms, fault in ((1000, "freeze"), (2000, "cut"), (3000, "slow"), (4000, "step")):
        scene.at(at_ms).fault(fault, "m2").at(at_ms + 500).healed(fault, "m2")
    scene.at(5000).event("change_started", change="leave", round=1, members=1, detail={"targets": ["m2"]})
    scene.at(5100).ended("m2", "leave").at(5200).ended("m1", "kill")
    scene.at(6000).event("change_started", change="grow", round=1, members=3, detail={"targets": ["m3", "m4"]})
    scene.event("change_started", change="partition-increase", round=2, members=3, detail={"before": 6, "after": 8})
    scene.event("rate_set", rate=300).drain()
    acts = [each for each in scene.group.intervals if each.kind is messages.IntervalKind.ACT]
    assert [(each.from_ms, each.label, each.member, each.style) for each in acts] == [
        (1000, "freeze", "m2", "begin"),
        (1500, "continue", "m2", "heal"),
        (2000, "cut", "m2", "begin"),
        (2500, "heal", "m2", "heal"),
        (3000, "slow", "m2", "begin"),
        (3500, "full speed", "m2", "heal"),
        (4000, "step", "m2", "begin"),
        (4500, "last step", "m2", "heal"),
        (5000, "leave", "m2", "begin"),
        (5100, "left", "m2", "begin"),
        (5200, "kill", "m1", "begin"),
        (6000, "start", "m3+m4", "change"),
        (6000, "+2 partitions", "", "change"),
        (6000, "300/s", "", "change"),
    ]
    said = [each.text for each in scene.group.feed if each.severity is messages.Severity.ACT]
    assert [each.text for each in acts] == said


def test_the_end_of_the_game_is_no_part_of_it() -> None:
    scene = two_members("eager").event("stage_entered", stage="stop").at(1000)
    scene.owns("m1", kind="partitions_revoked").ended("m1", "stop")
    scene.event("rebalance_started", "m1", trigger="x").delivered("m1", 0, 0, 4).later()
    assert scene.told == []
    assert scene.shown("m1").state is messages.MemberState.RUNNING
    assert scene.group.counters == messages.Counters(delivered=5), "as in the analysis, records count to the end"
