"""The broker's assignment strategy in the server design: a setting, read once at startup.

This is the design's drawback (article 003 §2.2 in docs/sources.md): changing the strategy needs a restart of the
broker, whereas members of the later designs bring their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.groups.server.group import AssignmentSettings
from kernel.assignors.registry import COOPERATIVE, assignor, assignor_name, names
from kernel.errors import ConfigurationError

if TYPE_CHECKING:
    from kernel.broker.settings.configuration import BrokerConfig

STRATEGY = "group.server.assignment.strategy"


def assignment_settings(config: BrokerConfig) -> AssignmentSettings:
    """Raises `ConfigurationError` for a strategy that is unknown or cannot work here."""
    name = assignor_name(config.text(STRATEGY))
    if name in COOPERATIVE:
        raise ConfigurationError(
            f"{STRATEGY}={name}: members stop everything before the coordinator assigns, so nothing can be handed over "
            "in two steps; choose sticky"
        )
    return AssignmentSettings(name, assignor(name), names(), config.number("group.server.rebalance.timeout.ms"))
