"""Send commits under the identity that the member had when they were called, or not at all.

A commit that cannot be sent at once waits for the coordinator. If the member's id or generation has changed by then,
the commit is dropped. librdkafka sends it under the *new* identity after a rejoin, where it is accepted and moves the
offset back (seen in ten of ten pauses). Fencing checks identities, not ownership, so only the client can prevent that.

A KIP-848 member keeps what it owns when its epoch grows. Its commits are sent under the epoch of the moment, unless it
has given an epoch up meanwhile.

A commit that is out of time leaves the connection open, as in Kafka's clients: only request.timeout.ms closes it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from coordinator.membership.events import UNANSWERED
from kernel.errors import Unavailable
from kernel.values import CommitOutcome, TopicPartition
from kernel.wire.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from coordinator.client.context import AnyContext
    from coordinator.membership.effects import Identity
    from kernel.client.connection import BrokerConnection

DROPPED = "DROPPED"

#: The result of a commit that would queue behind a parked JoinGroup or SyncGroup and then be rejected; it is not sent.
#: Kafka's client does the same (RebalanceInProgressException; ConsumerCoordinator.sendOffsetCommitRequest). The
#: application may retry after the rebalance, if the member still owns the partition.
REBALANCING = "REBALANCE_IN_PROGRESS"


def _never() -> bool:
    return False


#: Errors after which the same commit is retried, with the coordinator known by then.
RETRIED = frozenset(
    {"NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "REQUEST_TIMED_OUT", UNANSWERED}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRequest:
    """One call of commit; `give_up_ns` is monotonic.

    `identity` returns what to send it under, or None if it has to be dropped. `blocked` returns whether a request sent
    now would queue behind a parked one.
    """

    identity: Callable[[], Identity | None]
    offsets: Mapping[TopicPartition, int]
    explicit: bool
    give_up_ns: int
    blocked: Callable[[], bool] = _never
    retried: frozenset[str] = RETRIED


class CommittingMember(Protocol):
    """What commits need of a member: its current identity."""

    @property
    def identity(self) -> Identity | None: ...

    @property
    def stamp(self) -> int: ...


class Committing(Protocol):
    """What commits need of a member's runner."""

    number: int
    committing: asyncio.Lock

    @property
    def member(self) -> CommittingMember: ...

    @property
    def connection(self) -> BrokerConnection | None: ...

    async def wait_for_change(self, timeout_s: float) -> None: ...

    def refused(self, api: str, error: str, *, stamp: int, sent_ns: int, connection: BrokerConnection) -> None: ...


async def commit(
    stream: Committing, request: CommitRequest, context: AnyContext, *, api: str = "OffsetCommit"
) -> CommitOutcome:
    """Commit and return the result; never raises for a failure of the group or the network. `api` names the request.

    Commits are sent one at a time, in the order of the calls: a retry must not overwrite the offset of a later commit.
    """
    errors, identity = dict.fromkeys(request.offsets, DROPPED), request.identity()
    if request.offsets and identity is not None:
        async with stream.committing:
            errors, identity = await _send(stream, request, identity, context, api)
    outcome = CommitOutcome(
        accepted={tp: offset for tp, offset in request.offsets.items() if not errors[tp]},
        refused={tp: error for tp, error in errors.items() if error},
    )
    for tp, offset in sorted(request.offsets.items()):
        context.tracer.emit(
            "commit_answered",
            member=None if identity is None else identity.member_id,
            stream=stream.number,
            cause="" if identity is None else f"generation:{identity.generation}",
            group=context.config.group_id,
            topic=tp.topic,
            partition=tp.partition,
            offset=offset,
            outcome=_outcome(errors[tp]),
            error=errors[tp],
            generation=None if identity is None else identity.generation,
            explicit=request.explicit,
        )
    return outcome


def _outcome(error: str) -> str:
    return {"": "accepted", DROPPED: "dropped", UNANSWERED: "unknown"}.get(error, "refused")


async def _send(
    stream: Committing, request: CommitRequest, identity: Identity, context: AnyContext, api: str
) -> tuple[dict[TopicPartition, str], Identity]:
    """Return {partition: error} and the identity sent last; UNANSWERED if it was sent and got no response at all."""
    backoff_s = context.config.retry_backoff_ms / 1000
    errors = dict.fromkeys(request.offsets, DROPPED)
    while (current := request.identity()) is not None:
        identity, connection = current, stream.connection
        now = context.runtime.clock.monotonic_ns()
        if now >= request.give_up_ns:
            break
        if request.blocked():
            return {tp: REBALANCING if error == DROPPED else error for tp, error in errors.items()}, identity
        if connection is None:
            await stream.wait_for_change(backoff_s)
            continue
        stamp = stream.member.stamp
        try:
            async with asyncio.timeout((request.give_up_ns - now) / 1e9):
                errors = await context.calls.commit(connection, identity, request.offsets)
        except TimeoutError:  # only this commit has waited long enough: the connection stays, for a leave after it
            return dict.fromkeys(request.offsets, UNANSWERED), identity
        except (Unavailable, ProtocolError):
            errors = dict.fromkeys(request.offsets, UNANSWERED)
        error = next((error for error in errors.values() if error), "")
        if error:
            stream.refused(api, error, stamp=stamp, sent_ns=now, connection=connection)
        if error not in request.retried:
            break
        await asyncio.sleep(backoff_s)
    return errors, identity
