"""Rules of thumb for timers: what breaks one, and what does not."""

from __future__ import annotations

import pytest

from kernel.timer_advice import RULES, timer_advice

CLASSIC = {"session.timeout.ms": "6000", "heartbeat.interval.ms": "2000", "max.poll.interval.ms": "10000"}
OLD = {"zookeeper.session.timeout.ms": 6000, "rebalance.max.retries": 4, "rebalance.backoff.ms": 2000}


def test_settings_that_keep_all_rules_need_no_advice() -> None:
    assert timer_advice(CLASSIC | {"max.poll.records": 500}, slowest_record_ms=19) == []
    assert timer_advice(OLD) == []


@pytest.mark.parametrize(
    ("settings", "slowest_ms", "line"),
    [
        (
            CLASSIC | {"heartbeat.interval.ms": "2001"},
            0,
            "session.timeout.ms=6000 is less than three times heartbeat.interval.ms=2001",
        ),
        (
            OLD | {"rebalance.backoff.ms": 1500},
            0,
            "rebalance.max.retries x rebalance.backoff.ms is 6000 ms, not more than zookeeper.session.timeout.ms=6000",
        ),
        (
            CLASSIC | {"max.poll.records": 500},
            20,
            "max.poll.interval.ms=10000 is not above the slowest batch, max.poll.records=500 of 20 ms each",
        ),
    ],
)
def test_a_broken_rule_is_one_line_with_the_values(settings: dict[str, object], slowest_ms: int, line: str) -> None:
    (advice,) = timer_advice(settings, slowest_record_ms=slowest_ms)
    assert advice.startswith(line)
    assert "\n" not in advice


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_about_settings_that_are_missing_or_unset_does_not_apply(rule) -> None:
    everything = {name: 1 for rule in RULES for name in rule.names}
    broken = len(timer_advice(everything))
    for name in rule.names:
        assert len(timer_advice(everything | {name: None})) == broken - bool(rule.broken(*[1] * len(rule.names)))


def test_the_advice_is_followed_by_the_values_that_it_names() -> None:
    slow = CLASSIC | {"max.poll.records": 500, "max.poll.interval.ms": "500"}
    (advice,) = timer_advice(slow, slowest_record_ms=20)
    assert "max.poll.interval.ms=10020 or more, or max.poll.records=24 or less" in advice
    assert timer_advice(slow | {"max.poll.interval.ms": 10_020}, slowest_record_ms=20) == []
    assert timer_advice(slow | {"max.poll.records": 24}, slowest_record_ms=20) == []
    assert timer_advice(slow | {"max.poll.records": 25}, slowest_record_ms=20) != []
