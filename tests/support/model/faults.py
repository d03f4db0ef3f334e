"""The faults that options remove, as checks on a model group. Each raises AssertionError if its fault occurs."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kernel.values import TopicPartition
from kernel.zookeeper import paths
from tests.support.model.actions import ALL, WEIGHTS, Actions, beginning, end_of_faults
from tests.support.model.group import ModelGroup
from tests.support.model.invariants import Invariants
from tests.support.model.member import GROUP, Done, ModelMember
from tests.support.model.zookeeper import Call, ModelZooKeeper

WRITES = ("create", "setData", "multi")


def starts_where_the_group_has_come_to(group: ModelGroup) -> None:
    """No member commits between the read of an offset and the start from it (`claim_before_offsets`)."""
    for member in group.members:
        for adopted in member.adoptions:
            at = f"{adopted.partition} at {adopted.offset}, committed is {adopted.committed}"
            assert adopted.offset == adopted.committed, f"{member.name} starts {at}"


def deletes_only_its_own(group: ModelGroup) -> None:
    """A release or rollback deletes no node that another session created (`checked_release`)."""
    for member, done in _done(group):
        if done.call.op == "delete" and not done.reply.error:
            assert done.owner == done.session, f"{member.name} deleted {done.call.path} of session {done.owner}"


def takes_no_others_node_for_its_own(group: ModelGroup) -> None:
    """A member adopts only what its session created, or what it found to be its own (`checked_claim`)."""
    for member in group.members:
        for adopted in member.adoptions:
            path = owner_path(adopted.partition)
            found = next(d for d in reversed(member.done[: adopted.done]) if d.step == "R11" and d.call.path == path)
            if found.call.op == "getData":
                assert found.reply.stat is not None
                assert found.reply.stat.owner == found.session, f"{member.name} takes {path} for its own"


def commits_only_as_the_last_claimant(group: ModelGroup) -> None:
    """Only the member with the latest claim of a partition writes its offset (`commit_fence`)."""
    claimed: dict[TopicPartition, str] = {}
    for member, done in sorted(_done(group), key=lambda pair: pair[1].at):
        call = done.call.parts[1] if done.call.parts else done.call
        if done.reply.error or call.op not in WRITES:
            continue
        if (offset := paths.parse_offset(call.path)) is not None:
            named = TopicPartition(offset.topic, offset.partition)
            assert claimed[named] == member.name, f"{member.name} commits {named}, which is {claimed[named]}'s"
        elif (claim := _claim(call, epochs=member.machine.config.fence_epochs)) is not None:
            claimed[claim] = member.name


def delivers_only_while_connected(group: ModelGroup) -> None:
    """A disconnected member delivers nothing (`stop_on_disconnect`)."""
    for partition, member in group.delivering():
        assert member.connected or "executor" in member.ready(), (
            f"{member.name} delivers {partition} without a connection"
        )


def delivers_alone(group: ModelGroup) -> None:
    """No two members deliver the same partition, not even a member that has lost its session."""
    twice = [partition for partition, times in Counter(tp for tp, _ in group.delivering()).items() if times > 1]
    assert not twice, f"{twice[0]} by {[member.name for tp, member in group.delivering() if tp in twice]}"


def reads_nothing_older_than_the_attempt(group: ModelGroup) -> None:
    """Reads of members and topics are not older than the start of the attempt (`sync_before_reads`)."""
    for member, done in _done(group):
        if done.step == "R6" and done.program == "executor":
            began = member.attempts_began_at[done.attempt - 1]
            assert done.reply.zxid >= began, f"{member.name} read {done.call.path} of {done.reply.zxid}, now {began}"


def owner_path(partition: TopicPartition) -> str:
    return paths.owner(GROUP, partition.topic, partition.partition)


def _claim(call: Call, *, epochs: bool) -> TopicPartition | None:
    """The partition that a write claims: by the owner node or, with epochs, by the epoch node."""
    if not epochs:
        named = paths.parse_owner(call.path)
        return None if named is None else TopicPartition(named.topic, named.partition)
    root = paths.epoch(GROUP, "t", 0).removesuffix("/t/0")
    if not call.path.startswith(f"{root}/") or call.path.count("/") != root.count("/") + 2:
        return None
    topic, _, number = call.path.removeprefix(f"{root}/").partition("/")
    return TopicPartition(topic, int(number))


def _done(group: ModelGroup) -> Iterator[tuple[ModelMember, Done]]:
    for member in group.members:
        for done in member.done:
            yield member, done


# -- seeded runs of a model group: the same random interleavings with and without an option ----------------------------

Check = Callable[[ModelGroup], None]


def nothing(_: ModelGroup) -> None:
    """A check that accepts everything."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The actions of a run, and whom they affect; `always` is checked after every action."""

    actions: Sequence[str] = ALL
    steps: int = 120
    servers: int = 3
    fence: str = "none"
    finish: Check = end_of_faults
    always: Check = nothing


def play(seed: int, plan: Plan, check: Check, **options: Any) -> Invariants:
    """Two members join, random actions follow, and `check` runs when all faults are healed and the group is settled."""
    chosen = random.Random(seed)
    group = beginning(ModelZooKeeper(plan.servers))
    held = Invariants(group)
    actions = Actions(group, chosen.randrange, options, plan.fence)
    actions.join()
    actions.join()
    weights = [WEIGHTS.get(name, 1) for name in plan.actions]
    for name in chosen.choices(plan.actions, weights, k=plan.steps):
        getattr(actions, name)()
        plan.always(group)
    plan.finish(group)
    check(group)
    return held


def first_to_break(seeds: Iterable[int], plan: Plan, check: Check, **options: Any) -> str | None:
    """The first seed for which `check` fails, and its error; None if there is none."""
    for seed in seeds:
        try:
            play(seed, plan, check, **options)
        except AssertionError as error:
            return f"seed {seed}: {error}"
    return None
