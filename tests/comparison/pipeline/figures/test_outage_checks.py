"""Verdicts on runs in which ZooKeeper, a session, or the way to the authority fails."""

from __future__ import annotations

from typing import Any

import pytest

from comparison.pipeline.figures.outage_checks import GROWING_STEPS
from comparison.pipeline.figures.verdicts import CHECKS, judge
from comparison.results.outcomes import VerdictOutcome
from comparison.results.run import Change, Delivery
from comparison.scenarios.run import link_faults
from kernel.designs import COORDINATED, DESIGN_NAMES
from tests.support.runs.results import change, run

YES, NO, UNKNOWN = VerdictOutcome.EXPECTED, VerdictOutcome.NOT_EXPECTED, VerdictOutcome.UNKNOWN
HEARTBEATS = {"eager", "static", "cooperative", "delayed", "consumer"}


def designs_of(check: str, scenario: str) -> set[str]:
    return {
        design
        for design in DESIGN_NAMES
        if any(each.name == check and each.covers(run(scenario, design)) for each in CHECKS)
    }


@pytest.mark.parametrize(
    ("check", "scenario", "designs"),
    [
        ("gives up", "rebalance-failed", {"zookeeper"}),
        ("outlasts the session", "rebalance-failed", {"zookeeper"}),
        ("nobody gives up", "rebalance-failed", set(COORDINATED)),
        ("no rebalance", "zk-leader-kill", set(DESIGN_NAMES)),
        ("no rebalance", "quorum-loss", set(DESIGN_NAMES)),
        ("goes on delivering", "zk-leader-kill", set(DESIGN_NAMES) - {"server"}),
        ("goes on delivering", "quorum-loss", set(DESIGN_NAMES) - {"server"}),
        ("stands still", "quorum-loss", {"server"}),
        ("everybody rebalances", "session-expiry", {"zookeeper"}),
        ("expiry noticed", "session-expiry-all", {"server"}),
        ("owner znodes deleted", "ghost-owner", {"zookeeper"}),
        ("storm", "flapping-member", set(DESIGN_NAMES) - {"static"}),
        ("no storm", "flapping-member", {"static"}),
        # A member may give up what one that is dead already is to have, and get it back when that one is removed.
        ("kept partitions never stop", "flapping-member", set()),
        ("outlives the silence", "asymmetric-cut", {"zookeeper", "server"}),
        ("two members deliver", "asymmetric-cut", {"zookeeper", "consumer"}),
        ("replaced", "asymmetric-cut", HEARTBEATS),
        ("outlasts the delay", "slow-link", set(DESIGN_NAMES)),
    ],
)
def test_checks_apply_to_designs_by_scenario(check: str, scenario: str, designs: set[str]) -> None:
    assert designs_of(check, scenario) == designs


def judged(check: str, scenario: str, design: str, given: dict[str, Any]) -> tuple[VerdictOutcome, str] | None:
    found = [each for each in judge(run(scenario, design, **given)).verdicts if each.check == check]
    return (found[0].outcome, found[0].reason) if found else None


def tried(tries: int, backoff_ms: int) -> dict[str, Any]:
    settings = {"rebalance.max.retries": str(tries), "rebalance.backoff.ms": str(backoff_ms)}
    return {"timers": {"session_ms": 3000}, "member_settings": settings}


KILLED = {"changes": [change("kill", target="m2")]}
FAILING = {**KILLED, "attempts_failed": 4.0}


@pytest.mark.parametrize(
    ("check", "given", "outcome", "reason"),
    [
        (
            "gives up",
            {**FAILING, "rebalances_failed": 1.0, "parameters": tried(4, 200)},
            YES,
            "1 rebalance given up, 4 attempts failed: 4 tries in 800 ms",
        ),
        ("gives up", {**FAILING, "parameters": tried(4, 200)}, NO, "0 rebalances given up"),
        ("gives up", {**KILLED, "parameters": tried(4, 200)}, UNKNOWN, "no claim met one of a killed member"),
        # A process that starts late, as on a busy machine, has only the rest of the dead one's session to try in.
        (
            "gives up",
            {**KILLED, "attempts_failed": 3.0, "parameters": tried(4, 200)},
            UNKNOWN,
            "the session ended before anybody had tried as often",
        ),
        ("gives up", {"attempts_failed": 4.0, "parameters": tried(4, 200)}, UNKNOWN, "no claim met one"),
        ("outlasts the session", {**FAILING, "parameters": tried(4, 2000)}, YES, "0 rebalances given up"),
        (
            "outlasts the session",
            {**FAILING, "rebalances_failed": 1.0, "parameters": tried(4, 2000)},
            NO,
            "4 tries in 8000 ms, a dead member's session lasts 3000 ms",
        ),
        ("outlasts the session", {**KILLED, "parameters": tried(4, 2000)}, UNKNOWN, "no claim met one"),
    ],
)
def test_tries_are_held_against_the_session(
    check: str, given: dict[str, Any], outcome: VerdictOutcome, reason: str
) -> None:
    found = judged(check, "rebalance-failed", "zookeeper", given)
    assert found is not None
    assert found[0] is outcome, found
    assert reason in found[1]


