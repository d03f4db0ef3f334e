"""Fill `state-machines.md`, the page of all state machines, and draw its pictures.

Everything on it comes from the tables that run (`machines`, `requests_by_state`); a test compares them.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

from docs.generators import consumer_requests, machine_map, machine_picture
from docs.generators import requests_by_state as requests
from docs.generators.machine_picture import STAYS
from docs.generators.machines import MEMBER_TABLES, events_of, listed, machines
from docs.generators.pages import DOCS, FIGURES, filled, folded, markdown_table
from docs.generators.requests_by_state import NO_GROUP

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from docs.generators.machines import Machine, Move, State
    from docs.generators.requests_by_state import Answers

PAGE = DOCS / "state-machines.md"


def figure(machine: Machine) -> str:
    """The picture; folded, the cards of the states, and the moves as a table."""
    alt_text = f"{machine.title}: its {len(machine.states)} states and the moves between them"
    states = markdown_table(("state", "what it is"), [(f"**{state.name}**", _is(state)) for state in machine.states])
    moves = markdown_table(("leads to", "from", "when"), list(_rows(machine)))
    cards = f"![{alt_text}, with every reason, as in the table below](diagrams/figures/machine-{machine.name}.svg)"
    shown = f"![{alt_text}, each with its main reason](diagrams/figures/map-{machine.name}.svg)"
    return f"{shown}\n\n{folded('Every state and every reason', cards, moves, states)}"


def _is(state: State) -> str:
    says = f"{state.note}: {state.says}" if state.note else state.says
    asked = "; ".join(said for heading, said in state.facts if heading == "asks")
    return f"{says}: {asked}" if asked else says


def _rows(machine: Machine) -> Iterable[tuple[str, str, str]]:
    """The moves, those of the same states to the same one together."""
    sources: dict[tuple[str, str], list[str]] = {}
    for target in machine.states:
        for state in machine.states:
            for move in state.moves:
                if move.target == target.name:
                    for reason in move.reasons or ("",):
                        sources.setdefault((_target(state, move), reason), []).append(state.name)
    together: dict[tuple[str, str], list[str]] = {}
    for (to, reason), found in sources.items():
        together.setdefault((to, ", ".join(found)), []).append(reason)
    for (to, states), reasons in sorted(together.items(), key=lambda each: each[0][0] == STAYS):
        yield to, states, listed([_marked(each) for each in reasons])


def _target(state: State, move: Move) -> str:
    return STAYS if move.target == state.name else move.target


def _marked(reason: str) -> str:
    """Names of the code in backquotes."""
    return re.sub(r"^[A-Z]\w*[a-z]\w*(?=$|: )", r"`\g<0>`", reason)


def answers(found: Answers, apis: Mapping[str, str] | None = None) -> str:
    """Every request in every state, those with the same answers together; below their API, if their names tell it."""
    states = list(next(iter(found.rows.values())))
    assert states[0] == NO_GROUP
    together: dict[tuple[str, ...], list[str]] = {}
    for request, row in found.rows.items():
        api = "" if apis is None else requests.api_of(request, apis)
        together.setdefault((api, *(_answer(row[state]) for state in states)), []).append(request)
    rows = []
    for (api, *told), names in together.items():
        if api and not any(row[0] == f"**{api}**" for row in rows):
            rows.append((f"**{api}**", *("" for _ in states)))
        rows.append(("; ".join(names), *told))
    return folded("Every request in every state", markdown_table(("request", *states), rows))


def _answer(said: str) -> str:
    answer, arrow, state = said.partition(" → ")
    if answer.isupper():
        answer = f"`{answer}`" if "," not in answer else ", ".join(f"`{each}`" for each in answer.split(", "))
    return f"{answer}{f' → {state}' if arrow else ''}"


def events() -> str:
    """What each event of a member means: the first sentence about it in the code."""
    members: dict[tuple[str, str], list[str]] = {}
    for machine in machines():
        for event in events_of(machine) if machine.name in MEMBER_TABLES else ():
            members.setdefault((event.__name__, _meaning(event)), []).append(machine.name.removesuffix("-member"))
    rows = [(f"`{name}`", meaning, ", ".join(of)) for (name, meaning), of in sorted(members.items())]
    return markdown_table(("event", "what has happened", "members"), rows)


def _meaning(event: type) -> str:
    said = " ".join((inspect.getdoc(event) or "").split("\n\n")[0].split())
    return said.replace("`deadline` in `member`", "`deadline`")


def files() -> Mapping[Path, str]:
    """The page and its pictures."""
    places = {
        "classic-answers": answers(requests.classic(), requests.APIS),
        "server-answers": answers(requests.server()),
        "consumer-answers": answers(consumer_requests.answers(), consumer_requests.APIS),
        "events": events(),
        **{machine.name: figure(machine) for machine in machines()},
    }
    pictures = {**machine_picture.pictures(machines()), **machine_map.pictures(machines())}
    return {PAGE: filled(PAGE, places), **{FIGURES / name: content for name, content in pictures.items()}}
