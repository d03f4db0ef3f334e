"""Reads a scenario from a TOML file, and reports everything that is wrong with it, each with its line.

name = "two-deaths"
symptom = "Two consumers died, one after the other."

[[steps]]
step = "form"

[[steps]]
step = "kill-owner"

The keys are the fields of `Scenario`, of its steps and of its `Parameters`, so that new ones are known at once.
`docs/own-scenarios.md` has the format, and `comparison.scenarios.plan.scenario_text` writes it.
"""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comparison.scenarios.plan import catalogue
from comparison.scenarios.plan.admitted import ScenarioFile
from comparison.scenarios.plan.catalogue import CATALOGUE
from comparison.scenarios.plan.configuration import OF_A_STEP
from comparison.scenarios.plan.configuration import check as check_settings
from comparison.scenarios.plan.faults import FAULTS, LIST, check
from comparison.scenarios.plan.fields import Misfit, default_of, fitted, flat, required, types_of
from comparison.scenarios.plan.parameters import RANGES, Parameters
from comparison.scenarios.plan.plugins import load
from comparison.scenarios.plan.points import KILLED, NAMED
from comparison.scenarios.plan.presets import preset_named
from comparison.scenarios.plan.scenario import Scenario
from comparison.scenarios.plan.sequence import objections
from comparison.scenarios.plan.step_names import STEPS, name_of
from comparison.scenarios.plan.targets import kind_of
from comparison.scenarios.plan.vocabulary import FreezeAtPoint, Heal, Inject, KillAtPoint
from comparison.toml.files import FileReader, located_in, read_toml_text
from kernel.designs import DESIGN_NAMES
from kernel.errors import SeveralErrors
from kernel.suggestions import unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from comparison.toml.places import Located
    from comparison.toml.places import Path as KeyPath

    #: Why a scenario that is like another one cannot be judged by a check of this name; '' if it can.
    CheckComplaint = Callable[[str, str], str]
    #: Loads what a file in this folder calls a plugin of this name.
    PluginLoader = Callable[[str, Path], object]

_EXPECTATIONS, _STEP = "expectations", "step"
_OF_EXPECTATIONS = ("like", "checks", "only_promises")
#: A file may leave these out.
_MAY_BE_EMPTY: Mapping[str, object] = {"symptom": "", "look_for": ()}
#: The settings have a table of their own.
_OF_DEFAULTS = tuple(field.name for field in fields(Parameters) if field.name not in ("settings", "links"))
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,59}")
_LENGTH_MS_MAX, _COUNT_MAX = 3_600_000, 1000


def read_scenario(path: Path, complaint_of: CheckComplaint, load_plugin: PluginLoader = load) -> ScenarioFile:
    """The scenario of a file. Raises `EnvironmentFault` if it cannot be read, `SeveralErrors` for its content."""
    text = read_toml_text(path, "scenario")
    scenario = parse_scenario(text, str(path), complaint_of, load_plugin)
    return ScenarioFile(scenario=scenario, path=str(path), text=text)


def parse_scenario(text: str, name: str, complaint_of: CheckComplaint, load_plugin: PluginLoader = load) -> Scenario:
    """The scenario in a TOML text; `name` is the file's. Raises `SeveralErrors`."""
    found = located_in(text, name, "docs/own-scenarios.md")
    reader = _Reader(found, complaint_of, lambda named: load_plugin(named, Path(name).parent))
    scenario = reader.read()
    if reader.complaints or scenario is None:
        raise SeveralErrors(reader.texts(name), "".join(reader.tracebacks))
    return scenario