@pytest.mark.parametrize(("tries", "backoff_ms"), [(4, 1000), (1, 4000), (2, 2000)])
def test_nothing_is_said_of_tries_that_are_about_as_long_as_the_session(tries: int, backoff_ms: int) -> None:
    given = {**FAILING, "rebalances_failed": 1.0, "parameters": tried(tries, backoff_ms)}
    assert judged("gives up", "rebalance-failed", "zookeeper", given) is None
    assert judged("outlasts the session", "rebalance-failed", "zookeeper", given) is None


@pytest.mark.parametrize(
    ("given", "outcome"),
    [
        (KILLED, YES),
        ({**KILLED, "failures": ["m1: RebalanceFailed: no"]}, NO),
        ({"changes": [change("join")]}, UNKNOWN),
    ],
)
def test_no_error_reaches_an_application_under_a_coordinator(given: dict[str, Any], outcome: VerdictOutcome) -> None:
    found = judged("nobody gives up", "rebalance-failed", "eager", given)
    assert found is not None
    assert found[0] is outcome


#: A quorum is lost after 1 s for 5 s; 100 records a second are delivered throughout, or nothing after 4 s.
AWAY = change("quorum-loss", members=None, target="ensemble", rounds=0, stopped=0, healed_ms=5_000.0, stalled_s=0.2)
FLOWING = Delivery(from_ms=0.0, bin_ms=100.0, records=[10] * 80)
DRIED_UP = Delivery(from_ms=0.0, bin_ms=100.0, records=[10] * 10)


def away(**given: Any) -> list[Change]:
    return [
        change("quorum-loss", **{name: getattr(AWAY, name) for name in ("members", "target", "healed_ms")}, **given)
    ]


@pytest.mark.parametrize(
    ("check", "given", "outcome", "reason"),
    [
        ("no rebalance", {"changes": [AWAY], "delivery": FLOWING}, YES, "690 records delivered since"),
        ("no rebalance", {"changes": away(rounds=1, stopped=12), "delivery": FLOWING}, NO, "1 rebalance of the group"),
        ("no rebalance", {"changes": [AWAY], "delivery": DRIED_UP}, UNKNOWN, "nothing was delivered afterwards"),
        ("no rebalance", {"changes": [AWAY]}, UNKNOWN, "nothing was delivered afterwards"),
        ("no rebalance", {}, UNKNOWN, "no ZooKeeper server was killed"),
        ("no rebalance", KILLED, UNKNOWN, "no ZooKeeper server was killed"),
        ("goes on delivering", {"changes": [AWAY], "delivery": FLOWING}, YES, "for 0.2 s"),
        ("goes on delivering", {"changes": away(stopped=0, stalled_s=3.0), "delivery": FLOWING}, NO, "for 3.0 s"),
        ("goes on delivering", {"changes": away(stopped=12, stalled_s=0.2), "delivery": FLOWING}, NO, "for 0.2 s"),
        ("goes on delivering", {"changes": [AWAY], "delivery": DRIED_UP}, NO, "nothing was delivered afterwards"),
        ("goes on delivering", {"changes": away(rounds=0, stalled_s=None)}, UNKNOWN, "under load"),
    ],
)
def test_a_group_goes_on_without_zookeeper(
    check: str, given: dict[str, Any], outcome: VerdictOutcome, reason: str
) -> None:
    found = judged(check, "quorum-loss", "eager", given)
    assert found is not None
    assert found[0] is outcome, found
    assert reason in found[1]


