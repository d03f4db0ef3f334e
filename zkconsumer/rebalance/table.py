"""The rebalance of the 0.8.2 high-level consumer as a table, and how the options change it.

`table(config)` lists the steps of an attempt in order: R1 to R12 of Kafka 0.8.2's ZookeeperConsumerConnector, each
with its ZooKeeper requests. (R10, the original's new registry, has no step: the attempt keeps it as its `claims`.)
The groups of steps come first, the original's and those of the options; then `table` puts them together and shows in
one place what an option does: it adds a step, drops one, moves one, or replaces an entry or exit. Entries and exits
are in `reading.py`, `releasing.py`, `deciding.py` and `claiming.py`; `attempt.py` walks through the table.

B brokers, N members, T topics of ours, k partitions owned before, k' after. Each read of a registration with a pattern
adds one getChildren. After R12 the leader finder makes 1 + B reads.

What the original does not promise, and the steps that show it:

- *Everything stops* (R4, R5): every rebalance stops and releases everything, even if nothing changes for us.
- *Offsets are read before the claim* (R8 before R11): if another member commits in between, we start too early.
- *Release is unconditional* (R5): neither owner nor version of the deleted node is checked (KAFKA-262).
- *Claiming does not stop at a conflict*, and *the rollback has a gap* (R11): a conflict gives back what this attempt
  claimed; any other failure leaves the claims in place but in no registry, so they stay until our session ends.
- *No broker counts as success* (R3a) and changes nothing.
- *The shutdown is checked once* in an attempt (R9).

Iteration order is defined: topics in the order of the registration that names them, partitions by topic and number.
(The original iterates over hash maps there.)
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from zkconsumer.rebalance import claiming, deciding, reading, releasing
from zkconsumer.rebalance.state import RebalanceState as S
from zkconsumer.rebalance.steps import Step, Steps, no_effects, put_before, unchanged

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zkconsumer.rebalance.config import RebalanceConfig

_IDS = "getChildren /brokers/ids"
_TOPICS = "getChildren /brokers/topics, with a pattern"

_READ_BROKERS: Steps = {
    S.LISTING_CLUSTER: Step("R1", "detect", "list the brokers", _IDS, reading.list_cluster, reading.brokers_listed),
    S.READING_CLUSTER: Step(
        "R1", "detect", "read the brokers; all must exist", "getData x B", reading.read_cluster, reading.cluster_read
    ),
    S.READING_OWN: Step(
        "R2", "detect", "read back our own subscription", "getData ids/me", reading.read_own, reading.own_read
    ),
    S.MATCHING_OWN: Step(
        "R2", "detect", "match our pattern against all topics", _TOPICS, reading.list_topics, reading.topics_listed
    ),
    S.LISTING_BROKERS: Step(
        "R3", "detect", "list the brokers once more", _IDS, reading.list_brokers, reading.brokers_listed
    ),
    S.READING_BROKERS: Step(
        "R3",
        "detect",
        "read the brokers; some may be missing",
        "getData x B",
        reading.read_brokers,
        reading.brokers_read,
        jumps=(S.AWAITING_BROKERS,),
    ),
    S.AWAITING_BROKERS: Step(
        "R3a",
        "detect",
        "no broker: watch for one and stop here, which counts as success",
        f"exists, {_IDS}, when there is no broker",
        reading.await_brokers,
        reading.brokers_awaited,
        jumps=(S.IDLE,),
        goes_on=False,
        jump_only=True,
    ),
}

_STOP: Steps = {
    S.STOPPING: Step(
        "R4",
        "stop",
        "stop fetching, clear the queues, commit",
        "setData for each changed offset",
        releasing.stop,
        releasing.stopped,
    ),
}

_RELEASE: Steps = {
    S.RELEASING: Step(
        "R5",
        "release",
        "delete the owner nodes, topic by topic, unconditionally",
        "delete x k",
        releasing.release,
        releasing.released,
        jumps=(S.RELEASING,),
    ),
}

_CHECKED_RELEASE: Steps = {
    S.RELEASING: Step(
        "R5",
        "release",
        "read the owners, topic by topic",
        "getData owners/t/p x k",
        releasing.check_release,
        releasing.release_checked,
    ),
    S.RELEASING_CHECKED: Step(
        "R5",
        "release",
        "delete what is ours",
        "delete of those that are ours",
        releasing.release_ours,
        releasing.released,
        jumps=(S.RELEASING,),
    ),
}

_READ_OWN_AGAIN: Steps = {
    S.READING_OWN_AGAIN: Step(
        "R6", "join", "read our subscription again", "getData ids/me", reading.read_own_again, reading.own_read
    ),
    S.MATCHING_OWN_AGAIN: Step(
        "R6", "join", "match our pattern again", _TOPICS, reading.list_topics_again, reading.topics_listed
    ),
}

_MEMBERS = "getData ids/x x N, each pattern's getChildren /brokers/topics after it"

_READ_GROUP: Steps = {
    **_READ_OWN_AGAIN,
    S.READING_TOPICS: Step(
        "R6",
        "join",
        "read our topics, list the members",
        "getData topics/t x T, getChildren ids",
        reading.read_topics,
        reading.topics_read,
    ),
    S.READING_MEMBERS: Step(
        "R6",
        "join",
        "read each member and list them once more",
        f"{_MEMBERS}, getChildren ids",
        reading.read_members,
        reading.members_read,
        jumps=(S.READING_MEMBERS,),
    ),
}

#: Kafka 1.1's order, which its round robin needs, with any strategy: T are then the topics of all members.
_READ_GROUP_1_1: Steps = {
    **_READ_OWN_AGAIN,
    S.LISTING_MEMBERS: Step(
        "R6", "join", "list the members", "getChildren ids", reading.list_members, reading.members_listed
    ),
    S.READING_MEMBERS: Step(
        "R6",
        "join",
        "read each member",
        _MEMBERS,
        reading.read_members,
        reading.members_read,
        jumps=(S.READING_MEMBERS,),
    ),
    S.READING_GROUP_TOPICS: Step(
        "R6",
        "join",
        "read the topics of all members",
        "getData topics/t x T, getChildren ids",
        reading.read_group_topics,
        reading.group_topics_read,
    ),
}

_DECIDE: Steps = {
    S.DECIDING: Step(
        "R7", "decide", "work out our own part (range over threads, or round robin)", "", no_effects, deciding.decided
    ),
}

_KAFKA_OFFSETS: Steps = {
    S.READING_KAFKA_OFFSETS: Step(
        "R8",
        "decide",
        "fetch where our partitions start",
        "none: OffsetFetch to Kafka",
        deciding.read_kafka_offsets,
        deciding.kafka_offsets_read,
    ),
}

_ZOOKEEPER_OFFSETS: Steps = {
    S.READING_OFFSETS: Step(
        "R8",
        "decide",
        "read where our partitions start",
        "getData offsets/t/p x k'",
        deciding.read_offsets,
        deciding.offsets_read,
    ),
}

_CHECK_SHUTDOWN: Steps = {
    S.CHECKING_SHUTDOWN: Step(
        "R9", "decide", "fail if the member is closing", "", no_effects, deciding.shutdown_checked
    ),
}

_CLAIM: Steps = {
    S.CLAIMING: Step(
        "R11",
        "claim",
        "claim the next partition",
        "create owners/t/p, one after the other",
        claiming.claim,
        claiming.claimed,
        jumps=(S.CHECKING_CLAIM, S.COUNTING),
    ),
    S.CHECKING_CLAIM: Step(
        "R11",
        "claim",
        "the owner node exists: check whether it is ours; otherwise it is a conflict",
        "getData owners/t/p of a conflict",
        claiming.check_claim,
        claiming.claim_checked,
        jumps=(S.COUNTING,),
        jump_only=True,
    ),
}

_CHECK_ROOT: Steps = {
    S.CHECKING_ROOT: Step(
        "R11",
        "claim",
        "before the first claim: check the root",
        "exists /, once",
        claiming.check_root,
        claiming.root_checked,
    ),
}

_BUMP_EPOCH: Steps = {
    S.BUMPING_EPOCH: Step(
        "R11",
        "claim",
        "bump the epoch of the claimed partition",
        "setData epochs/t/p",
        claiming.bump_epoch,
        claiming.epoch_bumped,
        jumps=(S.MAKING_EPOCH,),
        rolls_back=True,
    ),
    S.MAKING_EPOCH: Step(
        "R11",
        "claim",
        "create the epoch node",
        "create epochs/t/p where there is none",
        claiming.make_epoch,
        claiming.epoch_made,
        jumps=(S.BUMPING_EPOCH,),
        jump_only=True,
        rolls_back=True,
    ),
}

_COUNT: Steps = {
    S.COUNTING: Step(
        "R11",
        "claim",
        "go back for the next partition; after the last one, roll back if there was a conflict",
        "",
        no_effects,
        claiming.counted,
        jumps=(S.CLAIMING, S.ROLLING_BACK),
    ),
}

_ROLL_BACK: Steps = {
    S.ROLLING_BACK: Step(
        "R11",
        "claim",
        "delete what this attempt has claimed, and fail",
        "delete x claimed, after a conflict",
        claiming.roll_back,
        claiming.rolled_back,
        goes_on=False,
        jump_only=True,
    ),
}

_CHECKED_ROLL_BACK: Steps = {
    S.ROLLING_BACK: Step(
        "R11",
        "claim",
        "check who owns what this attempt has claimed",
        "getData x claimed, after a conflict",
        claiming.check_roll_back,
        claiming.roll_back_checked,
        jumps=(S.ROLLING_BACK_CHECKED,),
        goes_on=False,
        jump_only=True,
    ),
    S.ROLLING_BACK_CHECKED: Step(
        "R11",
        "claim",
        "delete what is ours, and fail",
        "delete of those that are ours",
        claiming.roll_back_ours,
        claiming.rolled_back,
        goes_on=False,
        jump_only=True,
    ),
}

_START: Steps = {
    S.OWNING: Step("R12", "resume", "the claims become ours to release", "", no_effects, claiming.owned),
    S.ADOPTING: Step("R12", "resume", "give each partition its stream", "", claiming.adopt, claiming.adopted),
    S.STARTING: Step("R12", "resume", "start fetching", "", claiming.start, unchanged),
}

_SYNC: Steps = {
    S.SYNCING: Step("R1", "detect", "let our server catch up", "sync /brokers/ids", reading.sync_brokers, unchanged),
}
_SYNC_AGAIN: Steps = {
    S.SYNCING_AGAIN: Step("R6", "join", "let our server catch up", "sync ids", reading.sync_group, unchanged),
}
_NOTIFY_REVOKED: Steps = {
    S.NOTIFYING_REVOKED: Step(
        "R4", "stop", "call the listener as in 1.1", "none: 1.1's listener", releasing.notify_releasing, unchanged
    ),
}
_NOTIFY_ASSIGNED: Steps = {
    S.NOTIFYING_ASSIGNED: Step(
        "R12", "resume", "call the listener as in 1.1", "none: 1.1's listener", claiming.notify_starting, unchanged
    ),
}


@lru_cache(maxsize=4096)  # a config names its member, and a process may have many members
def table(config: RebalanceConfig) -> Mapping[S, Step]:
    """The steps of an attempt, in order. Without options they are the original's."""
    return MappingProxyType({**_before_the_decision(config), **_from_the_decision(config)})


