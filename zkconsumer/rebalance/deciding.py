"""R7 to R9 of a rebalance: decide our part, read where it starts, and check for a shutdown."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kernel.values import NO_OFFSET
from kernel.zookeeper import paths
from zkconsumer.rebalance.assignment import decide, threads_per_topic
from zkconsumer.rebalance.effects import Ask, Claim, ReadStoredOffsets, Warn
from zkconsumer.rebalance.steps import AttemptFailed, Effects, Responses, get, with_attempt
from zkconsumer.znodes.payloads import parse_offset

if TYPE_CHECKING:
    from zkconsumer.rebalance.state import Rebalance


# -- R7: decide --------------------------------------------------------------------------------------------------


def name_left_out(machine: Rebalance) -> Effects:
    return tuple(Warn(f"a member is left out of the rebalance: {why}") for why in machine.attempt.left_out)


def decided(machine: Rebalance, _: Responses) -> Rebalance:
    """Our part, ordered by topic and partition number. (The original iterates over hash maps.)"""
    attempt = machine.attempt
    mine = decide(
        machine.config.strategy,
        machine.config.consumer_id,
        attempt.topics,
        attempt.partitions,
        threads_per_topic(attempt.subscriptions),
    )
    pairs = sorted((partition, thread) for thread, part in mine.items() for partition in part)
    return with_attempt(machine, claims=tuple(Claim(tp.topic, tp.partition, thread) for tp, thread in pairs))


# -- R8, R9: offsets ---------------------------------------------------------------------------------------------


def read_kafka_offsets(machine: Rebalance) -> Effects:
    partitions = tuple(claim.topic_partition for claim in machine.attempt.claims)
    return (ReadStoredOffsets(partitions),) if partitions else ()


def kafka_offsets_read(machine: Rebalance, _: Responses) -> Rebalance:
    """A committed -1 counts as no offset."""
    attempt = machine.attempt
    return _starting_at(machine, [attempt.stored.get(claim.topic_partition, NO_OFFSET) for claim in attempt.claims])


def read_offsets(machine: Rebalance) -> Effects:
    wanted = tuple(get(_offset_path(machine, claim)) for claim in machine.attempt.claims)
    return (Ask("R8", wanted),) if wanted else ()


def offsets_read(machine: Rebalance, responses: Responses) -> Rebalance:
    """If both stores have an offset, the larger one wins."""
    return _starting_at(
        machine,
        [
            parse_offset(_offset_path(machine, claim), None if response.refusal else response.data)
            for claim, response in zip(machine.attempt.claims, responses, strict=True)
        ],
    )


def _starting_at(machine: Rebalance, offsets: list[int]) -> Rebalance:
    claims = machine.attempt.claims
    return with_attempt(
        machine,
        claims=tuple(replace(c, offset=max(c.offset, offset)) for c, offset in zip(claims, offsets, strict=True)),
    )


def _offset_path(machine: Rebalance, claim: Claim) -> str:
    return paths.offset(machine.config.group, claim.topic, claim.partition)


def shutdown_checked(machine: Rebalance, _: Responses) -> Rebalance:
    if machine.closing:
        raise AttemptFailed("shutting down")
    return machine
