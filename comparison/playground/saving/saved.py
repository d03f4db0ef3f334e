"""A game as files of scenarios: one for all designs in which the same was played. Pure."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from comparison.playground.messages import SavedScenario
from comparison.playground.saving.steps import MS_PER_S, steps_of
from comparison.scenarios.plan.links import DEFAULT
from comparison.scenarios.plan.parameters import RANGES
from comparison.scenarios.plan.played import PLAYGROUND
from comparison.scenarios.plan.scenario import Scenario
from comparison.scenarios.plan.scenario_text import as_file
from comparison.screen.counted import counted
from comparison.screen.printable import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comparison.playground.messages import Limits
    from comparison.playground.saving.steps import Act, Steps
    from comparison.scenarios.plan.parameters import Parameters

#: What a run takes beside what was played: starting, forming, draining.
_AROUND_S = 12
_TIME_LIMIT_S = 120
_SYMPTOM = "What was done by hand in the playground, as it was clicked."
_LOOK_FOR = ("the same changes, at the same moments since the group had formed",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """Where a game comes from, and what was played in each design."""

    name: str  #: of its folder
    provenance: Mapping[str, object]
    parameters: Parameters
    limits: Limits
    is_simulated: bool
    begun_ms: int | None  #: when all groups had formed; None if they have not
    now_ms: int
    acts: Mapping[str, Sequence[Act]]  #: by design


def saved(game: Played) -> list[SavedScenario]:
    """The scenarios of a game, none of a design in which nothing was played."""
    alike: dict[tuple[Act, ...], list[str]] = {}
    for design, acts in game.acts.items():
        alike.setdefault(tuple(acts), []).append(design)
    names = ["played.toml"] if len(alike) == 1 else [f"played-{designs[0]}.toml" for designs in alike.values()]
    return [
        _saved(game, name, designs, acts) for name, (acts, designs) in zip(names, alike.items(), strict=True) if acts
    ]


def _saved(game: Played, name: str, designs: Sequence[str], acts: Sequence[Act]) -> SavedScenario:
    begun_ms = min(acts[0].at_ms, acts[0].at_ms if game.begun_ms is None else game.begun_ms)
    until_ms = max(game.now_ms, acts[-1].at_ms)
    around = _around(game, name, (until_ms - begun_ms) // MS_PER_S)
    found = steps_of(acts, begun_ms, until_ms, around, game.limits)
    command = _command(game, name, designs)
    scenario = replace(around, steps=found.steps)
    comments: dict[int, list[str]] = {}
    for before, text in found.left:
        comments.setdefault(before, []).append(f"Left out: {text}")
    text = as_file(scenario, head=_head(game, designs, acts, found, command), comments=comments)
    left = len(found.left)
    return SavedScenario(
        name=name, designs=tuple(designs), steps=len(acts) - left, left_out=left, command=command, text=text
    )


def _around(game: Played, name: str, length_s: int) -> Scenario:
    """All of the scenario but its steps."""
    own = re.sub(r"[^a-z0-9.-]", "-", f"{name.removesuffix('.toml')}-{game.name.lower()}")[:60].rstrip("-")
    limit_s = min(RANGES["time_limit_s"][1], max(_TIME_LIMIT_S, 2 * length_s + 10 * _AROUND_S))
    return Scenario(
        name=own,
        symptom=_SYMPTOM,
        look_for=_LOOK_FOR,
        steps=(),
        defaults=replace(game.parameters, settings={}, links=DEFAULT, time_limit_s=limit_s),
        settings=game.parameters.settings,
        budget_s=length_s + _AROUND_S,
        brokers_min=PLAYGROUND.brokers_min,
        only_promises=True,
    )


def _command(game: Played, name: str, designs: Sequence[str]) -> str:
    words = ["rebalance-lab", "run", name, "--design", ",".join(designs), "--seed", str(game.parameters.seed)]
    if game.is_simulated:
        words.append("--simulated")
        if game.parameters.links != DEFAULT:
            words += ["--link", game.parameters.links]
    return printable(shlex.join(words))


def _head(game: Played, designs: Sequence[str], acts: Sequence[Act], found: Steps, command: str) -> list[str]:
    versions = game.provenance.get("versions")
    known = versions if isinstance(versions, dict) else {}
    given = game.provenance.get("command")
    played = shlex.join(map(str, given)) if isinstance(given, list) else "?"
    left = len(found.left)
    return [
        f"Played by hand: {played}",
        f"rebalance-lab {known.get('rebalance-lab', '?')}, Python {known.get('python', '?')}; folder {game.name}",
        f"In {', '.join(designs)}; seed {game.parameters.seed}; {'virtual time' if game.is_simulated else 'live'}",
        f"{counted(len(acts), 'command')} {'was' if len(acts) == 1 else 'were'} accepted"
        + (f"; {left} of them no step says: comments below say why." if left else ", and all of them are steps."),
        "Times count from when the groups had formed. At the end all faults are healed, and who was killed comes back.",
        "A run meets these changes in another phase of the group's timers, so what follows from them can differ. It is",
        "judged on one promise more than a game: that the group settles.",
        f"Run it: {command}",
    ]
