"""Checks which of the chosen designs a setting applies to, before anything starts.

If only one design got another session timeout, a comparison under "equal timers" would compare timers. So a setting
that applies to some of the chosen designs causes a warning, and one that applies to none of them an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.scenarios.plan.configuration import STRATEGY, complaint_about, start_of_reading
from comparison.scenarios.plan.consumers import CONSUMERS
from comparison.scenarios.plan.presets import SESSION_TIMERS
from coordinator.consumer.settings import CONSUMER_SETTINGS
from kernel.assignors.registry import COOPERATIVE
from kernel.broker.settings.configuration import BROKER_SETTINGS
from kernel.designs import SERVER, ZOOKEEPER
from kernel.errors import ConfigurationError
from kernel.settings import Setting, boolean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: The strategies of the 0.8 consumer. It treats any other word as range, without an error.
_OLD_STRATEGIES = ("range", "roundrobin")


def check_applicability(designs: Sequence[str], given: Mapping[str, str]) -> list[str]:
    """One warning for each setting that applies to some of `designs` only.

    Raises `ConfigurationError` for a setting that applies to none of them, and for an invalid value: a number or
    boolean that one design refuses, or a word that all refuse.
    """
    warnings = []
    for name, value in given.items():
        if not any(name in consumers.settings for consumers in CONSUMERS.values()):
            continue  # a broker's setting, or one of no part: `configuration.check` warns of those
        lacking = {design: why for design in designs if (why := why_not(design, name, value))}
        taking = [design for design in designs if design not in lacking]
        if not lacking:
            continue
        reasons = "; ".join(f"{design} {why}" for design, why in lacking.items())
        if taking:
            hint = "; --session-timeout sets it in all designs" if name in SESSION_TIMERS else ""
            warnings.append(f"{name}={value} applies only to {', '.join(taking)}: {reasons}{hint}")
        elif name not in BROKER_SETTINGS:
            raise ConfigurationError(
                f"{name}={value} applies to none of the chosen designs: {reasons}; {_remedy(name, value)}"
            )
    return warnings


def _remedy(name: str, value: str) -> str:
    """Raises `ConfigurationError` for a number that is invalid in every design."""
    taking = [design for design in CONSUMERS if not why_not(design, name, value)]
    if not taking:
        return "no design accepts this value: choose another one, or leave it out"
    timeout = "use --session-timeout, or " if name in SESSION_TIMERS else ""
    return f"{timeout}choose {' or '.join(taking)} as well, or leave it out"


def why_not(name: str, setting: str, value: str) -> str:
    """Why a setting does not apply to a design; '' if it does. Raises `ConfigurationError` for an invalid number."""
    consumers = CONSUMERS[name]
    if setting in consumers.made_by:
        # The server design assigns on the broker: its strategy is a broker setting.
        return _server_strategy(value) if name == SERVER else f"is defined by its own {setting}"
    if setting not in consumers.settings:
        return "does not have it"
    if setting == STRATEGY and name == ZOOKEEPER:
        known = value in _OLD_STRATEGIES
        return "" if known else f"supports only {' and '.join(_OLD_STRATEGIES)}"
    if start_of_reading(setting, value) is not None:
        return ""
    complaint = complaint_about(consumers.settings, setting, value)
    if complaint is not None and _is_exact(consumers.settings[setting]):
        raise complaint
    return f"does not accept it ({complaint})" if complaint is not None else ""


def _is_exact(setting: Setting) -> bool:
    """Numbers and booleans mean the same in every Kafka release; words may not."""
    return setting.parse in (int, boolean)


def _server_strategy(value: str) -> str:
    complaint = complaint_about(CONSUMER_SETTINGS, STRATEGY, value)
    if complaint is not None or value in ("delayed", *COOPERATIVE) or "," in value:
        return f"has no strategy {value!r}"
    return ""
