"""The settings of the `zookeeper` design that Kafka does not have: releases to behave as, and historical weaknesses.

All weaknesses of the original are the default; `docs/zookeeper-consumer.md` says which fault each `fix.*` removes and
what it costs.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kernel.settings import Setting, flag, number, one_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_JOIN = "run join --design zookeeper --set"


def _number(name: str, doc: str, **known: Any) -> Setting:
    return number(name, 0, doc, **known)


def _fix(name: str, doc: str, **known: Any) -> Setting:
    return flag(f"fix.{name}", False, doc, **known)


def _word(name: str, words: tuple[str, ...], doc: str, **known: Any) -> Setting:
    """One of some words; the first is the default."""
    return Setting(name=name, parse=str, default=words[0], doc=doc, valid=one_of(*words), **known)


#: Where 0.8.2 and 1.1 differ, and where a modern client would.
_BEHAVIOURS = (
    _word(
        "kafka.release",
        ("0.8.2", "1.1"),
        "the release to behave as; 1.1 also changes the defaults of roundrobin.release and three more",
        advice="Set 1.1, in all members, to compare with consumers of that release.",
        see=(
            "rebalance.retries.while.closing",
            "roundrobin.release",
            "rebalance.listener.in.attempt",
            "registration.conflict",
        ),
        shown_by="run rolling-restart --design zookeeper --set kafka.release=1.1",
    ),
    flag(
        "rebalance.retries.while.closing",
        True,
        (
            "a shutdown waits for all attempts of a running rebalance (0.8.2.2); false: only for the running attempt "
            "(1.1)"
        ),
        advice="Choose false when many members leave at once: 50 took 22 to 51 s with 0.8.2.2, half a second with "
        "1.1.1.",
        see=("kafka.release",),
        source="KAFKA-1848",
        shown_by="run rolling-restart --design zookeeper --set rebalance.retries.while.closing=false",
    ),
    _word(
        "roundrobin.release",
        ("0.8.2", "1.1"),
        "round robin of 0.8.2 (equal subscriptions only) or of 1.1 (any; another order of partitions)",
        advice="Give all members the same one. With 0.8.2 and unequal subscriptions nobody owns anything.",
        see=("partition.assignment.strategy", "kafka.release"),
        source="KAFKA-2434",
        shown_by="run mixed-subscriptions --design zookeeper --set partition.assignment.strategy=roundrobin "
        "--set roundrobin.release=1.1",
    ),
    flag(
        "rebalance.listener.in.attempt",
        False,
        "call the listener as 1.1 does, before the release and before the start; if it raises, the attempt fails",
        advice="With true, a listener that raises keeps its member's claims, and an innocent joiner fails on them.",
        see=("kafka.release",),
        source="KAFKA-1650",
        shown_by=f"{_JOIN} rebalance.listener.in.attempt=true",
    ),
    _word(
        "registration.conflict",
        ("wait", "fail"),
        "if another session holds our id: wait for its end, retrying every session timeout (0.8.2), or fail (1.1)",
        advice=(
            "Choose wait if a process may be back before its old session has ended; with fail, its start ends with an "
            "error."
        ),
        see=("consumer.id", "kafka.release"),
        source="KAFKA-992, KAFKA-1387",
        shown_by="consume --design zookeeper --group g --topic orders --set consumer.id=first "
        "--set registration.conflict=fail",
    ),
    _word(
        "rebalance.reads",
        ("one-by-one", "together"),
        "how a rebalance sends the reads of a step: one-by-one, each after the answer to the last (original), "
        "or together",
        advice="With together, a rebalance is faster by a round trip for each read, and meets more conflicts: a joiner "
        "then overtakes the others' release.",
        shown_by=f"{_JOIN} rebalance.reads=together",
    ),
    _word(
        "zookeeper.reconnect",
        ("java", "soon"),
        "wait before connecting to ZooKeeper again: java (0.1 to 1.1 s at random, with one server 1.1 to 2.1 s, as "
        "the Java client of the original) or soon (at most 0.1 s, as kazoo)",
        advice="With soon, a member that was paused delivers what others own by then for a shorter time.",
        shown_by="run pause --design zookeeper --set zookeeper.reconnect=soon",
    ),
    _word(
        "watch.reads",
        ("zkclient", "one"),
        "how to set a watch: zkclient (exists, then data or children, as the original) or one (a single read)",
        advice="With one, every rebalance needs fewer reads: compare those of the herd.",
        shown_by="run herd --design zookeeper --set watch.reads=one",
    ),
)

_FIXES = (
    _fix(
        "claim.before.offsets",
        "read offsets after the claim, so that no other member can commit in between",
        advice="Costs nothing, except that claims are given back when offsets cannot be read.",
        shown_by=f"{_JOIN} fix.claim.before.offsets=true",
    ),
    _fix(
        "checked.release",
        "delete an owner node only if this session created it and it names our thread",
        advice="Costs one read for each partition that is released.",
        see=("fix.checked.claim", "fix.commit.fence"),
        source="KAFKA-262",
        shown_by="run ghost-owner --design zookeeper --set fix.checked.release=true",
    ),
    _fix(
        "checked.claim",
        "a node with our thread id counts as ours only if this session created it",
        advice="Costs conflicts with one's own earlier session until it has expired.",
        see=("fix.checked.release",),
        source="KAFKA-1387, ZOOKEEPER-1740",
        shown_by="run session-expiry --design zookeeper --set fix.checked.claim=true",
    ),
    _word(
        "fix.commit.fence",
        ("none", "session", "epoch"),
        "fence for commits to ZooKeeper: none; session: that of the claim; epoch: a node that each owner bumps",
        advice="The fence session needs fix.checked.release too: if others may delete a node, one session can see two "
        "owners. The fence epoch costs one write for each claim, two the first time. With either, what a refused "
        "commit was for is delivered again.",
        see=("fix.checked.release", "fix.stop.on.disconnect"),
        shown_by="run pause --design zookeeper --set fix.commit.fence=session",
    ),
    _fix(
        "stop.on.disconnect",
        "while ZooKeeper is not reachable, fetch nothing and keep queues empty",
        advice="Costs a pause in every short break. It stops deliveries only: add fix.commit.fence for the commits. It "
        "does not help if the server that the member uses is cut off from the others.",
        see=("fix.commit.fence",),
        shown_by="run split-brain --design zookeeper --set fix.stop.on.disconnect=true --set fix.commit.fence=session",
    ),
    _fix(
        "sync.before.reads",
        "sync() before reading brokers and group, so that no follower is stale",
        advice="Costs two requests for each attempt, and the follower's lag.",
        see=("zookeeper.sync.time.ms",),
        shown_by="run stale-view --design zookeeper --set fix.sync.before.reads=true",
    ),
    _fix(
        "retry.when.free",
        "after the last failed attempt, check every backoff whether our part is free, and try again",
        advice="Costs a read of each missing owner node in every backoff, while the member owns nothing.",
        see=("rebalance.max.retries", "rebalance.backoff.ms"),
        source="KAFKA-4228",
        shown_by="run rebalance-failed --design zookeeper --set fix.retry.when.free=true",
    ),
    _number(
        "fix.quiet.ms",
        "wait until the group has been quiet for this long before a rebalance (damps the herd)",
        advice="Costs that delay in every rebalance; changes without end delay it without end.",
        see=("group.initial.rebalance.delay.ms",),
        source="KAFKA-265",
        shown_by="run mass-start --design zookeeper --set fix.quiet.ms=500",
    ),
    _fix(
        "skip.unreadable.members",
        "leave out a member whose znode cannot be read, instead of failing every rebalance",
        advice="If that member is alive after all, it claims too, and claims conflict.",
        shown_by=f"{_JOIN} fix.skip.unreadable.members=true",
    ),
)

OWN_SETTINGS = (
    *_BEHAVIOURS,
    *_FIXES,
    _number(
        "seed",
        "seed of the random order in which brokers are tried",
        advice="No reason to change it: it only makes that order the same in every run.",
        shown_by=f"{_JOIN} seed=7",
    ),
)

#: What `kafka.release=1.1` changes of other settings' defaults; the rest of the differences has no setting of its own.
DEFAULTS_OF_1_1: Mapping[str, object] = MappingProxyType(
    {
        "rebalance.retries.while.closing": False,
        "roundrobin.release": "1.1",
        "rebalance.listener.in.attempt": True,
        "registration.conflict": "fail",
    }
)