def _before_the_decision(config: RebalanceConfig) -> Steps:
    steps = {**_READ_BROKERS, **_STOP, **_RELEASE, **_READ_GROUP}
    if config.checked_release:
        steps = {**_READ_BROKERS, **_STOP, **_CHECKED_RELEASE, **_READ_GROUP}
    if config.release == "1.1" or config.strategy == "roundrobin-1.1":
        steps = {state: step for state, step in steps.items() if state not in _READ_GROUP} | _READ_GROUP_1_1
    if config.listener_in_attempt:
        steps = put_before(steps, S.RELEASING, _NOTIFY_REVOKED)
    if config.sync_before_reads:
        steps = put_before(steps, S.LISTING_CLUSTER, _SYNC)
        steps = put_before(steps, S.READING_OWN_AGAIN, _SYNC_AGAIN)
    if config.skip_unreadable_members:
        members = steps[S.READING_MEMBERS]
        steps[S.READING_MEMBERS] = replace(members, leave=reading.readable_members_read)
    return steps


def _from_the_decision(config: RebalanceConfig) -> Steps:
    offsets = _offsets(config)
    claim = _claim(config)
    start = dict(_START)
    if config.listener_in_attempt:
        start = put_before(start, S.ADOPTING, _NOTIFY_ASSIGNED)
        start[S.STARTING] = replace(start[S.STARTING], enter=claiming.start_after_notifying)
    decide = dict(_DECIDE)
    if config.skip_unreadable_members:
        decide[S.DECIDING] = replace(decide[S.DECIDING], enter=deciding.name_left_out)
    if config.claim_before_offsets:
        # A failure after the claim rolls it back; otherwise this option would widen the rollback gap.
        offsets = {state: replace(step, phase="claim", rolls_back=True) for state, step in offsets.items()}
        return {**decide, **claim, **offsets, **start}
    return {**decide, **offsets, **claim, **start}


def _offsets(config: RebalanceConfig) -> Steps:
    kafka = _KAFKA_OFFSETS if "kafka" in config.offsets_from else {}
    zookeeper = _ZOOKEEPER_OFFSETS if "zookeeper" in config.offsets_from else {}
    return {**kafka, **zookeeper, **_CHECK_SHUTDOWN}


def _claim(config: RebalanceConfig) -> Steps:
    claim = dict(_CLAIM)
    if config.checked_claim:
        claim[S.CHECKING_CLAIM] = replace(claim[S.CHECKING_CLAIM], leave=claiming.claim_checked_with_session)
    bump = _BUMP_EPOCH if config.fence_epochs else {}
    if config.release == "1.1":
        claim = {**_CHECK_ROOT, **claim}
    return {**claim, **bump, **_COUNT, **(_CHECKED_ROLL_BACK if config.checked_release else _ROLL_BACK)}
