"""Rules of thumb for timers that belong together. Pure.

A group works with a broken rule until something goes wrong: then it costs a rebalance, or a partition without an owner.
So a broken rule is a warning, never an error. docs/settings.md says why each rule is one, with a scenario that shows
it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: A session outlasts two heartbeats that are lost.
HEARTBEATS_A_SESSION = 3

SESSION, HEARTBEAT, MAX_POLL = "session.timeout.ms", "heartbeat.interval.ms", "max.poll.interval.ms"
ZOOKEEPER_SESSION, RETRIES, BACKOFF = (
    "zookeeper.session.timeout.ms",
    "rebalance.max.retries",
    "rebalance.backoff.ms",
)
RECORDS = "max.poll.records"


class Rule(NamedTuple):
    """A rule of thumb: the settings that it is about, and what is wrong with their values, '' if nothing is."""

    names: tuple[str, ...]
    broken: Callable[..., str]


def _session_of_three_heartbeats(session_ms: int, heartbeat_ms: int) -> str:
    if heartbeat_ms * HEARTBEATS_A_SESSION <= session_ms:
        return ""
    return (
        f"{SESSION}={session_ms} is less than three times {HEARTBEAT}={heartbeat_ms}: one or two heartbeats that are "
        f"late end the session; use {HEARTBEAT}={session_ms // HEARTBEATS_A_SESSION} or less, or {SESSION}="
        f"{heartbeat_ms * HEARTBEATS_A_SESSION} or more"
    )


def _attempts_outlast_the_session(session_ms: int, retries: int, backoff_ms: int) -> str:
    if retries * backoff_ms > session_ms:
        return ""
    return (
        f"{RETRIES} x {BACKOFF} is {retries * backoff_ms} ms, not more than {ZOOKEEPER_SESSION}={session_ms}: a "
        "rebalance gives up while a dead member still owns its partitions"
    )


def _batch_within_the_interval(record_ms: int, interval_ms: int, records: int) -> str:
    if records * record_ms < interval_ms:
        return ""
    return (
        f"{MAX_POLL}={interval_ms} is not above the slowest batch, {RECORDS}={records} of {record_ms} ms each: the "
        f"member is removed while it works; use {MAX_POLL}={(records + 1) * record_ms} or more, or "
        f"{RECORDS}={max(1, (interval_ms - 1) // record_ms)} or less"
    )


RULES = (
    Rule((SESSION, HEARTBEAT), _session_of_three_heartbeats),
    Rule((ZOOKEEPER_SESSION, RETRIES, BACKOFF), _attempts_outlast_the_session),
)


def timer_advice(settings: Mapping[str, object], *, slowest_record_ms: int = 0) -> list[str]:
    """A line for each rule that these settings of a member break; values may be numbers or texts.

    Only members that have all of a rule's settings can break it. `slowest_record_ms` is how long the application takes
    for a record; 0: unknown.
    """
    rules = list(RULES)
    if slowest_record_ms:
        rules.append(Rule((MAX_POLL, RECORDS), partial(_batch_within_the_interval, slowest_record_ms)))
    lines = (
        rule.broken(*(int(str(settings[name])) for name in rule.names))
        for rule in rules
        if all(settings.get(name) is not None for name in rule.names)
    )
    return [line for line in lines if line]
