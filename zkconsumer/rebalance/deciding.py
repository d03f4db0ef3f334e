"""R7 to R9 of a rebalance: deciding our part, reading where it starts, and heeding the shutdown."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kernel.values import NO_OFFSET
from kernel.zookeeper import paths
from zkconsumer.rebalance.assignment import decide, threads_per_topic
from zkconsumer.rebalance.effects import Ask, Claim, ReadStoredOffsets, Warn
from zkconsumer.rebalance.steps import Answers, AttemptFailed, Effects, get, learned
from zkconsumer.znodes.payloads import parse_offset

if TYPE_CHECKING:
    from zkconsumer.rebalance.state import Rebalance


# -- R7: decide --------------------------------------------------------------------------------------------------


def name_left_out(machine: Rebalance) -> Effects:
    return tuple(Warn(f"a member is left out of the rebalance: {why}") for why in machine.attempt.left_out)


def decided(machine: Rebalance, _: Answers) -> Rebalance:
    """Our part, in the order of topics and partition numbers. (The original goes through hash maps.)"""
    attempt = machine.attempt
    mine = decide(
        machine.rules.strategy,
        machine.rules.consumer_id,
        attempt.topics,
        attempt.partitions,
        threads_per_topic(attempt.subscriptions),
    )
    pairs = sorted((partition, thread) for thread, part in mine.items() for partition in part)
    return learned(machine, claims=tuple(Claim(tp.topic, tp.partition, thread) for tp, thread in pairs))


# -- R8, R9: offsets ---------------------------------------------------------------------------------------------


def read_kafka_offsets(machine: Rebalance) -> Effects:
    partitions = tuple(claim.topic_partition for claim in machine.attempt.claims)
    return (ReadStoredOffsets(partitions),) if partitions else ()


def kafka_offsets_read(machine: Rebalance, _: Answers) -> Rebalance:
    """A commit of -1 reads as none."""
    attempt = machine.attempt
    return _starting_at(machine, [attempt.stored.get(claim.topic_partition, NO_OFFSET) for claim in attempt.claims])


def read_offsets(machine: Rebalance) -> Effects:
    wanted = tuple(get(_offset_path(machine, claim)) for claim in machine.attempt.claims)
    return (Ask("R8", wanted),) if wanted else ()


def offsets_read(machine: Rebalance, answers: Answers) -> Rebalance:
    """With offsets in both stores, the larger one counts."""
    return _starting_at(
        machine,
        [
            parse_offset(_offset_path(machine, claim), None if answer.refusal else answer.data)
            for claim, answer in zip(machine.attempt.claims, answers, strict=True)
        ],
    )


def _starting_at(machine: Rebalance, offsets: list[int]) -> Rebalance:
    claims = machine.attempt.claims
    return learned(
        machine,
        claims=tuple(replace(c, offset=max(c.offset, offset)) for c, offset in zip(claims, offsets, strict=True)),
    )


def _offset_path(machine: Rebalance, claim: Claim) -> str:
    return paths.offset(machine.rules.group, claim.topic, claim.partition)


def shutdown_heeded(machine: Rebalance, _: Answers) -> Rebalance:
    if machine.closing:
        raise AttemptFailed("shutting down")
    return machine
