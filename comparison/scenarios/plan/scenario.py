"""The type of the catalogue's rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from comparison.scenarios.plan.parameters import Parameters
from comparison.scenarios.plan.presets import SESSION_TIMERS
from comparison.scenarios.plan.step import Sizes
from comparison.scenarios.plan.vocabulary import Form
from kernel.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparison.scenarios.plan.step import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One experiment of the catalogue."""

    name: str
    symptom: str  #: in the words of users who have met it
    look_for: tuple[str, ...]
    steps: tuple[Step, ...]
    defaults: Parameters = field(default_factory=Parameters)
    #: Override the preset, and are overridden by -c. A design ignores settings that it does not have.
    settings: Mapping[str, str] = field(default_factory=dict)
    budget_s: int = 12  #: the expected length of a run on two cores
    zookeeper_servers: int = 1
    brokers_on_cut_server: bool = False  #: all of them, as the owner that is cut off
    named_members: bool = False  #: each has a name (group.instance.id, or consumer.id), in every design
    members_per_process: int = 1
    members_min: int = 1
    topics_min: int = 1
    brokers_min: int = 1
    needs_steady_load: bool = False  #: its verdicts need a record per second in every partition
    #: Designs in which this scenario is the same run as another one.
    same_run_as: Mapping[str, str] = field(default_factory=dict)
    #: Designs that the scenario is not applicable to, and why.
    not_applicable: Mapping[str, str] = field(default_factory=dict)
    #: Subscriptions at the start: topic numbers by the place of the process. Other places subscribe to all topics.
    first_topics: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    pattern: str = ""  #: a regular expression by which all members subscribe at the start, instead
    references: tuple[str, ...] = ()
    variant_of: str = ""  #: the scenario that a comparison shows it beside
    counts_predicted: bool = True  #: False: more happens than each change by itself
    #: What it is judged by, besides the promises that hold everywhere: checks by their keys in the table of verdicts,
    #: and all those of another scenario of the catalogue.
    checks: tuple[str, ...] = ()
    like: str = ""
    only_promises: bool = False  #: judged as the fuzzer judges, at the end, whatever happens at once on the way
    plugins: tuple[str, ...] = ()  #: files or modules with own steps and faults (`rebalance_lab.extending`)

    @property
    def sets_own_sizes(self) -> bool:
        """Whether the steps say how many members there are, so that --members has no effect."""
        return all(not isinstance(step, Form) or step.members for step in self.steps)

    def sizes(self, parameters: Parameters) -> Sizes:
        """How large everything is before the first step."""
        return Sizes(parameters, servers=self.zookeeper_servers, members_per_process=self.members_per_process)

    def parameters(self, given: Mapping[str, object]) -> Parameters:
        """The scenario's parameters and settings, overridden by those given (None: not given).

        Raises `ConfigurationError` for a value that is out of range, or too small for the scenario's steps.
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
                    f"--{name} is {getattr(made, name)}: {self.name} needs {least} or more. Use --{name} {least}"
                )
        return made
