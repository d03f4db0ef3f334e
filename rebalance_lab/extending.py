"""The public interface for own steps and faults; docs/own-scenarios.md explains it.

A module of yours defines them, and a command loads it: `--plugin my_faults.py`, `plugins = ["my_faults.py"]` in a
scenario's file, or an entry point of an installed package in the group `rebalance_lab.scenarios`.

docs/examples/own_faults.py has a fault and two steps. The rules:

- A fault is a row of the table of faults (`Fault`) and a `Performer`: `setup` finds the target before the fault is
  traced, `inject` makes it begin, `heal` undoes it, and `abandon` undoes at once what would keep processes from ending
  when the run is broken off. A fault that is over when `inject` returns has `heals=""`. `self.values` has every
  parameter, `self.number(NAME)` one that is a number; `self.members`, `self.testbed` and `self.changes` (the `Group`)
  are what it can reach.
- A step is a frozen dataclass whose fields are its parameters: texts, numbers, lists and tables of them. Its name in a
  file is that of its class (`KillTwice` is `kill-twice`). `perform` is given the `Group`.
- `Group`, `Members`, `View`, `Process`, `Testbed`, `ZooKeeper` and `Server` are the types of what can be reached; their
  methods are all that a module of yours may call. Of a `Broker` these are `name`, `node_id`, `port` and `killed`.
- Waiting is awaiting. A wait for the group is `await group.settle()`, or a change made by `group.make`, which traces
  its beginning and end, so that it is measured like ours; for anything else it is `await until(condition, timeout_s,
  message)`. Code that blocks the event loop for 20 seconds is interrupted.
- An exception ends the run as failed; its message names the file and line in your code, and the traceback is in
  own-code.txt in the run's folder.
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
