"""One round of rebalances as a Mermaid sequence diagram, made from the lines of its members.

An arrow is a run of requests of one kind, at the time of the first response; a refused one ends in a cross. Reads and
writes have no arrow back: a refusal is in the label. A request that waits at a coordinator has one arrow when it is
sent, and a dashed one when it is answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.report.history.exchanges import coordination, member_lines, without_details
from comparison.report.history.rebalance_context import AFTER
from comparison.report.history.steps import Line, briefly, departures, merged

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from comparison.report.history.group_history import GroupHistory, MemberRebalance

_ZOOKEEPER = "zk"
#: Steps with a name instead of a number.
_OUTSIDE = {"register": "registers:", "subscribe": "listens:", "delivery": "listens again:", AFTER: "leaders:"}
_AT_ZOOKEEPER = frozenset({"read", "write", "refused", "notified", "left"})
_ARROWS = {"read": "->>", "write": "->>", "refused": "-x"}


def sequence(history: GroupHistory, rebalances: Sequence[MemberRebalance], *, brief: bool = False) -> str:
    """The diagram's text. Times are milliseconds since its first line; `brief` gives one arrow per step."""
    by_member = [member_lines(history, each) for each in rebalances]
    if brief:
        by_member = [without_details(lines) if history.coordinated else briefly(lines) for lines in by_member]
    if history.coordinated:
        by_member.append(coordination(history, rebalances))
    lines = merged([departures(history, rebalances), *by_member])
    zero_ns = lines[0].began_ns
    aliases = _Aliases(history, lines)
    messages = (_message(line, aliases, (line.began_ns - zero_ns) / 1e6) for line in lines)
    return "\n".join(["sequenceDiagram", *aliases.participants(), *(f"    {message}" for message in messages)]) + "\n"


class _Aliases:
    """Mermaid's names of the participants: members in their order, ZooKeeper, brokers by id."""

    def __init__(self, history: GroupHistory, lines: Sequence[Line]) -> None:
        there = {line.member for line in lines if line.member}
        names = [member.name for member in history.members]
        self._members = {name: f"p{place}" for place, name in enumerate(names, start=1) if name in there}
        self._coordinators = sorted({line.broker for line in lines if line.kind in ("asks", "answer", "state")})
        brokers = {line.broker for line in lines if line.kind == "broker" or _is_a_brokers(line)}
        self._others = sorted(brokers.difference(self._coordinators))
        self._zookeeper = not history.coordinated or any(line.kind in _AT_ZOOKEEPER for line in lines)

    def participants(self) -> Iterable[str]:
        """The participants; a coordinator is placed between its members and ZooKeeper."""
        for name, alias in self._members.items():
            yield f"    participant {alias} as {escaped(name)}"
        for node in self._coordinators:
            yield f"    participant {self.broker(node)} as {_broker_name(node)}, coordinator"
        if self._zookeeper:
            yield f"    participant {_ZOOKEEPER} as ZooKeeper"
        for node in self._others:
            yield f"    participant {self.broker(node)} as {_broker_name(node)}"

    def actor(self, line: Line) -> str:
        """The participant of a line."""
        return self._members[line.member] if line.member else self.broker(line.broker)

    def broker(self, node: int) -> str:
        return "any" if node < 0 else f"b{node}"


def _is_a_brokers(line: Line) -> bool:
    return not line.member and line.kind != "left"


def _broker_name(node: int) -> str:
    return "a broker" if node < 0 else f"broker {node}"


def _message(line: Line, aliases: _Aliases, at_ms: float) -> str:
    if line.kind == "left":
        return f"Note over {_ZOOKEEPER}: {escaped(line.what)}<br/>{at_ms:.1f} ms"
    actor = aliases.actor(line)
    if line.kind in ("did", "state"):
        return f"Note over {actor}: {escaped(_labelled(line))}<br/>{at_ms:.1f} ms"
    if line.kind == "notified":
        return f"{_ZOOKEEPER}--){actor}: {escaped(line.what)}"
    if line.kind == "answer":
        return f"{aliases.broker(line.broker)}-->>{actor}: {escaped(line.what)}"
    if line.kind in ("broker", "asks"):
        many = f" x {line.count}" if line.count > 1 else ""
        return f"{actor}->>{aliases.broker(line.broker)}: {escaped(line.what)}{many}"
    return f"{actor}{_ARROWS[line.kind]}{_ZOOKEEPER}: {escaped(_labelled(line))}"


def _labelled(line: Line) -> str:
    named = _OUTSIDE.get(line.step, line.step) if line.kind != "did" else ""
    return f"{named} {line.what}".strip()


def escaped(text: str) -> str:
    """Write Mermaid's own syntax as character codes."""
    return "".join(f"#{ord(char)};" if char in '#;<>{}"\\%' or not char.isprintable() else char for char in text)