class _Reader(FileReader):
    def __init__(self, found: Located, complaint_of: CheckComplaint, load_plugin: Callable[[str], object]) -> None:
        super().__init__(found)
        self._load_plugin = load_plugin
        self._complaint_of = complaint_of

    def read(self) -> Scenario | None:
        content = self._found.content
        self._load_plugins(content.get("plugins", []))
        types: Mapping[str, Any] = types_of(Scenario)
        given: dict[str, Any] = dict(_MAY_BE_EMPTY)
        known = [name for name in types if name not in _OF_EXPECTATIONS]
        for name in content:
            if name not in (*known, _EXPECTATIONS):
                self._complain((name,), unknown("key", name, [*known, _EXPECTATIONS]))
        for name in required(Scenario):
            if name not in content and name not in _MAY_BE_EMPTY:
                self._complain((), f"{name} is missing. Add {name} = ...")
        read = {"defaults": self._defaults, "steps": self._steps}
        for name in known:
            if name in content:
                one = read.get(name)
                value = one(content[name]) if one else self._fitted((name,), content[name], types[name])
                if value is not None:
                    given[name] = value
        given |= self._expectations(content.get(_EXPECTATIONS, {}), str(given.get("name", "")))
        self._check(given)
        if self.complaints:
            return None
        scenario = Scenario(**given)
        for number, why in objections(scenario, scenario.defaults):
            self._complain(("steps", number), f"{name_of(type(scenario.steps[number]))}: {why}")
        if CATALOGUE.get(scenario.name, scenario) != scenario:
            self._complain(
                ("name",),
                f"{scenario.name!r} is a scenario of the catalogue, from which this one differs. Choose another name "
                f'(with like = "{scenario.name}" in [expectations] it is judged by the same checks)',
            )
        return scenario

    # -- parts -------------------------------------------------------------------------------------------------------

    def _load_plugins(self, names: object) -> None:
        """Own steps and faults, before they are looked up."""
        for number, name in enumerate(names if isinstance(names, list) else []):
            with self._complaining(("plugins", number)):
                if isinstance(name, str):
                    self._load_plugin(name)

    def _defaults(self, table: object) -> Parameters | None:
        if not isinstance(table, dict):
            self._complain(("defaults",), "defaults must be a table")
            return None
        types, given = types_of(Parameters), {}
        for name, value in table.items():
            at = ("defaults", name)
            if name not in _OF_DEFAULTS:
                hint = "Settings have a table of their own, [settings]" if "settings" in name else ""
                self._complain(at, unknown("default", name, _OF_DEFAULTS, hint=hint))
            elif (fits := self._fitted(at, value, types[name])) is not None:
                low, high = RANGES.get(name, (0, 0))
                if name in RANGES and not low <= fits <= high:
                    self._complain(at, f"{name} is {fits:g}: must be between {low:g} and {high:.12g}")
                else:
                    given[name] = fits
        if "preset" in given:
            with self._complaining(("defaults", "preset")):
                preset_named(given["preset"])
        return None if self.complaints else Parameters(**given)

    def _steps(self, given: object) -> tuple[Any, ...] | None:
        if not isinstance(given, list) or not given or not all(isinstance(each, dict) for each in given):
            self._complain(("steps",), "steps must be tables: [[steps]], each with step = NAME")
            return None
        return tuple(self._step(("steps", number), table) for number, table in enumerate(given))

    def _step(self, at: KeyPath, table: Mapping[str, Any]) -> Any:
        name = table.get(_STEP)
        kind = STEPS.get(name) if isinstance(name, str) else None
        if kind is None:
            if _STEP in table:
                self._complain((*at, _STEP), unknown("step", str(name), STEPS, hint=LIST))
            else:
                self._complain(at, f"a step without its name. Add step = NAME; {LIST}")
            return None
        types, given = types_of(kind), {}
        for key, value in table.items():
            if key == _STEP:
                continue
            if key not in types:
                why = f": {unknown('parameter', key, types)}" if types else f" has no parameters. Leave {key!r} out"
                self._complain((*at, key), f"{name}{why}")
            elif (fits := self._fitted((*at, key), value, types[key])) is not None:
                given[key] = fits
                self._check_range((*at, key), key, fits)
                self._check_words(kind, (*at, key), key, fits)
        for missing in (each for each in required(kind) if each not in table):
            self._complain(at, f"{name}: {missing} is missing. Add {missing} = ...")
        if any(each not in given for each in required(kind)):
            return None
        step = kind(**given)
        if isinstance(step, Inject):
            self._injected(at, step)
        return step

    def _check_range(self, at: KeyPath, key: str, value: object) -> None:
        """Lengths and rates may be 0; everything else that is a number counts or names something from 1 on."""
        if not isinstance(value, int) or isinstance(value, bool):
            return
        length = key == "ms" or key.endswith("_ms")
        low, high = (0, _LENGTH_MS_MAX) if length or key == "per_second" else (1, _COUNT_MAX)
        if not low <= value <= high:
            self._complain(at, f"{key} is {value}: must be between {low} and {high}")

    def _check_words(self, kind: type, at: KeyPath, key: str, value: Any) -> None:
        """What a step names: a fault, its target or whom to kill, settings."""
        if key == "settings" and isinstance(value, dict):
            self._check_settings(at)
        elif kind is KillAtPoint and key == "target" and value not in KILLED:
            self._complain(at, unknown("target", value, KILLED))
        elif kind in (KillAtPoint, FreezeAtPoint) and key == "point" and value not in NAMED:
            self._complain(at, unknown("point", value, NAMED, hint=LIST))
        elif kind not in (Inject, Heal) or not value:
            return
        elif key == "fault" and value not in FAULTS:
            self._complain(at, unknown("fault", value, FAULTS, hint=LIST))
        elif key == "target":
            with self._complaining(at):
                kind_of(value)

    def _injected(self, at: KeyPath, step: Inject) -> None:
        if step.fault not in FAULTS:
            return
        fault, asked = FAULTS[step.fault], self._found.content.get("zookeeper_servers", 1)
        for name, value in step.parameters.items():
            with self._complaining((*at, "parameters", name)):
                fault.values({name: value})
        with self._complaining((*at, "target")):
            servers = asked if asked in (1, 3) else 3  # that is another complaint
            check(step.fault, step.target, {}, design=fault.designs[0], servers=servers)

    def _expectations(self, table: object, name: str) -> dict[str, Any]:
        at: KeyPath = (_EXPECTATIONS,)
        if not isinstance(table, dict):
            self._complain(at, "expectations must be a table")
            return {}
        types, given = types_of(Scenario), {}
        for key, value in table.items():
            if key not in _OF_EXPECTATIONS:
                self._complain((*at, key), unknown("key", key, _OF_EXPECTATIONS))
            elif (fits := self._fitted((*at, key), value, types[key])) is not None:
                given[key] = fits
        if (like := given.get("like", "")) and like not in CATALOGUE:
            self._complain((*at, "like"), unknown("scenario", like, CATALOGUE, hint=catalogue.LIST))
        for number, each in enumerate(given.get("checks", ())):
            if complaint := self._complaint_of(each, like):
                self._complain((*at, "checks", number), complaint)
        # A scenario of the catalogue is like itself, and so names the same checks.
        return {"checks": CATALOGUE[name].checks, **given, "like": ""} if like == name else given

    # -- checks ------------------------------------------------------------------------------------------------------

    def _check(self, given: Mapping[str, Any]) -> None:
        name = given.get("name")
        if name is not None and not _NAME.fullmatch(name):
            self._complain(
                ("name",), f"{name!r} cannot be the name of a folder. Use small letters, digits, dots and dashes"
            )
        for field in fields(Scenario):
            value, high = given.get(field.name), _LENGTH_MS_MAX // 1000 if field.name.endswith("_s") else _COUNT_MAX
            if type(value) is int and type(default_of(field)) is int and not 1 <= value <= high:
                self._complain((field.name,), f"{field.name} is {value}: must be between 1 and {high}")
        if given.get("zookeeper_servers", 1) not in (1, 3):
            self._complain(("zookeeper_servers",), "zookeeper_servers must be 1 or 3")
        for key in ("same_run_as", "not_applicable"):
            for design, value in given.get(key, {}).items():
                if design not in DESIGN_NAMES:
                    self._complain((key, design), unknown("design", design, DESIGN_NAMES))
                elif key == "same_run_as" and value not in CATALOGUE:
                    self._complain((key, design), unknown("scenario", value, CATALOGUE, hint=catalogue.LIST))
        self._check_settings(("settings",))

    def _check_settings(self, at: KeyPath) -> None:
        table: Any = self._found.content
        for part in at:
            table = table.get(part, {}) if isinstance(table, dict) else table[part]
        if not isinstance(table, dict):
            return
        for name, value, path in flat(table):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if at[0] == "steps" and name in OF_A_STEP:
                continue  # it depends on the design of the step's members, which is checked with the plan
            with self._complaining((*at, *path)):
                check_settings({name: text})

    def _fitted(self, at: KeyPath, value: object, wanted: Any) -> Any:
        """The value as its field has it; None, with a complaint, if it does not fit."""
        try:
            return fitted(value, wanted)
        except Misfit as misfit:
            self._complain((*at, *misfit.path), f"{at[-1]} {misfit}")
            return None