@pytest.mark.parametrize(
    ("stopped", "stalled_s", "session_ms", "outcome"),
    [
        (12, 4.0, 3000, YES),
        (0, 4.0, 3000, NO),
        (12, 0.5, 3000, NO),
        (12, 4.0, 9000, UNKNOWN),
        (12, None, 3000, UNKNOWN),
    ],
)
def test_members_of_server_stand_still_without_zookeeper(
    stopped: int, stalled_s: float | None, session_ms: int, outcome: VerdictOutcome
) -> None:
    changes = away(rounds=0, stopped=stopped, stalled_s=stalled_s)
    given = {"changes": changes, "delivery": FLOWING, "parameters": {"timers": {"session_ms": session_ms}}}
    found = judged("stands still", "quorum-loss", "server", given)
    assert found is not None
    assert found[0] is outcome, found


def test_a_killed_leader_is_an_outage_until_the_group_has_settled() -> None:
    killed = change("kill", target="zookeeper-3", rounds=0, stopped=0, settled_ms=6_000.0, stalled_s=1.4)
    found = judged("goes on delivering", "zk-leader-kill", "zookeeper", {"changes": [killed], "delivery": FLOWING})
    assert found == (YES, "nothing was delivered for 1.4 s; ZooKeeper had lost a server for 6.0 s")


def expired(**given: Any) -> dict[str, Any]:
    return {"changes": [change("expire", members=None, **{"rounds": 2, "attempts": 9, "stopped": 24, **given})]}


@pytest.mark.parametrize(
    ("design", "given", "outcome"),
    [
        ("zookeeper", expired(), YES),
        ("zookeeper", expired(attempts=4), NO),
        ("zookeeper", expired(rounds=0), NO),
        ("zookeeper", {}, UNKNOWN),
        ("server", expired(attempts=0), YES),
        ("server", expired(rounds=0), NO),
        ("server", {}, UNKNOWN),
    ],
)
def test_an_expiry_is_noticed(design: str, given: dict[str, Any], outcome: VerdictOutcome) -> None:
    check = "everybody rebalances" if design == "zookeeper" else "expiry noticed"
    found = judged(check, "session-expiry", design, given)
    assert found is not None
    assert found[0] is outcome, found


@pytest.mark.parametrize(
    ("target", "rounds", "outcome", "reason"),
    [
        ("owner", 2, YES, "2 rebalances, 24 partitions stopped"),
        ("owner", 3, NO, "3 rebalances, 24 partitions stopped, 4 notifications of members; members went and came back"),
        ("members", 8, YES, "8 rebalances"),
        ("members", 9, NO, "went and came back 8 times at most"),
    ],
)
def test_a_coordinator_rebalances_at_most_once_for_each_member_that_goes_and_that_comes_back(
    target: str, rounds: int, outcome: VerdictOutcome, reason: str
) -> None:
    scenario = "session-expiry" if target == "owner" else "session-expiry-all"
    parameters = {"members": 4, "injected": [{"fault": "expire", "target": target}]}
    found = judged("expiry noticed", scenario, "server", {**expired(rounds=rounds), "parameters": parameters})
    assert found is not None
    assert (found[0], reason in found[1]) == (outcome, True), found


CUT_OFF = {"delete": 90, "delete (NoNode)": 3, "delete (SessionExpired)": 1}
CHECKED = {"parameters": {"settings": {"fix.checked.release": "true"}}}


@pytest.mark.parametrize(
    ("given", "outcome", "reason"),
    [
        ({"left_unnamed": 4.0, "zk_operations": CUT_OFF}, YES, "4 partitions without an owner znode at the end"),
        ({"left_unnamed": 0.0, "zk_operations": CUT_OFF}, NO, "every partition has its owner znode"),
        ({"left_unnamed": 4.0, "zk_operations": {"delete (NoNode)": 3}}, UNKNOWN, "no session ended in the middle"),
        ({"left_unnamed": None, "zk_operations": CUT_OFF}, UNKNOWN, "no owner was traced"),
    ],
)
def test_owner_znodes_are_deleted_by_a_release_that_outlives_its_session(
    given: dict[str, Any], outcome: VerdictOutcome, reason: str
) -> None:
    found = judged("owner znodes deleted", "ghost-owner", "zookeeper", given)
    assert found is not None
    assert found[0] is outcome, found
    assert reason in found[1]
    opposite = {YES: NO, NO: YES, UNKNOWN: UNKNOWN}
    kept = judged("owner znodes kept", "ghost-owner", "zookeeper", {**given, **CHECKED})
    assert kept is not None
    assert kept[0] is opposite[outcome]
    assert judged("owner znodes deleted", "ghost-owner", "zookeeper", {**given, **CHECKED}) is None


