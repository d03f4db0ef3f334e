"""The table of everything that can be completed: click's own account of the commands, and names of known sets."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  # msgspec reads the types of fields
from typing import Any

import msgspec

#: The kinds of values, and which parameters have them.
SCENARIO, DESIGN, RUN, AXIS = "scenario", "design", "run", "axis"
METRIC, SETTING, STRATEGY, STEP = "metric", "setting", "strategy", "step"
BOUND = "bound"
NAME_OF_A_SETTING = "name of a setting"

#: What the values of a parameter are: by its command and its name, or by its name in any command.
KINDS = {
    "scenarios name": SCENARIO,
    "run names": SCENARIO,
    "compare names": SCENARIO,
    "designs": DESIGN,
    "sweep axes": AXIS,
    "sweep metrics": METRIC,
    "sources": RUN,
    "describe source": RUN,
    "trace run": RUN,
    "report folders": RUN,
    "diff before": RUN,
    "diff after": RUN,
    "diff bounds": BOUND,
    "pairs": SETTING,
    "strategies": STRATEGY,
    "assign steps": STEP,
    "settings name": NAME_OF_A_SETTING,
}

#: What click's `to_info_dict` says of a command or of a parameter.
About = dict[str, Any]


class Table(msgspec.Struct, frozen=True):
    """What a completion needs."""

    root: About
    names: Mapping[str, Mapping[str, str]]  #: {kind: {name: help}}
    #: {command, or command and design: {setting: its values, if they are words}}
    settings: Mapping[str, Mapping[str, tuple[str, ...]]]
