"""One round of rebalances as a Mermaid sequence diagram, made from the lines of its members.

An arrow is a run of requests of one kind, at the time of the first answer; one that was refused ends in a cross.
Reads and writes have no arrow back: the answer is in the label where it was a refusal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.report.steps import Line, briefly, departures, lines_of, merged
from comparison.report.story import AFTER

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from comparison.report.story import MemberRebalance, Story

_ZOOKEEPER = "zk"
#: Steps that have a name instead of a number.
_OUTSIDE = {"register": "registers:", "subscribe": "listens:", "delivery": "listens again:", AFTER: "leaders:"}
_ARROWS = {"read": "->>", "write": "->>", "refused": "-x", "broker": "->>"}


def sequence(story: Story, rebalances: Sequence[MemberRebalance], *, brief: bool = False) -> str:
    """The diagram's text. Times are milliseconds since its first line; `brief` is one arrow a step."""
    told = [lines_of(story, each) for each in rebalances]
    lines = merged([departures(story, rebalances), *(map(briefly, told) if brief else told)])
    zero_ns = lines[0].began_ns
    aliases = _Aliases([member.name for member in story.members], lines)
    messages = (_message(line, aliases, (line.began_ns - zero_ns) / 1e6) for line in lines)
    return "\n".join(["sequenceDiagram", *aliases.participants(), *(f"    {message}" for message in messages)]) + "\n"


class _Aliases:
    """Mermaid's names of the participants: members in their order, ZooKeeper, brokers by id."""

    def __init__(self, names: Sequence[str], lines: Sequence[Line]) -> None:
        there = {line.member for line in lines if line.member}
        self._members = {name: f"p{place}" for place, name in enumerate(names, start=1) if name in there}
        self._brokers = sorted({line.broker for line in lines if line.kind == "broker"})

    def participants(self) -> Iterable[str]:
        for name, alias in self._members.items():
            yield f"    participant {alias} as {escaped(name)}"
        yield f"    participant {_ZOOKEEPER} as ZooKeeper"
        for node in self._brokers:
            yield f"    participant {self.broker(node)} as {_broker_name(node)}"

    def member(self, name: str) -> str:
        return self._members[name]

    def broker(self, node: int) -> str:
        return "any" if node < 0 else f"b{node}"


def _broker_name(node: int) -> str:
    return "a broker" if node < 0 else f"broker {node}"


def _message(line: Line, aliases: _Aliases, at_ms: float) -> str:
    if line.kind == "left":
        return f"Note over {_ZOOKEEPER}: {escaped(line.what)}<br/>{at_ms:.1f} ms"
    member = aliases.member(line.member)
    if line.kind == "did":
        return f"Note over {member}: {escaped(_labelled(line))}<br/>{at_ms:.1f} ms"
    if line.kind == "told":
        return f"{_ZOOKEEPER}--){member}: {escaped(line.what)}"
    if line.kind == "broker":
        many = f" x {line.count}" if line.count > 1 else ""
        return f"{member}->>{aliases.broker(line.broker)}: {escaped(line.what)}{many}"
    return f"{member}{_ARROWS[line.kind]}{_ZOOKEEPER}: {escaped(_labelled(line))}"


def _labelled(line: Line) -> str:
    named = _OUTSIDE.get(line.step, line.step) if line.kind != "did" else ""
    return f"{named} {line.what}".strip()


def escaped(text: str) -> str:
    """What Mermaid would take for its own syntax as character codes."""
    return "".join(f"#{ord(char)};" if char in '#;<>{}"\\%' or not char.isprintable() else char for char in text)
