"""Makes the table of everything that can be completed, which imports all commands: imported only for that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from comparison.assigning.notation import STEPS
from comparison.assigning.strategies import all_names as rehearsed
from comparison.cli.completing.table import (
    AXIS,
    BOUND,
    DESIGN,
    METRIC,
    NAME_OF_A_SETTING,
    SCENARIO,
    STEP,
    STRATEGY,
    About,
    Table,
)
from comparison.consumers import CONSUMERS
from comparison.results.metrics import CHANGE_METRICS, METRICS, SWEEP_METRICS
from comparison.scenarios.plan.catalogue import CATALOGUE
from comparison.scenarios.plan.setting_rows import rows
from comparison.sweep.grid import NAMED
from kernel.assignors.registry import names as strategies
from kernel.broker.settings.setting_table import BROKER_SETTINGS
from kernel.broker.settings.topic_configs import TOPIC_SETTINGS
from kernel.designs import DESIGN_NAMES
from kernel.settings import Words, boolean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.settings import Setting

#: Others have figures too, under the names of their changes.
_CHANGES = ("join", "leave", "crash")
_STRATEGIES = ("partition.assignment.strategy", "group.server.assignment.strategy")


def table_of(root: click.Group) -> Table:
    """The table of all commands."""
    about = root.to_info_dict(click.Context(root))
    plain: About = msgspec.json.decode(msgspec.json.encode(about, enc_hook=str))  # as it is read from the cache
    return Table(plain, _names(), _settings())


def _names() -> dict[str, dict[str, str]]:
    """{kind: {name: help}}."""
    changes = {f"{change}.{name}": metric.meaning for change in _CHANGES for name, metric in CHANGE_METRICS.items()}
    return {
        SCENARIO: {name: scenario.symptom for name, scenario in CATALOGUE.items()},
        DESIGN: dict.fromkeys((*DESIGN_NAMES, "all"), ""),
        STRATEGY: dict.fromkeys(rehearsed(), ""),
        STEP: dict.fromkeys(STEPS, ""),
        AXIS: dict.fromkeys(NAMED, ""),
        NAME_OF_A_SETTING: {row.setting.name: row.setting.doc for row in rows()},
        BOUND: {f"{name}=": metric.meaning for name, metric in METRICS.items()},
        METRIC: {**{name: metric.meaning for name, metric in {**METRICS, **SWEEP_METRICS}.items()}, **changes},
    }


def _settings() -> dict[str, dict[str, tuple[str, ...]]]:
    """{command, or command and design: {setting: its values, if they are words}}."""
    of_consumers = {design: _words(CONSUMERS[design].settings) for design in DESIGN_NAMES}
    of_brokers = _words(BROKER_SETTINGS)
    of_runs: dict[str, tuple[str, ...]] = {}
    for name, words in (row for each in (of_brokers, *of_consumers.values()) for row in each.items()):
        of_runs[name] = tuple(dict.fromkeys((*of_runs.get(name, ()), *words)))
    return {
        "": of_runs,
        "broker": of_brokers,
        "topic create": dict.fromkeys(TOPIC_SETTINGS, ()),
        **{f"consume {design}": words for design, words in of_consumers.items()},
    }


def _words(table: Mapping[str, Setting]) -> dict[str, tuple[str, ...]]:
    return {name: _values(setting) for name, setting in sorted(table.items())}


def _values(setting: Setting) -> tuple[str, ...]:
    if setting.parse is boolean:
        return ("true", "false")
    if isinstance(setting.valid, Words):
        return setting.valid.words
    return tuple(sorted(strategies())) if setting.name in _STRATEGIES else ()