FLAP = {
    "timers": {"session_ms": 3000},
    "partitions": 12,
    "injected": [{"fault": "flap", "target": "m2", "times": 4, "every_ms": 700}],
}


def flapped(rounds: int, **given: Any) -> dict[str, Any]:
    usual = {"rounds": rounds, "healed_ms": 5_000.0, "converge_ms": 8_000.0, "unowned_partition_s": 48.0}
    return {"changes": [change("flap", members=None, **{**usual, **given})], "parameters": FLAP}


@pytest.mark.parametrize(
    ("check", "design", "given", "outcome", "reason"),
    [
        ("storm", "zookeeper", flapped(8), YES, "8 rebalances in 8.0 s (60 a minute) for 4 restarts; partitions had"),
        ("storm", "zookeeper", flapped(8), YES, "an owner 50% of the time"),
        ("storm", "zookeeper", flapped(1), NO, "1 rebalance in"),
        ("storm", "zookeeper", flapped(8, unowned_partition_s=0.0), UNKNOWN, "does not show that a member was away"),
        ("storm", "zookeeper", {}, UNKNOWN, "several times"),
        ("no storm", "static", flapped(0), YES, "0 rebalances"),
        ("no storm", "static", flapped(1), NO, "1 rebalance"),
        ("no storm", "static", flapped(1, silent_ms=2_100.0), NO, "1 rebalance"),
        ("no storm", "static", flapped(1, silent_ms=3_150.0), UNKNOWN, "back only after its session"),
        ("no storm", "static", flapped(0, unowned_partition_s=0.0), UNKNOWN, "was away"),
    ],
)
def test_a_member_that_comes_and_goes(
    check: str, design: str, given: dict[str, Any], outcome: VerdictOutcome, reason: str
) -> None:
    found = judged(check, "flapping-member", design, given)
    assert found is not None
    assert found[0] is outcome, found
    assert reason in found[1]


TIMERS = {"session_ms": 3000, "heartbeat_ms": 1000}
GROWING = {"fault": "growing-delay", "target": "owner->authority", "to_ms": 3000, "within_ms": 6000}
RUN = {"timers": TIMERS, "injected": [GROWING]}


def link(name: str, **given: Any) -> dict[str, Any]:
    usual = {"members": None, "healed_ms": 9_000.0, "rounds": 0, "moved": 0, "takeover_ms": None}
    return {"changes": [change(name, **{**usual, **given})], "parameters": RUN}


def silent(silent_ms: float) -> dict[str, Any]:
    return link("growing-delay", takeover_ms=4_100.0, silent_ms=silent_ms)


@pytest.mark.parametrize(
    ("check", "scenario", "given", "outcome", "reason"),
    [
        ("outlives the silence", "asymmetric-cut", link("cut"), YES, "nobody took over in 9.0 s; the session is 3 s"),
        ("outlives the silence", "asymmetric-cut", link("cut", takeover_ms=6_300.0), YES, "a takeover after 6.3 s"),
        ("outlives the silence", "asymmetric-cut", link("cut", takeover_ms=3_100.0), NO, "a takeover after 3.1 s"),
        ("outlives the silence", "asymmetric-cut", link("cut", healed_ms=3_500.0), UNKNOWN, "too short"),
        ("outlives the silence", "asymmetric-cut", link("cut", healed_ms=None), UNKNOWN, "from start to heal"),
        ("replaced", "asymmetric-cut", link("cut", takeover_ms=4_900.0), YES, "after 4.9 s; the session is 3 s"),
        ("replaced", "asymmetric-cut", link("cut", healed_ms=20_000.0, takeover_ms=12_000.0), NO, "after 12.0 s"),
        ("replaced", "asymmetric-cut", link("cut", healed_ms=20_000.0), NO, "nobody was assigned"),
        ("replaced", "asymmetric-cut", link("cut", takeover_ms=9_100.0), UNKNOWN, "nobody was assigned"),
        ("replaced", "asymmetric-cut", link("cut", healed_ms=4_000.0), UNKNOWN, "nobody was assigned"),
        ("replaced", "asymmetric-cut", link("cut", healed_ms=None), UNKNOWN, "from start to heal"),
        # A heartbeat that arrives after 1.1 s is answered 0.6 s later; the next one is sent after 1 s and takes 2.1 s.
        ("outlasts the delay", "slow-link", link("growing-delay", takeover_ms=4_100.0), YES, "about 3.7 s apart"),
        ("outlasts the delay", "slow-link", link("growing-delay", takeover_ms=6_500.0), YES, "about 5.8 s apart"),
        ("outlasts the delay", "slow-link", silent(4_615.0), YES, "about 3.7 s apart"),
        ("outlasts the delay", "slow-link", silent(2_995.0), YES, "about 3.7 s apart"),
        ("outlasts the delay", "slow-link", silent(1_700.0), NO, "at most 1.7 s after it was heard from"),
        ("outlasts the delay", "slow-link", link("growing-delay", takeover_ms=3_100.0), YES, "about 3.1 s apart"),
        ("outlasts the delay", "slow-link", link("growing-delay", takeover_ms=2_900.0), UNKNOWN, "may have been late"),
        ("outlasts the delay", "slow-link", link("growing-delay"), YES, "round trips of up to 6.0 s; the session is 3"),
        ("outlasts the delay", "slow-link", link("growing-delay", healed_ms=2_000.0), UNKNOWN, "up to 2.4 s"),
        ("outlasts the delay", "slow-link", {}, UNKNOWN, "from start to heal"),
    ],
)
def test_a_link_that_is_slow_or_carries_one_direction(
    check: str, scenario: str, given: dict[str, Any], outcome: VerdictOutcome, reason: str
) -> None:
    found = judged(check, scenario, "zookeeper" if check == "outlives the silence" else "eager", given)
    assert found is not None
    assert found[0] is outcome, found
    assert reason in found[1]


