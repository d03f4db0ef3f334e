"""One rebalance as a conversation: who asked, answered and was notified, from the events that the analysis kept.

The lines are those of `diagram --show sequence`, and so are the numbers of the rebalances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.report.history.exchanges import coordination, member_lines, without_details
from comparison.report.history.group_history import history_of
from comparison.report.history.steps import briefly, departures, merged
from comparison.report.view.model import ANSWER, NOTE, REFUSED, REQUEST, WATCH, Conversation, Message
from comparison.report.view.naming import LETTERS_MAX
from kernel.decimals import decimal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from comparison.report.history.group_history import Event, GroupHistory, Round
    from comparison.report.history.steps import Line

#: A conversation of more members or with more messages shows the first ones.
MEMBERS_MAX, MESSAGES_MAX = 6, 80
#: Of a run's conversations, so many have messages.
DESCRIBED_MAX = 40
ZOOKEEPER = "ZooKeeper"
#: A notification is not older than this.
_NOTICE_NS = 2_000_000_000
_NS_PER_MS = 1e6


def conversations_of(events: tuple[Event, ...], design: str, zero_ms: float = 0.0) -> tuple[Conversation, ...]:
    """The conversations of a run's events, in the order of time.

    Of many, the first that end after `zero_ms`, and then the first ones, have their messages.
    """
    if not events:
        return ()
    history = history_of(events, design)
    moments = _changes(history.events)
    later = sorted(history.rounds, key=lambda each: each.ended_ns / _NS_PER_MS <= zero_ms)
    described = {each.number for each in later[:DESCRIBED_MAX]}
    return tuple(_conversation(history, each, moments if each.number in described else None) for each in history.rounds)


def _changes(events: Iterable[Event]) -> Mapping[int, int]:
    """When each change of ZooKeeper was first known to have been made, by zxid."""
    found: dict[int, int] = {}
    for event in events:
        zxid = 0
        if event["kind"] == "zk_op" and event["ok"]:
            zxid = event.get("zxid") or 0
        elif event["kind"] in ("group_member_joined", "group_member_left"):
            zxid = decimal(str(event["cause"]).removeprefix("zxid:")) or 0
        if zxid:
            found[zxid] = min(event["ns"], found.get(zxid, event["ns"]))
    return found


def _conversation(history: GroupHistory, round_: Round, moments: Mapping[int, int] | None) -> Conversation:
    names = list(dict.fromkeys(each.member.name for each in round_.rebalances))
    lines = [] if moments is None else _lines(history, round_, names[:MEMBERS_MAX])
    messages = tuple(_messages(lines[:MESSAGES_MAX], moments or {}))
    ends = dict.fromkeys(name for each in messages for name in (each.sender, each.receiver) if name)
    members = [name for name in (_short(member.name) for member in history.members) if name in ends]
    coordinators = {_broker(line.broker) for line in lines if line.kind in ("asks", "answer", "state")}
    others = sorted(ends.keys() - set(members), key=lambda name: (name not in coordinators, name != ZOOKEEPER, name))
    generations = {number for each in round_.rebalances if (number := each.generation()) is not None}
    return Conversation(
        number=round_.number,
        from_ms=round_.began_ns / _NS_PER_MS,
        until_ms=round_.ended_ns / _NS_PER_MS,
        generations=tuple(sorted(generations)),
        causes=_causes(round_),
        actors=(*dict.fromkeys(members), *others),
        messages=messages,
        members_left_out=tuple(map(_short, names[MEMBERS_MAX:])),
        messages_left_out=len(lines) - len(messages),
    )


def _lines(history: GroupHistory, round_: Round, names: Sequence[str]) -> list[Line]:
    """What these members and the brokers did, as `diagram` has it."""
    rebalances = [each for each in round_.rebalances if each.member.name in names]
    by_member = [member_lines(history, each) for each in rebalances]
    if len(names) > 1:
        by_member = [without_details(lines) if history.coordinated else briefly(lines) for lines in by_member]
    if history.coordinated:
        by_member.append(coordination(history, rebalances))
    return merged([departures(history, rebalances), *by_member])


def _causes(round_: Round) -> str:
    """`m2: session; m1, m3: members`, in the order in which they began."""
    by_trigger: dict[str, dict[str, None]] = {}
    for each in sorted(round_.rebalances, key=lambda each: each.began_ns):
        by_trigger.setdefault(each.trigger, {})[_short(each.member.name)] = None
    return "; ".join(f"{_listed(list(names))}: {trigger}" for trigger, names in by_trigger.items())


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MEMBERS_MAX
    return ", ".join(names[:MEMBERS_MAX]) + (f" and {more} more" if more > 0 else "")


def _short(name: str) -> str:
    return name if len(name) <= LETTERS_MAX else f"…{name[1 - LETTERS_MAX :]}"


def _messages(lines: Sequence[Line], moments: Mapping[int, int]) -> Iterator[Message]:
    last_ns: dict[str, int] = {}  # of each actor: when it can first have sent something else
    for line in lines:
        actor = _short(line.member) if line.member else _broker(line.broker)
        sent_ns, arrived_ns = line.began_ns, line.ended_ns
        kind, sender, receiver = _ends(line, actor)
        if line.kind == "asks":
            arrived_ns = sent_ns  # and its answer is a line of its own
        elif kind in (REQUEST, REFUSED):
            sent_ns = max(last_ns.get(actor, sent_ns), sent_ns - _NOTICE_NS)
        elif kind == WATCH:
            changed_ns = moments.get(line.zxid, arrived_ns)
            sent_ns = changed_ns if 0 <= arrived_ns - changed_ns < _NOTICE_NS else arrived_ns
        last_ns[actor] = max(arrived_ns, last_ns.get(actor, arrived_ns))
        text = f"{line.step} {line.what}" if line.step[:1] == "R" and kind != NOTE else line.what
        many = f" x {line.count}" if line.kind in ("broker", "asks") and line.count > 1 else ""
        sent_ms, arrived_ms = min(sent_ns, arrived_ns) / _NS_PER_MS, arrived_ns / _NS_PER_MS
        yield Message(sent_ms, arrived_ms, kind, sender, receiver, text + many)


def _ends(line: Line, actor: str) -> tuple[str, str, str]:
    """The kind of a message, its sender and its receiver."""
    match line.kind:
        case "left":
            return NOTE, ZOOKEEPER, ""
        case "did" | "state":
            return NOTE, actor, ""
        case "notified":
            return WATCH, ZOOKEEPER, actor
        case "answer":
            return ANSWER, _broker(line.broker), actor
        case "asks" | "broker":
            return REQUEST, actor, _broker(line.broker)
        case "refused":
            return REFUSED, actor, ZOOKEEPER
    return REQUEST, actor, ZOOKEEPER


def _broker(node: int) -> str:
    return "a broker" if node < 0 else f"broker {node}"
