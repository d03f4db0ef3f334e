"""Bugs to plant into brokers and members, one at a time: exams of what shall find them. No setting leads to them."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from coordinator.groups.consumer.group import ConsumerGroup
from coordinator.groups.errors import Error
from coordinator.groups.offsets import offsets
from kernel.designs import CONSUMER, EAGER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from coordinator.groups.classic.group import Group
    from coordinator.groups.requests import Commit

    #: Puts a value in the place of an attribute, as pytest's `MonkeyPatch.setattr` does.
    Put = Callable[[Any, str, Any], object]

_FENCES = frozenset({Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID})
_fenced = offsets.commit_refusal


def unfenced(group: Group | None, request: Commit) -> Error | None:
    """In place of `commit_refusal`: it accepts commits of old generations and of members that it has removed."""
    refusal = _fenced(group, request)
    return None if group is not None and refusal in _FENCES else refusal


def _unfenced_commit(put: Put) -> None:
    put(offsets, "commit_refusal", unfenced)


def _unreleased_ignored(put: Put) -> None:
    """A member gets its target at once, also what another one has not given up."""
    put(ConsumerGroup, "is_free", lambda *_: True)


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
    }
)
