"""Bugs to plant into brokers and members, one at a time: exams of what shall find them. No setting leads to them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from coordinator.groups.consumer.group import ConsumerGroup
from coordinator.groups.errors import Error
from coordinator.groups.offsets import offsets, transactions
from kernel.broker.storage import writer
from kernel.broker.storage.errors import StorageError
from kernel.broker.storage.jobs import Append, Upsert
from kernel.designs import CONSUMER, EAGER, ZOOKEEPER
from zkconsumer.rebalance import claiming, releasing
from zkconsumer.rebalance.steps import with_attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from coordinator.groups.classic.group import Group
    from coordinator.groups.offsets.transactions import TransactionMetadata
    from coordinator.groups.records import TransactionRecord
    from coordinator.groups.requests import Commit, Producer
    from kernel.broker.storage.jobs import Job
    from zkconsumer.rebalance.effects import Claim
    from zkconsumer.rebalance.state import Rebalance
    from zkconsumer.rebalance.steps import Responses

    #: Puts a value in the place of an attribute, as pytest's `MonkeyPatch.setattr` does.
    Put = Callable[[Any, str, Any], object]

_FENCES = frozenset({Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID})
_fenced = offsets.commit_refusal
_fenced_producer = transactions._refusal
#: How long a write waits for the disk.
_DISK_S = 0.1


def unfenced(group: Group | None, request: Commit) -> Error | None:
    """In place of `commit_refusal`: it accepts commits of old generations and of members that it has removed."""
    refusal = _fenced(group, request)
    return None if group is not None and refusal in _FENCES else refusal


def _unfenced_commit(put: Put) -> None:
    put(offsets, "commit_refusal", unfenced)


def _unreleased_ignored(put: Put) -> None:
    """A member gets its target at once, also what another one has not given up."""
    put(ConsumerGroup, "is_free", lambda *_, **__: True)


def _unchecked_release(put: Put) -> None:
    """A checked release deletes whatever has the name of its owner node: it checks neither session nor version."""

    def unchecked(machine: Rebalance, claims: Iterable[Claim], responses: Responses) -> Rebalance:
        return with_attempt(machine, deletes=releasing.deletes(machine, claims), spared=())

    for module in (releasing, claiming):
        put(module, "checked", unchecked)


def _claims_kept(put: Put) -> None:
    """An attempt that has lost a claim keeps the others that it has won."""
    put(claiming, "deletes", lambda *_: ())
    put(claiming, "delete_ours", lambda *_: ())


def _zombie_producer(put: Put) -> None:
    """The coordinator of a transaction takes what a producer asks that was replaced: only partition leaders refuse it.

    A leader that takes its late write would not show: it first asks the coordinator, which refuses it (KIP-890).
    """

    def refusal(transaction: TransactionMetadata, record: TransactionRecord, producer: Producer) -> Error | None:
        current = producer._replace(epoch=record.producer_epoch)
        return _fenced_producer(transaction, record, current)

    put(transactions, "_refusal", refusal)


def _fence_before_the_write(put: Put) -> None:
    """A broker looks for a successor before it writes, and not again before it acknowledges."""
    usual = writer.Writer.__init__

    def made(self: writer.Writer, *arguments: Any) -> None:
        usual(self, *arguments)
        submit = self.submit

        def checked(job: Job) -> None:
            if isinstance(job, Append | Upsert):
                try:
                    job.term.check_fence()
                except StorageError as fenced:
                    self._answered([(job, None, fenced)])
                    return
            asyncio.get_running_loop().call_later(_DISK_S, submit, job)

        self.submit = checked  # type: ignore[assignment]  # the worker's method

    put(writer.Writer, "__init__", made)
    put(writer, "_refusal", lambda _: None)


@dataclass(frozen=True, slots=True)
class Bug:
    """One that is planted by `plant`, shows in runs of a design, and breaks one of these promises."""

    plant: Callable[[Put], None]
    design: str
    breaks: frozenset[str]


BUGS: Mapping[str, Bug] = MappingProxyType(
    {
        "unfenced commit": Bug(_unfenced_commit, EAGER, frozenset({"no stale write", "no offset moved back"})),
        "unreleased ignored": Bug(_unreleased_ignored, CONSUMER, frozenset({"never two owners", "no stale write"})),
        "unchecked release": Bug(_unchecked_release, ZOOKEEPER, frozenset({"owner nodes kept", "no stale write"})),
        "claims kept": Bug(_claims_kept, ZOOKEEPER, frozenset({"failed claims given up"})),
        "zombie producer": Bug(_zombie_producer, EAGER, frozenset({"fenced by epoch"})),
        "fence before the write": Bug(_fence_before_the_write, EAGER, frozenset({"no record lost", "final offsets"})),
    }
)
