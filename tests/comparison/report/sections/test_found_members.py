"""What was found of slow members, of offsets that a group lost, and of takeovers, is said with what is behind it."""

from __future__ import annotations

from typing import Any

from comparison.results.run import Term
from tests.comparison.report.sections.test_found import found
from tests.support.runs.results import change, run

CLASSIC = {"member_settings": {"max.poll.interval.ms": "5000"}}
SERVER = {"broker_settings": {"group.server.rebalance.timeout.ms": "8000"}}


def term(broker: str, from_ms: float, group: str = "g") -> Term:
    return Term(group=group, broker=broker, leader_epoch=1, from_ms=from_ms, commits=3, last_ms=None, late=False)


def told(word: str, *runs: Any) -> list[str]:
    return [text for text in found(*runs) if word in text]


def test_members_that_did_not_poll_in_time_are_told_with_the_setting_and_with_designs_that_have_none() -> None:
    runs = [
        run("crash", "zookeeper"),
        run("crash", "eager", parameters=CLASSIC, poll_overdue=2.0),
        run("crash", "cooperative", parameters=CLASSIC, poll_overdue=2.0),
        run("crash", "consumer", parameters=CLASSIC, poll_overdue=1.0),
    ]
    said = "Members left their group because they had not polled for max.poll.interval.ms (5 s): 2 times in eager and "
    assert told("polled", *runs) == [f"{said}cooperative, once in consumer; zookeeper has no such limit."]
    assert told("polled", *runs[1:]) == [f"{said}cooperative, once in consumer."]
    assert told("polled", run("crash", "eager", poll_overdue=1.0)) == [
        "Members left their group because they had not polled for max.poll.interval.ms: once in eager."
    ]
    assert not told("polled", runs[0], run("crash", "eager", parameters=CLASSIC))


def test_members_removed_in_a_rebalance_are_told_with_the_setting_of_their_design() -> None:
    runs = [
        run("crash", "server", parameters=SERVER, rebalance_overdue=1.0),
        run("crash", "eager", parameters={**CLASSIC, **SERVER}, rebalance_overdue=3.0),
        run(
            "crash", "consumer", parameters={"member_settings": {"max.poll.interval.ms": "500"}}, rebalance_overdue=1.0
        ),
    ]
    said = "Coordinators removed members that were not done in a rebalance within"
    assert told("removed", *runs) == [
        f"{said} max.poll.interval.ms (0.5 or 5 s): 3 times in eager, once in consumer.",
        f"{said} group.server.rebalance.timeout.ms (8 s): once in server.",
    ]
    assert not told("removed", run("crash", "eager", parameters=CLASSIC))


def test_positions_that_a_reset_set_behind_a_commit_are_told_with_what_came_again() -> None:
    settings = {
        "member_settings": {"auto.offset.reset": "earliest"},
        "broker_settings": {"offsets.retention.minutes": "1"},
    }
    runs = [
        run("crash", "zookeeper", duplicates=0.0),
        run("crash", "eager", parameters=settings, reset_behind=4.0, duplicates=219.0),
        run("crash", "static", parameters=settings, reset_behind=1.0, duplicates=1.0),
    ]
    assert told("usable", *runs) == [
        "The group no longer had a usable offset where it had committed one (offsets.retention.minutes=1), and "
        "auto.offset.reset=earliest began a partition behind that commit: 4 times (219 records delivered again in "
        "all) in eager, 1 time (1 record delivered again in all) in static."
    ]
    assert " auto.offset.reset began " in told("usable", run("crash", "eager", reset_behind=1.0))[0]
    assert not told("usable", runs[0])


def test_brokers_that_took_a_group_over_are_told_in_order_with_the_time_since_the_change() -> None:
    changes = [change("join", from_ms=500.0), change("failover", from_ms=1_000.0)]
    moved = [term("broker-2", 30.0), term("broker-1", 1_400.0), term("broker-1", 1_600.0), term("broker-2.2", 4_000.0)]
    runs = [
        run("crash", "zookeeper"),
        run("crash", "eager", changes=changes, coordinators=moved[:3]),
        run("crash", "static", changes=changes, coordinators=moved),
    ]
    assert told("took over", *runs) == [
        "Another broker took over the group: broker-1 from broker-2 0.4 s after the failover in eager, "
        "broker-1 from broker-2 0.4 s after the failover and broker-2.2 from broker-1 3.0 s after the failover in "
        "static."
    ]
    assert not told("took over", run("crash", "eager", coordinators=[term("broker-2", 30.0), term("broker-2", 900.0)]))


def test_takeovers_of_several_groups_name_the_group_and_many_are_cut_short() -> None:
    groups = [term("broker-2", 30.0, "a"), term("broker-1", 40.0, "a"), term("broker-3", 30.0, "b")]
    assert told("took over", run("crash", "eager", changes=[], coordinators=groups)) == [
        "Another broker took over the group: a: broker-1 from broker-2 in eager."
    ]
    many = [term(f"broker-{number % 2}", 10.0 * number) for number in range(6)]
    (text,) = told("took over", run("crash", "eager", changes=[], coordinators=many))
    assert text.endswith("broker-1 from broker-0, broker-0 from broker-1, broker-1 from broker-0 and 2 more in eager.")
