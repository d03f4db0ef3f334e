"""Verdicts on runs in which ZooKeeper, a session, or the way to the authority fails."""

from __future__ import annotations

from typing import Any

import pytest

from comparison.pipeline.figures.outage_checks import GROWING_STEPS
from comparison.results.outcomes import VerdictOutcome
from comparison.results.run import Change, Delivery
from comparison.scenarios.run import link_faults
from tests.comparison.pipeline.figures.judged import (
    NO,
    PARAMETERS,
    UNKNOWN,
    YES,
    assert_verdict,
    beside,
    rows_of,
    verdict_on,
    verdicts_on,
)
from tests.support.runs.results import change


def tried(tries: int, backoff_ms: int) -> dict[str, Any]:
    settings = {"rebalance.max.retries": str(tries), "rebalance.backoff.ms": str(backoff_ms)}
    return {"parameters": {"timers": {"session_ms": 3000}, "member_settings": settings}}


KILLED = {"changes": [change("kill", target="m2")]}
FAILING = {**KILLED, "attempts_failed": 4.0}

#: A quorum is lost after 1 s for 5 s; 100 records a second are delivered throughout, or nothing after 4 s.
AWAY = change("quorum-loss", members=None, target="ensemble", rounds=0, stopped=0, healed_ms=5_000.0, stalled_s=0.2)
FLOWING = {"delivery": Delivery(from_ms=0.0, bin_ms=100.0, records=[10] * 80)}
DRIED_UP = {"delivery": Delivery(from_ms=0.0, bin_ms=100.0, records=[10] * 10)}


def away(**given: Any) -> dict[str, list[Change]]:
    usual = {name: getattr(AWAY, name) for name in ("members", "target", "healed_ms")}
    return {"changes": [change("quorum-loss", **usual, **given)]}


def standing_still(stopped: int, stalled_s: float | None, session_ms: int = 3000) -> dict[str, Any]:
    timers = {"parameters": {"timers": {"session_ms": session_ms}}}
    return {**away(rounds=0, stopped=stopped, stalled_s=stalled_s), **timers}


def expired(**given: Any) -> list[Change]:
    return [change("expire", members=None, **{"rounds": 2, "attempts": 9, "stopped": 24, **given})]


def expired_once(target: str, rounds: int) -> dict[str, Any]:
    parameters = {"members": 4, "injected": [{"fault": "expire", "target": target}]}
    return {"changes": expired(rounds=rounds), "parameters": parameters}


CUT_OFF = {"zk_operations": {"delete": 90, "delete (NoNode)": 3, "delete (SessionExpired)": 1}}
NOT_CUT_OFF = {"zk_operations": {"delete (NoNode)": 3}}
CHECKED = {"parameters": {"settings": {"fix.checked.release": "true"}}}
FLAP = {
    "timers": {"session_ms": 3000},
    "partitions": 12,
    "injected": [{"fault": "flap", "target": "m2", "times": 4, "every_ms": 700}],
}


def flapped(rounds: int, **given: Any) -> dict[str, Any]:
    usual = {"rounds": rounds, "healed_ms": 5_000.0, "converge_ms": 8_000.0, "unowned_partition_s": 48.0}
    return {"changes": [change("flap", members=None, **{**usual, **given})], "parameters": FLAP}


TIMERS = {"session_ms": 3000, "heartbeat_ms": 1000}
GROWING = {"fault": "growing-delay", "target": "owner->authority", "to_ms": 3000, "within_ms": 6000}
RUN = {"timers": TIMERS, "injected": [GROWING]}


def link(name: str, **given: Any) -> dict[str, Any]:
    usual = {"members": None, "healed_ms": 9_000.0, "rounds": 0, "moved": 0, "takeover_ms": None}
    return {"changes": [change(name, **{**usual, **given})], "parameters": RUN}


def silent(silent_ms: float) -> dict[str, Any]:
    return link("growing-delay", takeover_ms=4_100.0, silent_ms=silent_ms)


