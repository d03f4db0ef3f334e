"""Fill `state-machines.md`, the page of all state machines, and draw its pictures.

Everything on it comes from the tables that run (`machines`, `requests_by_state`); a test compares them.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from typing import TYPE_CHECKING

from docs.generators import consumer_requests, machine_map, machine_picture
from docs.generators import requests_by_state as requests
from docs.generators.machines import MEMBER_TABLES, events_of, listed, machines
from docs.generators.pages import DOCS, FIGURES, filled, folded, markdown_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from docs.generators.machines import Machine, State
    from docs.generators.requests_by_state import Answers

PAGE = DOCS / "state-machines.md"


def figure(machine: Machine) -> str:
    """The picture; folded, the cards of the states, and a table of them with the moves that lead there."""
    alt_text = f"{machine.title}: its {len(machine.states)} states and the moves between them"
    table = markdown_table(("state", "from", "when"), list(_rows(machine)))
    cards = f"![The same with every reason](diagrams/figures/machine-{machine.name}.svg)"
    shown = f"![{alt_text}, each with its main reason](diagrams/figures/map-{machine.name}.svg)"
    return f"{shown}\n\n{folded('Every state and every reason', cards, table)}"


def _is(state: State) -> str:
    says = f"{state.note}: {state.says}" if state.note else state.says
    asked = "; ".join(said for heading, said in state.facts if heading == "asks")
    return f"**{state.name}**: {says}: {asked}" if asked else f"**{state.name}**: {says}"


def _rows(machine: Machine) -> Iterable[tuple[str, str, str]]:
    """Each state, what it is, and what leads there from others; reasons of the same states are together."""
    above = ""
    for target in machine.states:
        sources: dict[str, list[str]] = {}
        for state in machine.states:
            for move in state.moves:
                if move.target == target.name != state.name:
                    for reason in move.reasons or ("",):
                        sources.setdefault(reason, []).append(state.name)
        together: dict[str, list[str]] = {}
        for reason, found in sources.items():
            together.setdefault(_named(machine, target, found) if reason or found != [above] else "", []).append(reason)
        said = _is(target)
        for states, reasons in (together or {"–": [""]}).items():
            yield said, states, listed([_marked(each) for each in reasons])
            said = ""
        above = target.name


def _named(machine: Machine, target: State, states: Sequence[str]) -> str:
    """The states, or all others but some, whichever is shorter."""
    others = [state.name for state in machine.states if state is not target and state.name not in states]
    but = f"all but {', '.join(others)}" if others else "all others"
    return but if len(others) + 2 < len(states) else ", ".join(states)


def _marked(reason: str) -> str:
    """Names of the code in backquotes."""
    return re.sub(r"^[A-Z]\w*[a-z]\w*(?=$|: )", r"`\g<0>`", reason)


def answers(found: Answers) -> str:
    """Every request in every state, those with the same answers together. Before the table stands what it leaves out:
    the most frequent refusal, and a state that answers nearly everything alike.
    """
    rows = found.rows
    usual = _most_frequent(answer for row in rows.values() for answer in row.values() if answer.isupper())
    said, states = [f"An empty cell is {_answer(usual)}."], []
    for state in next(iter(rows.values())):
        alike = _most_frequent(row[state] for row in rows.values())
        others: dict[str, list[str]] = {}
        for request, row in rows.items():
            if row[state] != alike:
                others.setdefault(row[state], []).append(f"*{request}*")
        if sum(map(len, others.values())) * 5 > len(rows):
            states.append(state)
            continue
        but = "; ".join(f"{_answer(answer)} to {', '.join(requests_)}" for answer, requests_ in others.items())
        said.append(f"In {state} every answer is {_answer(alike)}, but {but}.")
    together: dict[tuple[str, ...], list[str]] = {}
    for request, row in rows.items():
        told = ("" if row[state] == usual else _answer(row[state]) for state in states)
        together.setdefault(tuple(told), []).append(request)
    table = markdown_table(("request", *states), [("; ".join(names), *told) for told, names in together.items()])
    return folded("Every request in every state", " ".join(said), table)


def _most_frequent(answers_: Iterable[str]) -> str:
    return Counter(answers_).most_common(1)[0][0]


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
    return "\n".join(f"- `{name}` ({', '.join(of)}): {meaning}" for (name, meaning), of in sorted(members.items()))


def _meaning(event: type) -> str:
    said = " ".join((inspect.getdoc(event) or "").split("\n\n")[0].split())
    return said.replace("`deadline` in `member`", "`deadline`")


def files() -> Mapping[Path, str]:
    """The page and its pictures."""
    places = {
        "classic-answers": answers(requests.classic()),
        "server-answers": answers(requests.server()),
        "consumer-answers": answers(consumer_requests.answers()),
        "events": events(),
        **{machine.name: figure(machine) for machine in machines()},
    }
    pictures = {**machine_picture.pictures(machines()), **machine_map.pictures(machines())}
    return {PAGE: filled(PAGE, places), **{FIGURES / name: content for name, content in pictures.items()}}
