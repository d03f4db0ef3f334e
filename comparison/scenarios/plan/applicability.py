"""Checks which of the chosen designs a setting applies to, before anything starts.

If only one design got another session timeout, a comparison under "equal timers" would compare timers. So a setting
that applies to some of the chosen designs causes a warning, and one that applies to none of them an error. A scenario's
own settings are for whatever design it is run in: only a value that no chosen design accepts is an error there.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from comparison.consumers import CONSUMERS
from comparison.scenarios.plan.admitted import file_of
from comparison.scenarios.plan.configuration import STRATEGY, check, complaint_about, in_its_words
from comparison.scenarios.plan.presets import CONSUMER_HEARTBEAT, CONSUMER_SESSION, SESSION_TIMERS
from comparison.scenarios.plan.setting_rows import DELAY, USED_BY
from coordinator.client.setting_table import CONSUMER_SETTINGS
from kernel.assignors.registry import COOPERATIVE
from kernel.broker.settings.setting_table import BROKER_SETTINGS
from kernel.designs import DESIGNS, SERVER, ZOOKEEPER
from kernel.errors import ConfigurationError
from kernel.settings import Setting, boolean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from comparison.scenarios.plan.scenario import Scenario

#: The strategies of the 0.8 consumer. It treats any other word as range, without an error.
_OLD_STRATEGIES = ("range", "roundrobin")
_UNUSED = "does not use it"
_DELAYED_STRATEGY = "delayed"
#: What each design has one of. Of the other timers that --session-timeout sets, some designs have none.
_SESSIONS = frozenset(consumers.session_setting for consumers in CONSUMERS.values())
#: What the brokers, or the assignors on them, decide for members that reconcile.
_MOVED: Mapping[str, str] = MappingProxyType(
    {
        "session.timeout.ms": f"the brokers' {CONSUMER_SESSION}",
        "heartbeat.interval.ms": f"the brokers' {CONSUMER_HEARTBEAT}",
        STRATEGY: "group.remote.assignor",
    }
)


def check_applicability(designs: Sequence[str], given: Mapping[str, str]) -> list[str]:
    """One warning for each setting that applies to some of `designs` only.

    Raises `ConfigurationError` for a setting that applies to none of them, and for an invalid value: a number or
    boolean that one design refuses, or a word that all refuse.
    """
    warnings = []
    for name, value in given.items():
        if not _is_of_members(name) and name not in USED_BY:
            continue  # a setting of every broker, or of no part: `configuration.check` warns of those
        lacking = _lacking(designs, name, value, given)
        taking = [design for design in designs if design not in lacking]
        if not lacking:
            continue
        reasons = "; ".join(f"{design} {why}" for design, why in lacking.items())
        if taking:
            hint = "; --session-timeout sets it in all designs" if name in _SESSIONS else ""
            warnings.append(f"{name}={value} applies only to {', '.join(taking)}: {reasons}{hint}")
        elif name not in BROKER_SETTINGS or name in USED_BY:
            raise ConfigurationError(
                f"{name}={value} applies to none of the chosen designs: {reasons}. {_remedy(name, value)}"
            )
    return warnings


def check_scenario(scenario: Scenario, designs: Sequence[str], given: Mapping[str, object]) -> list[str]:
    """Warnings about a scenario's own settings: replaced by an option, or of no use in a chosen design.

    What our catalogue sets is meant for the designs that have it, so only files cause the latter. Raises
    `ConfigurationError` for a value that no chosen design accepts.
    """
    designs = [design for design in designs if design not in scenario.not_applicable]
    asked = given.get("settings") or {}
    assert isinstance(asked, dict)
    session_ms, warnings = given.get("session_timeout_ms"), []
    own = {name: value for name, value in scenario.settings.items() if name not in asked}
    if session_ms is not None and (timers := [f"{name}={own[name]}" for name in own if name in SESSION_TIMERS]):
        warnings.append(f"{scenario.name}: --session-timeout {session_ms} replaces its own {', '.join(timers)}")
        own = {name: value for name, value in own.items() if name not in SESSION_TIMERS}
    for name, value in own.items():
        lacking = _lacking(designs, name, value, scenario.settings) if _is_of_members(name) or name in USED_BY else {}
        refusing = {each: why for each, why in lacking.items() if name in CONSUMERS[each].settings and why != _UNUSED}
        reasons = "; ".join(f"{design} {why}" for design, why in lacking.items())
        if refusing and len(lacking) == len(designs):
            raise ConfigurationError(
                f"{scenario.name}: {name}={value} is accepted by no chosen design: {reasons}. Change it or leave it out"
            )
        if lacking and (refusing or file_of(scenario) is not None) and not _has_its_own(lacking, name, own):
            taking = ", ".join(design for design in designs if design not in lacking)
            where = f"only to {taking}" if taking else "to none of the chosen designs"
            warnings.append(f"{scenario.name}: {name}={value} applies {where}: {reasons}")
    if file_of(scenario) is not None:
        warnings += [f"{scenario.name}: {warning}" for warning in check(own)]
    return warnings


def overriding(designs: Sequence[str], session_timeout_ms: int | None, given: Mapping[str, str]) -> list[str]:
    """Warnings of settings by which a design gets another session timeout than --session-timeout says."""
    if session_timeout_ms is None:
        return []
    timers = {design: CONSUMERS[design].session_setting for design in designs}
    return [
        f"{name}={given[name]} overrides --session-timeout {session_timeout_ms} in "
        f"{', '.join(design for design in designs if timers[design] == name)}"
        for name in dict.fromkeys(timers.values())
        if given.get(name, str(session_timeout_ms)) != str(session_timeout_ms)
    ]


def step_complaints(design: str, settings: Mapping[str, str]) -> Iterator[str]:
    """Why the members of one step cannot have these settings over the design's own, whose strategy may be replaced."""
    for name, value in settings.items():
        consumers = CONSUMERS[design]
        if name not in consumers.settings or (name in consumers.made_by and design == SERVER):
            yield f"{name}={value}: {design} does not have it"
        elif name not in consumers.made_by:
            try:
                why = why_not(design, name, value)
            except ConfigurationError as error:
                why = str(error)
            if why:
                yield f"{name}={value}: {design} {why}"