def lost(number: float, *injected: dict[str, Any]) -> dict[str, Any]:
    return {"lost": number, "parameters": {"injected": list(injected)}}


FLAPS = {"fault": "flap", "target": "m2", "times": 4}

VERDICTS = {
    ("gives up", "rebalance-failed", "zookeeper"): beside(
        tried(4, 200),
        ({**FAILING, "rebalances_failed": 1.0}, YES, "1 rebalance given up, 4 attempts failed: 4 tries in 800 ms"),
        (FAILING, NO, "0 rebalances given up"),
        (KILLED, UNKNOWN, "no claim met one of a killed member"),
        # A process that starts late, as on a busy machine, has only the rest of the dead one's session to try in.
        ({**KILLED, "attempts_failed": 3.0}, UNKNOWN, "the session ended before anybody had tried as often"),
        ({"attempts_failed": 4.0}, UNKNOWN, "no claim met one"),
    ),
    ("outlasts the session", "rebalance-failed", "zookeeper"): beside(
        tried(4, 2000),
        (FAILING, YES, "0 rebalances given up"),
        ({**FAILING, "rebalances_failed": 1.0}, NO, "4 tries in 8000 ms, a dead member's session lasts 3000 ms"),
        (KILLED, UNKNOWN, "no claim met one"),
    ),
    ("nobody gives up", "rebalance-failed", "eager"): [
        (KILLED, YES, ""),
        ({**KILLED, "failures": ["m1: RebalanceFailed: no"]}, NO, ""),
        ([change("join")], UNKNOWN, ""),
    ],
    ("no rebalance", "quorum-loss", "eager"): [
        ({"changes": [AWAY], **FLOWING}, YES, "690 records delivered since"),
        ({**away(rounds=1, stopped=12), **FLOWING}, NO, "1 rebalance of the group"),
        ({"changes": [AWAY], **DRIED_UP}, UNKNOWN, "nothing was delivered afterwards"),
        ([AWAY], UNKNOWN, "nothing was delivered afterwards"),
        ({}, UNKNOWN, "no ZooKeeper server was killed"),
        (KILLED, UNKNOWN, "no ZooKeeper server was killed"),
    ],
    ("goes on delivering", "quorum-loss", "eager"): [
        ({"changes": [AWAY], **FLOWING}, YES, "for 0.2 s"),
        ({**away(stopped=0, stalled_s=3.0), **FLOWING}, NO, "for 3.0 s"),
        ({**away(stopped=12, stalled_s=0.2), **FLOWING}, NO, "for 0.2 s"),
        ({"changes": [AWAY], **DRIED_UP}, NO, "nothing was delivered afterwards"),
        (away(rounds=0, stalled_s=None), UNKNOWN, "under load"),
    ],
    ("stands still", "quorum-loss", "server"): beside(
        FLOWING,
        (standing_still(12, 4.0), YES, ""),
        (standing_still(0, 4.0), NO, ""),
        (standing_still(12, 0.5), NO, ""),
        (standing_still(12, 4.0, session_ms=9000), UNKNOWN, ""),
        (standing_still(12, None), UNKNOWN, ""),
    ),
    ("everybody rebalances", "session-expiry", "zookeeper"): [
        (expired(), YES, ""),
        (expired(attempts=4), NO, ""),
        (expired(rounds=0), NO, ""),
        ({}, UNKNOWN, ""),
    ],
    # A coordinator rebalances at most once for each member that goes and that comes back.
    ("expiry noticed", "session-expiry", "server"): [
        (expired(attempts=0), YES, ""),
        (expired(rounds=0), NO, ""),
        ({}, UNKNOWN, ""),
        (expired_once("owner", 2), YES, "2 rebalances, 24 partitions stopped"),
        (
            expired_once("owner", 3),
            NO,
            "3 rebalances, 24 partitions stopped, 4 notifications of members; members went and came back",
        ),
    ],
    ("expiry noticed", "session-expiry-all", "server"): [
        (expired_once("members", 8), YES, "8 rebalances"),
        (expired_once("members", 9), NO, "went and came back 8 times at most"),
    ],
    # A release that outlives its session deletes owner znodes, unless it checks whose they are.
    ("owner znodes deleted", "ghost-owner", "zookeeper"): [
        ({"left_unnamed": 4.0, **CUT_OFF}, YES, "4 partitions without an owner znode at the end"),
        ({"left_unnamed": 0.0, **CUT_OFF}, NO, "every partition has its owner znode"),
        ({"left_unnamed": 4.0, **NOT_CUT_OFF}, UNKNOWN, "no session ended in the middle"),
        ({"left_unnamed": None, **CUT_OFF}, UNKNOWN, "no owner was traced"),
    ],
    ("owner znodes kept", "ghost-owner", "zookeeper"): beside(
        CHECKED,
        ({"left_unnamed": 4.0, **CUT_OFF}, NO, ""),
        ({"left_unnamed": 0.0, **CUT_OFF}, YES, ""),
        ({"left_unnamed": 4.0, **NOT_CUT_OFF}, UNKNOWN, ""),
        ({"left_unnamed": None, **CUT_OFF}, UNKNOWN, ""),
    ),
    ("storm", "flapping-member", "zookeeper"): [
        (flapped(8), YES, "8 rebalances in 8.0 s (60 a minute) for 4 restarts; partitions had"),
        (flapped(8), YES, "an owner 50% of the time"),
        (flapped(1), NO, "1 rebalance in"),
        (flapped(8, unowned_partition_s=0.0), UNKNOWN, "does not show that a member was away"),
        ({}, UNKNOWN, "several times"),
    ],
    ("no storm", "flapping-member", "static"): [
        (flapped(0), YES, "0 rebalances"),
        (flapped(1), NO, "1 rebalance"),
        (flapped(1, silent_ms=2_100.0), NO, "1 rebalance"),
        (flapped(1, silent_ms=3_150.0), UNKNOWN, "back only after its session"),
        (flapped(0, unowned_partition_s=0.0), UNKNOWN, "was away"),
    ],
    ("outlives the silence", "asymmetric-cut", "zookeeper"): [
        (link("cut"), YES, "nobody took over in 9.0 s; the session is 3 s"),
        (link("cut", takeover_ms=6_300.0), YES, "a takeover after 6.3 s"),
        (link("cut", takeover_ms=3_100.0), NO, "a takeover after 3.1 s"),
        (link("cut", healed_ms=3_500.0), UNKNOWN, "too short"),
        (link("cut", healed_ms=None), UNKNOWN, "from start to heal"),
    ],
    # A member whose silence nobody notices delivers beside its successor.
    ("two members deliver", "asymmetric-cut", "zookeeper"): beside(
        link("cut", takeover_ms=6_000.0),
        ({"two_delivering_longest_s": 2.0}, YES, ""),
        ({"two_delivering_longest_s": 0.5}, NO, ""),
        ({"two_delivering_longest_s": None}, UNKNOWN, ""),
    ),
    ("replaced", "asymmetric-cut", "eager"): [
        (link("cut", takeover_ms=4_900.0), YES, "after 4.9 s; the session is 3 s"),
        (link("cut", healed_ms=20_000.0, takeover_ms=12_000.0), NO, "after 12.0 s"),
        (link("cut", healed_ms=20_000.0), NO, "nobody was assigned"),
        (link("cut", takeover_ms=9_100.0), UNKNOWN, "nobody was assigned"),
        (link("cut", healed_ms=4_000.0), UNKNOWN, "nobody was assigned"),
        (link("cut", healed_ms=None), UNKNOWN, "from start to heal"),
    ],
    # A heartbeat that arrives after 1.1 s is answered 0.6 s later; the next one is sent after 1 s and takes 2.1 s.
    ("outlasts the delay", "slow-link", "eager"): [
        (link("growing-delay", takeover_ms=4_100.0), YES, "about 3.7 s apart"),
        (link("growing-delay", takeover_ms=6_500.0), YES, "about 5.8 s apart"),
        (silent(4_615.0), YES, "about 3.7 s apart"),
        (silent(2_995.0), YES, "about 3.7 s apart"),
        (silent(1_700.0), NO, "at most 1.7 s after it was heard from"),
        (link("growing-delay", takeover_ms=3_100.0), YES, "about 3.1 s apart"),
        (link("growing-delay", takeover_ms=2_900.0), UNKNOWN, "may have been late"),
        (link("growing-delay"), YES, "round trips of up to 6.0 s; the session is 3"),
        (link("growing-delay", healed_ms=2_000.0), UNKNOWN, "up to 2.4 s"),
        ({}, UNKNOWN, "from start to heal"),
    ],
    # A killed member may lose the record in hand.
    ("no record lost", "flapping-member", "zookeeper"): [
        (lost(4.0, FLAPS), YES, ""),
        (lost(5.0, FLAPS), NO, ""),
        (lost(1.0, {"fault": "kill", "target": "owner"}), YES, ""),
        (lost(1.0, {"fault": "kill", "target": "zookeeper-1"}), NO, ""),
        (lost(1.0, {"fault": "kill", "target": "leader"}), NO, ""),
        (lost(1.0), NO, ""),
    ],
}


