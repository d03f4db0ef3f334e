"""The rebalance of the 0.8.2 high-level consumer as a table, and how the options change it.

`table(rules)` gives the rows in the order in which they are walked: R1 to R12 of Kafka 0.8.2's
ZookeeperConsumerConnector, each with the ZooKeeper requests that it makes. (R10, the original's new registry, has no
row: the attempt keeps it as its `claims`.) Below come first the groups of rows, the original's and those that only an
option brings; then `table`, which puts them together and says in one place what an option does: it puts in a row,
leaves one out, changes its place, or replaces how it is entered or left. What each row asks and where its answers
lead is in `reading.py`, `releasing.py`, `deciding.py` and `claiming.py`; `rebalance.py` walks through the table.

B brokers, N members, T topics of ours, k partitions owned before, k' after; each read of a registration with
a pattern brings one getChildren more. Between R12 and the next rebalance follow the leader finder's 1 + B reads.

What the original does not promise, and the rows that show it:

- *Everybody stops* (R4, R5): every rebalance stops and releases everything, even where nothing changes for us.
- *Offsets are read before the claim* (R8 before R11): whoever commits in between makes us start too early.
- *Release is unconditional* (R5): neither owner nor version of the deleted node is looked at (KAFKA-262).
- *A claim never stops early*, and *the rollback has a gap* (R11): a conflict gives back what this attempt claimed;
  any other failure leaves it claimed, in no registry, so that nobody releases it before our session ends.
- *No broker is a success* (R3a) that changes nothing.
- *The shutdown is heeded once* (R9) in an attempt.

Iteration order is defined: topics in the order of the registration that names them, partitions by topic and number.
(The original goes through hash maps there.)
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from zkconsumer.rebalance import claiming, deciding, reading, releasing
from zkconsumer.rebalance.state import Rules, State
from zkconsumer.rebalance.steps import Row, nothing, passed

if TYPE_CHECKING:
    from collections.abc import Mapping

Rows = dict[State, Row]

_IDS = "getChildren /brokers/ids"

_READ_BROKERS: Rows = {
    State.LISTING_CLUSTER: Row("R1", "detect", _IDS, reading.list_cluster, reading.brokers_listed),
    State.READING_CLUSTER: Row("R1", "detect", "getData x B", reading.read_cluster, reading.cluster_read),
    State.READING_OWN: Row("R2", "detect", "getData ids/me", reading.read_own, reading.own_read),
    State.MATCHING_OWN: Row(
        "R2", "detect", "getChildren /brokers/topics, with a pattern", reading.list_topics, reading.topics_listed
    ),
    State.LISTING_BROKERS: Row("R3", "detect", _IDS, reading.list_brokers, reading.brokers_listed),
    State.READING_BROKERS: Row("R3", "detect", "getData x B", reading.read_brokers, reading.brokers_read),
    State.AWAITING_BROKERS: Row(
        "R3a",
        "detect",
        f"exists, {_IDS}, when there is no broker",
        reading.await_brokers,
        reading.brokers_awaited,
        aside=True,
    ),
}

_STOP: Rows = {
    State.STOPPING: Row("R4", "stop", "setData for each changed offset", releasing.stop, releasing.stopped),
}

_RELEASE: Rows = {
    State.RELEASING: Row("R5", "release", "delete x k", releasing.release, releasing.released),
}

_CHECKED_RELEASE: Rows = {
    State.RELEASING: Row("R5", "release", "getData owners/t/p x k", releasing.check_release, releasing.release_checked),
    State.RELEASING_CHECKED: Row(
        "R5", "release", "delete of those that are ours", releasing.release_ours, releasing.released
    ),
}

_READ_OWN_AGAIN: Rows = {
    State.READING_OWN_AGAIN: Row("R6", "join", "getData ids/me", reading.read_own_again, reading.own_read),
    State.MATCHING_OWN_AGAIN: Row(
        "R6", "join", "getChildren /brokers/topics, with a pattern", reading.list_topics_again, reading.topics_listed
    ),
}

_MEMBERS = "getData ids/x x N, each pattern's getChildren /brokers/topics behind it"

_READ_GROUP: Rows = {
    **_READ_OWN_AGAIN,
    State.READING_TOPICS: Row(
        "R6", "join", "getData topics/t x T, getChildren ids", reading.read_topics, reading.topics_read
    ),
    State.READING_MEMBERS: Row(
        "R6", "join", f"{_MEMBERS}, getChildren ids", reading.read_members, reading.members_read
    ),
}

#: Kafka 1.1's order, which its round robin needs: T are then the topics of all members.
_READ_GROUP_1_1: Rows = {
    **_READ_OWN_AGAIN,
    State.LISTING_MEMBERS: Row("R6", "join", "getChildren ids", reading.list_members, reading.members_listed),
    State.READING_MEMBERS: Row("R6", "join", _MEMBERS, reading.read_members, reading.members_read),
    State.READING_GROUP_TOPICS: Row(
        "R6", "join", "getData topics/t x T, getChildren ids", reading.read_group_topics, reading.group_topics_read
    ),
}

_DECIDE: Rows = {State.DECIDING: Row("R7", "decide", "", nothing, deciding.decided)}

_KAFKA_OFFSETS: Rows = {
    State.READING_KAFKA_OFFSETS: Row(
        "R8", "decide", "none: OffsetFetch to Kafka", deciding.read_kafka_offsets, deciding.kafka_offsets_read
    ),
}

_ZOOKEEPER_OFFSETS: Rows = {
    State.READING_OFFSETS: Row(
        "R8", "decide", "getData offsets/t/p x k'", deciding.read_offsets, deciding.offsets_read
    ),
}

_HEED_SHUTDOWN: Rows = {State.HEEDING_SHUTDOWN: Row("R9", "decide", "", nothing, deciding.shutdown_heeded)}

_CLAIM: Rows = {
    State.CLAIMING: Row("R11", "claim", "create owners/t/p, one after the other", claiming.claim, claiming.claimed),
    State.CHECKING_CLAIM: Row(
        "R11", "claim", "getData owners/t/p of a conflict", claiming.check_claim, claiming.claim_checked, aside=True
    ),
}

_BUMP_EPOCH: Rows = {
    State.BUMPING_EPOCH: Row(
        "R11", "claim", "setData epochs/t/p", claiming.bump_epoch, claiming.epoch_bumped, gives_back=True
    ),
    State.MAKING_EPOCH: Row(
        "R11",
        "claim",
        "create epochs/t/p where there is none",
        claiming.make_epoch,
        claiming.epoch_made,
        aside=True,
        gives_back=True,
    ),
}

_COUNT: Rows = {State.COUNTING: Row("R11", "claim", "", nothing, claiming.counted)}

_ROLL_BACK: Rows = {
    State.ROLLING_BACK: Row(
        "R11", "claim", "delete x claimed, after a conflict", claiming.roll_back, claiming.rolled_back, aside=True
    ),
}

_CHECKED_ROLL_BACK: Rows = {
    State.ROLLING_BACK: Row(
        "R11",
        "claim",
        "getData x claimed, after a conflict",
        claiming.check_roll_back,
        claiming.roll_back_checked,
        aside=True,
    ),
    State.ROLLING_BACK_CHECKED: Row(
        "R11", "claim", "delete of those that are ours", claiming.roll_back_ours, claiming.rolled_back, aside=True
    ),
}

_START: Rows = {
    State.OWNING: Row("R12", "resume", "", nothing, claiming.owned),
    State.ADOPTING: Row("R12", "resume", "", claiming.adopt, claiming.adopted),
    State.STARTING: Row("R12", "resume", "", claiming.start, passed),
}


@lru_cache(maxsize=4096)  # the rules name the member, and a process may have many
def table(rules: Rules) -> Mapping[State, Row]:
    """The rows for these rules, in order; with none of the options they are the original's."""
    return MappingProxyType({**_before_the_decision(rules), **_from_the_decision(rules)})