def require_effect(design: str, settings: Mapping[str, str]) -> None:
    """Raises `ConfigurationError` for a setting that a consumer started by hand has, and its design does not use."""
    consumers = CONSUMERS[design]
    for name, value in settings.items():
        if name not in consumers.made_by:
            why = _lacking([design], name, value, settings).get(design)
        else:
            why = "assigns on the brokers, by group.server.assignment.strategy" if design == SERVER else None
        if why:
            raise ConfigurationError(f"{name}={value} would have no effect: {design} {why}. Leave it out")


def unused(design: str, name: str) -> bool:
    """Whether a design makes no use of a setting that the parts of every run have."""
    return design not in USED_BY.get(name, (design,))


def _is_of_members(name: str) -> bool:
    return any(name in consumers.settings for consumers in CONSUMERS.values())


def _lacking(designs: Sequence[str], name: str, value: str, given: Mapping[str, str]) -> dict[str, str]:
    """The designs that do not take a setting, and why."""
    found = {design: why for design in designs if (why := why_not(design, name, value))}
    if name == DELAY and given.get(STRATEGY) == _DELAYED_STRATEGY:
        return {design: why for design, why in found.items() if name not in CONSUMERS[design].settings}
    return found


def _has_its_own(lacking: Mapping[str, str], name: str, own: Mapping[str, str]) -> bool:
    """Whether a session timer's counterpart is set for each design that does not have it."""
    return name in _SESSIONS and all(CONSUMERS[design].session_setting in own for design in lacking)


def _remedy(name: str, value: str) -> str:
    """Raises `ConfigurationError` for a number that is invalid in every design."""
    taking = [design for design in CONSUMERS if not why_not(design, name, value)]
    if not taking:
        return "No design accepts this value: choose another one, or leave it out"
    choose = "Use --session-timeout, or choose" if name in _SESSIONS else "Choose"
    return f"{choose} {' or '.join(taking)} as well, or leave it out"


def why_not(name: str, setting: str, value: str) -> str:
    """Why a setting does not apply to a design; '' if it does. Raises `ConfigurationError` for an invalid number."""
    consumers = CONSUMERS[name]
    if unused(name, setting):
        return _UNUSED
    if setting in BROKER_SETTINGS and not _is_of_members(setting):
        return ""
    if setting in consumers.made_by:
        # The server design assigns on the broker: its strategy is a broker setting.
        return _server_strategy(value) if name == SERVER else f"is defined by its own {setting}"
    if setting not in consumers.settings:
        return _otherwise(name, setting)
    if setting == STRATEGY and name == ZOOKEEPER:
        known = value in _OLD_STRATEGIES
        return "" if known else f"supports only {' and '.join(_OLD_STRATEGIES)}"
    complaint = complaint_about(consumers.settings, setting, in_its_words(consumers.settings, setting, value))
    if complaint is not None and _is_exact(consumers.settings[setting]):
        raise complaint
    return f"does not accept it ({complaint})" if complaint is not None else ""


def _otherwise(name: str, setting: str) -> str:
    """Why a design's members do not have a setting, and where its counterpart is (KIP-848)."""
    if DESIGNS[name].reconciles and setting in _MOVED:
        return f"has {_MOVED[setting]} instead"
    return "does not have it"


def _is_exact(setting: Setting) -> bool:
    """Numbers and booleans mean the same in every Kafka release; words may not."""
    return setting.parse in (int, boolean)


def _server_strategy(value: str) -> str:
    complaint = complaint_about(CONSUMER_SETTINGS, STRATEGY, value)
    if complaint is not None or value in ("delayed", *COOPERATIVE) or "," in value:
        return f"has no strategy {value!r}"
    return ""