@pytest.mark.parametrize(PARAMETERS, rows_of(VERDICTS))
def test_verdict(judged: tuple[str, str, str], given: Any, outcome: VerdictOutcome, reason: str) -> None:
    assert_verdict(judged, given, outcome, reason)


@pytest.mark.parametrize(
    ("check", "scenario", "given"),
    [
        # Tries that take about as long as the session:
        *(
            (check, "rebalance-failed", {**FAILING, "rebalances_failed": 1.0, **tried(tries, backoff_ms)})
            for tries, backoff_ms in ((4, 1000), (1, 4000), (2, 2000))
            for check in ("gives up", "outlasts the session")
        ),
        ("owner znodes deleted", "ghost-owner", {"left_unnamed": 4.0, **CUT_OFF, **CHECKED}),
        # Nobody took over, or just before the end:
        ("two members deliver", "asymmetric-cut", {**link("cut"), "two_delivering_longest_s": 0.0}),
        (
            "two members deliver",
            "asymmetric-cut",
            {**link("cut", takeover_ms=8_800.0), "two_delivering_longest_s": 0.4},
        ),
    ],
)
def test_nothing_is_said(check: str, scenario: str, given: dict[str, Any]) -> None:
    assert check not in verdicts_on(scenario, "zookeeper", **given)