def _before_the_decision(rules: Rules) -> Rows:
    rows = {**_READ_BROKERS, **_STOP, **_RELEASE, **_READ_GROUP}
    if rules.checked_release:
        rows = {**_READ_BROKERS, **_STOP, **_CHECKED_RELEASE, **_READ_GROUP}
    if rules.strategy == "roundrobin-1.1":
        rows = {state: row for state, row in rows.items() if state not in _READ_GROUP} | _READ_GROUP_1_1
    if rules.listener_in_attempt:
        tell = Row("R4", "stop", "none: 1.1's listener", releasing.tell_releasing, passed)
        rows = _put_before(rows, State.RELEASING, State.TELLING_REVOKED, tell)
    if rules.sync_before_reads:
        sync = Row("R1", "detect", "sync /brokers/ids", reading.sync_brokers, passed)
        rows = _put_before(rows, State.LISTING_CLUSTER, State.SYNCING, sync)
        sync_again = Row("R6", "join", "sync ids", reading.sync_group, passed)
        rows = _put_before(rows, State.READING_OWN_AGAIN, State.SYNCING_AGAIN, sync_again)
    if rules.skip_unreadable_members:
        members = rows[State.READING_MEMBERS]
        rows[State.READING_MEMBERS] = replace(members, leave=reading.readable_members_read)
    return rows


def _from_the_decision(rules: Rules) -> Rows:
    offsets = _offsets(rules)
    claim = _claim(rules)
    start = dict(_START)
    if rules.listener_in_attempt:
        tell = Row("R12", "resume", "none: 1.1's listener", claiming.tell_starting, passed)
        start = _put_before(start, State.ADOPTING, State.TELLING_ASSIGNED, tell)
        start[State.STARTING] = replace(start[State.STARTING], enter=claiming.start_untold)
    decide = dict(_DECIDE)
    if rules.skip_unreadable_members:
        decide[State.DECIDING] = replace(decide[State.DECIDING], enter=deciding.name_left_out)
    if rules.claim_before_offsets:
        # What fails behind the claim gives it back, since there the gap would be ours.
        offsets = {state: replace(row, phase="claim", gives_back=True) for state, row in offsets.items()}
        return {**decide, **claim, **offsets, **start}
    return {**decide, **offsets, **claim, **start}


def _offsets(rules: Rules) -> Rows:
    kafka = _KAFKA_OFFSETS if "kafka" in rules.offsets_from else {}
    zookeeper = _ZOOKEEPER_OFFSETS if "zookeeper" in rules.offsets_from else {}
    return {**kafka, **zookeeper, **_HEED_SHUTDOWN}


def _claim(rules: Rules) -> Rows:
    claim = dict(_CLAIM)
    if rules.checked_claim:
        row = replace(claim[State.CHECKING_CLAIM], leave=claiming.claim_checked_with_session)
        claim[State.CHECKING_CLAIM] = row
    bump = _BUMP_EPOCH if rules.fence_epochs else {}
    return {**claim, **bump, **_COUNT, **(_CHECKED_ROLL_BACK if rules.checked_release else _ROLL_BACK)}


def _put_before(rows: Rows, place: State, state: State, row: Row) -> Rows:
    put: Rows = {}
    for other, its_row in rows.items():
        if other is place:
            put[state] = row
        put[other] = its_row
    return put
