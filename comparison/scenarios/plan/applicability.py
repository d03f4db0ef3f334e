"""Which of the chosen designs a setting reaches, before anything starts.

A comparison under "equal timers" in which one design got another session timeout compares timers. So a setting that
only some of the chosen designs take is a warning, and one that none of them takes is an error.
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

#: What the 0.8 consumer has; it takes any other word for range without an error, and a run would not be what it says.
_OLD_STRATEGIES = ("range", "roundrobin")


def check_applicability(designs: Sequence[str], given: Mapping[str, str]) -> list[str]:
    """Warnings for settings that reach only some of `designs`, one a setting.

    Raises `ConfigurationError` for a value that a design which knows the name cannot take: any number or boolean,
    and any word that none of them takes; and for a setting that reaches nothing.
    """
    warnings = []
    for name, value in given.items():
        if not any(name in consumers.settings for consumers in CONSUMERS.values()):
            continue  # the brokers' alone, or nobody's here, of which the check of names warns
        lacking = {design: why for design in designs if (why := _why_not(design, name, value))}
        taking = [design for design in designs if design not in lacking]
        if not lacking:
            continue
        reasons = "; ".join(f"{design} {why}" for design, why in lacking.items())
        if taking:
            hint = "; --session-timeout sets it in all designs" if name in SESSION_TIMERS else ""
            warnings.append(f"{name}={value} reaches {', '.join(taking)} only: {reasons}{hint}")
        elif name not in BROKER_SETTINGS:
            raise ConfigurationError(f"{name}={value} reaches none of the chosen designs: {reasons}{_remedy(name)}")
    return warnings


def _remedy(name: str) -> str:
    knowing = [design for design, each in CONSUMERS.items() if name in each.settings and name not in each.made_by]
    timeout = "use --session-timeout, or " if name in SESSION_TIMERS else ""
    return f"; {timeout}choose {' or '.join(knowing)} as well, or leave it out"


def _why_not(name: str, setting: str, value: str) -> str:
    """Why a design does not take a setting; '' when it does. Raises `ConfigurationError` for a broken number."""
    consumers = CONSUMERS[name]
    if setting in consumers.made_by:
        # The server design has a strategy of its own, and the brokers are told.
        return _server_strategy(value) if name == SERVER else f"is what it is by its own {setting}"
    if setting not in consumers.settings:
        return "does not know it"
    if setting == STRATEGY and name == ZOOKEEPER:
        known = value in _OLD_STRATEGIES
        return "" if known else f"knows {' and '.join(_OLD_STRATEGIES)} only"
    if start_of_reading(setting, value) is not None:
        return ""
    complaint = complaint_about(consumers.settings, setting, value)
    if complaint is not None and _is_exact(consumers.settings[setting]):
        raise complaint
    return f"cannot take it ({complaint})" if complaint is not None else ""


def _is_exact(setting: Setting) -> bool:
    """Numbers and booleans mean the same in every era; words do not."""
    return setting.parse in (int, boolean)


def _server_strategy(value: str) -> str:
    complaint = complaint_about(CONSUMER_SETTINGS, STRATEGY, value)
    if complaint is not None or value in ("delayed", *COOPERATIVE) or "," in value:
        return f"cannot assign by {value!r}"
    return ""