def test_a_killed_leader_is_an_outage_until_the_group_has_settled() -> None:
    killed = change("kill", target="zookeeper-3", rounds=0, stopped=0, settled_ms=6_000.0, stalled_s=1.4)
    found = verdict_on("goes on delivering", "zk-leader-kill", "zookeeper", changes=[killed], **FLOWING)
    assert found == (YES, "nothing was delivered for 1.4 s; ZooKeeper had lost a server for 6.0 s")


def test_a_fault_or_change_that_outlasts_the_next_one_is_not_measured_by_itself() -> None:
    delayed = change("delay", members=None, from_ms=1_000.0, healed_ms=9_000.0, converge_ms=None)
    later = change("expire", members=None, from_ms=5_000.0, healed_ms=10.0, converge_ms=800.0)
    joined = change("join", from_ms=2_000.0, settled_ms=None, converge_ms=None)
    for changes in ([delayed, later], [delayed, joined, later]):
        found = verdict_on("settles", "ghost-owner", "zookeeper", changes=changes)
        assert found == (YES, "within 800 ms (slowest: expire)")
    ended = change("delay", members=None, from_ms=1_000.0, healed_ms=3_000.0, converge_ms=None)
    assert verdict_on("settles", "ghost-owner", "zookeeper", changes=[ended, later])[0] is NO


def test_a_delay_grows_in_as_many_steps_as_the_check_assumes() -> None:
    assert GROWING_STEPS == link_faults._STEPS
