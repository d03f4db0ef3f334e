"""The public interface for own steps and faults; docs/own-scenarios.md explains it.

A module of yours defines them, and a command loads it: `--plugin my_faults.py`, `plugins = ["my_faults.py"]` in a
scenario's file, or an entry point of an installed package in the group `rebalance_lab.scenarios`.

docs/examples/own_faults.py has one of each. The rules:

- A fault is a row of the table of faults (`Fault`) and a `Performer`: `setup` finds the target before the fault is
  traced, `inject` makes it begin, `heal` undoes it, and `abandon` undoes at once what would keep processes from ending
  when the run is broken off. A fault that is over when `inject` returns has `heals=""`. `self.values` has every
  parameter, `self.number(NAME)` one that is a number.
- A step is a frozen dataclass whose fields are its parameters: texts, numbers, lists and tables of them. Its name in a
  file is that of its class (`KillTwice` is `kill-twice`).
- Waiting is awaiting. A wait for the group is `await group.settle()`, or a change made by `group.make`, which traces
  its beginning and end, so that it is measured like ours. Code that blocks the event loop for 20 seconds is
  interrupted.
- An exception ends the run as failed; its traceback is printed, and kept in the run's folder.
"""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import TYPE_CHECKING, TypeVar

from comparison.scenarios.plan.faults import Choice, Fault, Number, TargetKind, add_fault
from comparison.scenarios.plan.fields import types_of
from comparison.scenarios.plan.step_names import add_step
from comparison.scenarios.plan.vocabulary import OwnStep
from comparison.scenarios.run.changes import Changes as Group
from comparison.scenarios.run.injections import add_performer
from comparison.scenarios.run.own_code import guarded
from comparison.scenarios.run.performer import Performer
from kernel.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Choice", "Fault", "Group", "Number", "OwnStep", "Performer", "TargetKind", "own_fault", "own_step"]

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
        types_of(kind)
    except (NameError, TypeError) as error:
        raise ConfigurationError(f"{step.__name__}: the type of a field cannot be read: {error}") from error
    add_step(step)
    return step
