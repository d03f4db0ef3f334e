"""What one experiment of the catalogue is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from comparison.scenarios.plan.parameters import Parameters
from comparison.scenarios.plan.presets import SESSION_TIMERS
from kernel.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparison.scenarios.plan.vocabulary import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One experiment of the catalogue."""

    name: str
    symptom: str  #: in the words of those who met it
    look_for: tuple[str, ...]
    steps: tuple[Step, ...]
    defaults: Parameters = field(default_factory=Parameters)
    #: Over the preset and under what a user gives with -c; a name that a design does not know is not its business.
    settings: Mapping[str, str] = field(default_factory=dict)
    budget_s: int = 12  #: what one run should take on two cores
    zookeeper_servers: int = 1
    members_per_process: int = 1
    members_min: int = 1
    topics_min: int = 1
    brokers_min: int = 1
    needs_steady_load: bool = False  #: judged by who delivers when: every partition needs a record a second or more
    #: Designs whose run of this scenario is the same as their run of another one.
    same_run_as: Mapping[str, str] = field(default_factory=dict)
    #: Designs for which it makes no sense, and why.
    not_applicable: Mapping[str, str] = field(default_factory=dict)
    #: Subscriptions at the start, as numbers of topics by the place of the process; the other places have all.
    first_topics: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    references: tuple[str, ...] = ()

    def parameters(self, given: Mapping[str, object]) -> Parameters:
        """Its own parameters and settings with what was given (None: not given) over them.

        Raises `ConfigurationError` for what is out of range, or too little for what is done here.
        """
        settings = given.get("settings") or {}
        assert isinstance(settings, dict)
        timed = given.get("session_timeout_ms") is not None
        own = {name: value for name, value in self.settings.items() if not (timed and name in SESSION_TIMERS)}
        made = self.defaults.overridden(**{**given, "settings": {**own, **settings}})
        needed = {"members": self.members_min, "topics": self.topics_min, "brokers": self.brokers_min}
        for name, least in needed.items():
            if getattr(made, name) < least:
                raise ConfigurationError(
                    f"{name} is {getattr(made, name)}: {self.name} needs {least} or more; use --{name} {least}"
                )
        return made
