"""What own steps and faults are made of; `rebalance_lab.extending` offers it to users, and has the rules.

`plan/plugins.py` loads the modules that use it.
"""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import TYPE_CHECKING, TypeVar

from comparison.scenarios.plan.faults import Choice, Fault, Number, add_fault
from comparison.scenarios.plan.fields import types_of
from comparison.scenarios.plan.step import OwnStep, Step
from comparison.scenarios.plan.step_names import add_step
from comparison.scenarios.plan.targets import TargetKind
from comparison.scenarios.run.injections import add_performer
from comparison.scenarios.run.own_code import guarded
from comparison.scenarios.run.performer import Performer
from comparison.scenarios.run.reach import (
    Broker,
    Group,
    Members,
    Process,
    Server,
    Testbed,
    Tracer,
    View,
    ZooKeeper,
)
from kernel.errors import ConfigurationError
from kernel.values import TopicPartition
from kernel.waiting import WaitTimeout, until

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "Broker",
    "Choice",
    "Fault",
    "Group",
    "Members",
    "Number",
    "OwnStep",
    "Performer",
    "Process",
    "Server",
    "TargetKind",
    "Testbed",
    "TopicPartition",
    "Tracer",
    "View",
    "WaitTimeout",
    "ZooKeeper",
    "own_fault",
    "own_step",
    "until",
]

_Step = TypeVar("_Step", bound=type[OwnStep])
_Performer = TypeVar("_Performer", bound=type[Performer])


def own_fault(fault: Fault) -> Callable[[_Performer], _Performer]:
    """Add a fault to the table; the decorated class performs it. Raises `ConfigurationError` if its name is taken."""

    def added(performer: _Performer) -> _Performer:
        add_fault(fault)
        add_performer(fault.name, guarded(performer, fault.name))
        return performer

    return added


def own_step(step: _Step) -> _Step:
    """Add a step to the table. Raises `ConfigurationError` if its name is taken, or files cannot have its fields."""
    if not (issubclass(step, OwnStep) and is_dataclass(step)):
        raise ConfigurationError(f"{step.__name__} must be a dataclass that inherits from OwnStep")
    kind: type = step
    try:
        taken = types_of(kind).keys() & vars(Step).keys()
    except (NameError, TypeError) as error:
        raise ConfigurationError(f"{step.__name__}: the type of a field cannot be read: {error}") from error
    if taken:
        raise ConfigurationError(f"{step.__name__}: a field cannot have the name {min(taken)!r}. Choose another one")
    add_step(step)
    return step
