"""The kinds of values, and which parameters have them."""

from __future__ import annotations

SCENARIO, DESIGN, RUN, AXIS = "scenario", "design", "run", "axis"
METRIC, SETTING, STRATEGY, STEP = "metric", "setting", "strategy", "step"
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
    "pairs": SETTING,
    "strategies": STRATEGY,
    "assign steps": STEP,
    "settings name": NAME_OF_A_SETTING,
}
