"""A consumer group's own settings: Kafka's checks, in its words."""

from __future__ import annotations

import pytest

from kernel.broker.settings.group_configs import TimeoutBounds, Timeouts, problem_of_group, timeouts_of

DEFAULTS, BOUNDS = Timeouts(), TimeoutBounds()
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
WRONG = [
    ({"session.timeout.ms": "1"}, "Unknown group config name: session.timeout.ms"),
    ({SESSION: "long"}, f"Invalid value long for configuration {SESSION}: Not a number of type INT"),
    ({SESSION: "0"}, f"Invalid value 0 for configuration {SESSION}: Value must be at least 1"),
    ({SESSION: "44999"}, f"{SESSION} must be greater than or equal to group.consumer.min.session.timeout.ms"),
    ({SESSION: "60001"}, f"{SESSION} must be less than or equal to group.consumer.max.session.timeout.ms"),
    ({HEARTBEAT: "4999"}, f"{HEARTBEAT} must be greater than or equal to group.consumer.min.heartbeat.interval.ms"),
    ({HEARTBEAT: "15001"}, f"{HEARTBEAT} must be less than or equal to group.consumer.max.heartbeat.interval.ms"),
]


@pytest.mark.parametrize(("configs", "message"), WRONG)
def test_wrong_settings_are_refused_in_kafkas_words(configs, message):
    assert problem_of_group(configs, DEFAULTS, BOUNDS) == message


def test_session_must_be_longer_than_the_interval_of_heartbeats():
    bounds = TimeoutBounds(session_timeout_ms_min=1, heartbeat_interval_ms_min=1)
    assert problem_of_group({SESSION: "5000"}, DEFAULTS, bounds) == f"{SESSION} must be greater than {HEARTBEAT}"


@pytest.mark.parametrize(
    ("configs", "timeouts"),
    [({}, DEFAULTS), ({SESSION: "50000"}, Timeouts(50_000)), ({HEARTBEAT: " 7000 "}, Timeouts(45_000, 7_000))],
)
def test_what_a_group_does_not_set_comes_from_the_broker(configs, timeouts):
    assert problem_of_group(configs, DEFAULTS, BOUNDS) is None
    assert timeouts_of(configs, DEFAULTS) == timeouts