@pytest.mark.parametrize(
    ("longest_s", "takeover_ms", "outcome"),
    [(2.0, 6_000.0, YES), (0.5, 6_000.0, NO), (None, 6_000.0, UNKNOWN), (0.0, None, None), (0.4, 8_800.0, None)],
)
def test_a_silent_zookeeper_member_delivers_beside_its_successor(
    longest_s: float | None, takeover_ms: float | None, outcome: VerdictOutcome | None
) -> None:
    given = {**link("cut", takeover_ms=takeover_ms), "two_delivering_longest_s": longest_s}
    found = judged("two members deliver", "asymmetric-cut", "zookeeper", given)
    assert (found[0] if found else None) is outcome


def test_a_fault_or_change_that_outlasts_the_next_one_is_not_measured_by_itself() -> None:
    delayed = change("delay", members=None, from_ms=1_000.0, healed_ms=9_000.0, converge_ms=None)
    later = change("expire", members=None, from_ms=5_000.0, healed_ms=10.0, converge_ms=800.0)
    found = judged("settles", "ghost-owner", "zookeeper", {"changes": [delayed, later]})
    assert found == (YES, "within 800 ms (slowest: expire)")
    joined = change("join", from_ms=2_000.0, settled_ms=None, converge_ms=None)
    found = judged("settles", "ghost-owner", "zookeeper", {"changes": [delayed, joined, later]})
    assert found == (YES, "within 800 ms (slowest: expire)")
    ended = change("delay", members=None, from_ms=1_000.0, healed_ms=3_000.0, converge_ms=None)
    found = judged("settles", "ghost-owner", "zookeeper", {"changes": [ended, later]})
    assert found is not None
    assert found[0] is NO


@pytest.mark.parametrize(
    ("injected", "lost", "outcome"),
    [
        ([{"fault": "flap", "target": "m2", "times": 4}], 4.0, YES),
        ([{"fault": "flap", "target": "m2", "times": 4}], 5.0, NO),
        ([{"fault": "kill", "target": "owner"}], 1.0, YES),
        ([{"fault": "kill", "target": "zookeeper-1"}], 1.0, NO),
        ([{"fault": "kill", "target": "leader"}], 1.0, NO),
        ([], 1.0, NO),
    ],
)
def test_a_killed_zookeeper_member_may_lose_the_record_in_hand(
    injected: list[dict[str, Any]], lost: float, outcome: VerdictOutcome
) -> None:
    found = judged(
        "no record lost", "flapping-member", "zookeeper", {"lost": lost, "parameters": {"injected": injected}}
    )
    assert found is not None
    assert found[0] is outcome


def test_a_delay_grows_in_as_many_steps_as_the_check_assumes() -> None:
    assert GROWING_STEPS == link_faults._STEPS
