"""Fill `state-machines.md`, the page of all state machines, and draw its pictures.

Everything on it comes from the tables that run (`machines`, `requests_by_state`); a test compares them.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

from docs.generators import consumer_requests, machine_picture
from docs.generators import requests_by_state as requests
from docs.generators.machines import MEMBER_TABLES, events_of, listed, machines
from docs.generators.pages import DOCS, FIGURES, filled, markdown_table
from docs.generators.requests_by_state import NO_GROUP

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from docs.generators.machines import Machine, Move, State
    from docs.generators.requests_by_state import Answers

PAGE = DOCS / "state-machines.md"


def page() -> str:
    """The page for the present tables."""
    places = {
        "classic-answers": answers(requests.classic(), requests.APIS),
        "server-answers": answers(requests.server()),
        "consumer-answers": answers(consumer_requests.answers(), consumer_requests.APIS),
    }
    for machine in machines():
        parts = [figure(machine), *([events(machine)] if machine.name in MEMBER_TABLES else ())]
        places[machine.name] = "\n".join(parts)
    return filled(PAGE, places)


def figure(machine: Machine) -> str:
    """The picture, and the same as a table."""
    alt_text = f"{machine.title}: {len(machine.states)} states and the moves between them, as in the table below"
    rows = [row for state in machine.states for row in _rows(state)]
    shown = f"![{alt_text}](diagrams/figures/machine-{machine.name}.svg)"
    return f"{shown}\n\n{markdown_table(('state', 'what it is', 'leads to', 'when'), rows)}\n"


def _rows(state: State) -> Iterable[tuple[str, ...]]:
    head = (f"**{state.name}**", f"{state.note}: {state.says}" if state.note else state.says)
    asked = "; ".join(said for heading, said in state.facts if heading == "asks")
    if asked:
        head = (head[0], f"{head[1]}: {asked}")
    if not state.moves:
        yield *head, "", "the end"
    for move in state.moves:
        yield *head, _target(state, move), listed([_marked(each) for each in move.reasons])
        head = ("", "")


def _target(state: State, move: Move) -> str:
    return "stays" if move.target == state.name else move.target


def _marked(reason: str) -> str:
    """Names of the code in backquotes."""
    return re.sub(r"^[A-Z]\w*[a-z]\w*(?=$|: )", r"`\g<0>`", reason)


def answers(found: Answers, apis: Mapping[str, str] | None = None) -> str:
    """Every request in every state; with headings, if the names of the requests say which API each is of."""
    states = list(next(iter(found.rows.values())))
    assert states[0] == NO_GROUP
    rows = []
    api = ""
    for request, row in found.rows.items():
        if apis is not None and requests.api_of(request, apis) != api:
            api = requests.api_of(request, apis)
            rows.append((f"**{api}**", *("" for _ in states)))
        rows.append((request, *(_answer(row[state]) for state in states)))
    return markdown_table(("request", *states), rows) + "\n"


def _answer(said: str) -> str:
    answer, arrow, state = said.partition(" → ")
    if answer.isupper():
        answer = f"`{answer}`" if "," not in answer else ", ".join(f"`{each}`" for each in answer.split(", "))
    return f"{answer}{f' → {state}' if arrow else ''}"


def events(machine: Machine) -> str:
    """What each event of a member means: the first sentence about it in the code."""
    rows = [(f"`{event.__name__}`", _meaning(event)) for event in events_of(machine)]
    return f"What the events are:\n\n{markdown_table(('event', 'what has happened'), rows)}\n"


def _meaning(event: type) -> str:
    said = " ".join((inspect.getdoc(event) or "").split("\n\n")[0].split())
    return said.replace("`deadline` in `member`", "`deadline`")


def files() -> Mapping[Path, str]:
    """The page and its pictures."""
    pictures = machine_picture.pictures(machines())
    return {PAGE: page(), **{FIGURES / name: content for name, content in pictures.items()}}
