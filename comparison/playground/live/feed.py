"""The feed: what happens in a group, in sentences.

A rebalance touches many partitions within a moment. So facts of the same kind about the same members are gathered until
none has come for a while, and reported as one sentence. Pure: the time comes with the facts, and with `due`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from comparison.playground import messages
from comparison.screen.counted import counted
from comparison.screen.natural_order import natural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

#: Facts of one kind are one sentence if they follow each other within QUIET_MS, and at most for LONGEST_MS.
QUIET_MS, LONGEST_MS = 400, 1500
#: The same for kinds that go on for as long as something else does.
PATIENCE_MS = {"again": (1000, 3000), "refused": (1000, 3000)}
#: A pause in the delivery of a partition that is longer than this is worth noticing.
NOTABLE_MS = 100
#: Why a partition was given up in order.
RELEASED = "released"
#: What the authority is called, by whether a broker coordinates the group.
AUTHORITY = {True: "the coordinator", False: "ZooKeeper"}


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that happened to a partition or a member."""

    kind: str  #: a key of `WORDS`
    members: tuple[str, ...] = ()
    why: str = ""
    partition: str = ""
    number: float = 0


@dataclass(slots=True)
class _Gathered:
    first_ms: int
    last_ms: int
    facts: list[Fact] = field(default_factory=list)


class Feed:
    """Gathers facts that belong together, and makes one sentence of them."""

    def __init__(self, *, coordinated: bool) -> None:
        self._coordinated = coordinated
        self._gathered: dict[tuple[str, tuple[str, ...], str], _Gathered] = {}
        self._said: list[messages.Sentence] = []
        self._ids = 0

    def add(self, at_ms: int, fact: Fact) -> None:
        """Gather a fact; `due` reports it."""
        about = () if fact.kind in _OF_ALL_MEMBERS else fact.members
        gathered = self._gathered.setdefault((fact.kind, about, fact.why), _Gathered(at_ms, at_ms))
        gathered.last_ms = at_ms
        gathered.facts.append(fact)

    def say(
        self, at_ms: int, severity: messages.Severity, text: str, members: tuple[str, ...] = (), partition: str = ""
    ) -> None:
        """Report a sentence at once."""
        self._said.append(
            messages.Sentence(
                id=self._ids, at_ms=at_ms, severity=severity, text=text, members=members, partition=partition
            )
        )
        self._ids += 1

    def due(self, at_ms: int) -> list[messages.Sentence]:
        """The sentences since the last call, in the order in which what they tell began."""
        for key, gathered in list(self._gathered.items()):
            quiet_ms, longest_ms = PATIENCE_MS.get(key[0], (QUIET_MS, LONGEST_MS))
            if at_ms - gathered.last_ms >= quiet_ms or at_ms - gathered.first_ms >= longest_ms:
                del self._gathered[key]
                self._tell(gathered)
        said, self._said = sorted(self._said, key=lambda each: (each.at_ms, each.id)), []
        return said

    def _tell(self, gathered: _Gathered) -> None:
        first = gathered.facts[0]
        severity, text = WORDS[first.kind](gathered.facts, self._coordinated)
        partitions = {fact.partition for fact in gathered.facts}
        members = dict.fromkeys(member for fact in gathered.facts for member in fact.members)
        self.say(gathered.first_ms, severity, text, tuple(members), partitions.pop() if len(partitions) == 1 else "")


# -- words -------------------------------------------------------------------------------------------------------------


def listed(names: Iterable[str], most: int = 3) -> str:
    """`orders-1`, `orders-1 and orders-2`, `orders-1, orders-2 and 4 more`."""
    found = sorted(dict.fromkeys(names), key=natural)
    if len(found) > most:
        found = [*found[: most - 1], f"{len(found) - most + 1} more"]
    *head, last = found
    return f"{', '.join(head)} and {last}" if head else last


def seconds(ms: float) -> str:
    """`20 ms`, `1.4 s`, `12 s`."""
    return f"{ms:.0f} ms" if ms < NOTABLE_MS else f"{ms / 1000:.1f} s" if ms < 10_000 else f"{ms / 1000:.0f} s"


def _partitions(facts: list[Fact]) -> tuple[str, str]:
    """The partitions of facts, and the pronoun for them."""
    names = {fact.partition for fact in facts}
    return listed(names), "it" if len(names) == 1 else "them"


def _handed_over(facts: list[Fact], coordinated: bool) -> tuple[messages.Severity, str]:
    old, new = facts[0].members[0], facts[0].members[-1]
    names, them = _partitions(facts)
    longest = max(fact.number for fact in facts)
    severity = messages.Severity.NOTICE if longest >= NOTABLE_MS else messages.Severity.INFO
    for_ = (
        f"for {seconds(longest)}"
        if len({round(fact.number) for fact in facts}) == 1
        else f"for up to {seconds(longest)}"
    )
    if facts[0].why != RELEASED:
        return severity, f"{old} {facts[0].why}: nobody delivered {names} {for_}, until {new} took over"
    if coordinated:
        return severity, f"{old} revoked {names} before {new} was assigned {them}: nobody delivered {them} {for_}"
    return severity, f"{old} released {names} before {new} had claimed {them}: unowned {for_}"


def _stopped(facts: list[Fact], _: bool) -> tuple[messages.Severity, str]:
    names, them = _partitions(facts)
    longest = max(fact.number for fact in facts)
    members = listed(member for fact in facts for member in fact.members)
    severity = messages.Severity.NOTICE if longest >= NOTABLE_MS else messages.Severity.INFO
    up_to = "" if len(facts) == 1 else "up to "
    return (
        severity,
        f"{members} stopped and resumed {names}: nobody delivered {them} for {up_to}{seconds(longest)}",
    )


def _nobody(facts: list[Fact], _: bool) -> tuple[messages.Severity, str]:
    names, them = _partitions(facts)
    old, why = facts[0].members[0], facts[0].why
    if why == RELEASED:
        why = f"released {them}"
    return messages.Severity.NOTICE, f"nobody has delivered {names} since {old} {why}"


def _two(facts: list[Fact], _: bool) -> tuple[messages.Severity, str]:
    names, them = _partitions(facts)
    who, why = facts[0].members, facts[0].why
    ended = [fact.number for fact in facts if fact.number]
    if ended:
        return messages.Severity.NOTICE, f"{listed(who)} {_both(who)} had {names} for {seconds(max(ended))}"
    if why:
        return messages.Severity.ALARM, f"{why} is cut off, but still delivers {names}: two members deliver {them}"
    return messages.Severity.ALARM, f"{listed(who)} {_both(who)} deliver {names}"


def _both(members: tuple[str, ...]) -> str:
    return "both" if len(members) == 2 else "all"


def _one_again(facts: list[Fact], _: bool) -> tuple[messages.Severity, str]:
    names, _them = _partitions(facts)
    longest = max(fact.number for fact in facts)
    return messages.Severity.INFO, f"{names}: one member again, after {seconds(longest)} with two"


def _moved_back(facts: list[Fact], coordinated: bool) -> tuple[messages.Severity, str]:
    names, _them = _partitions(facts)
    records = sum(fact.number for fact in facts)
    return (
        messages.Severity.ALARM,
        f"{facts[0].members[0]} committed an older offset of {names}, and {AUTHORITY[coordinated]} took it: "
        f"moved back by {counted(records, 'record')}",
    )


def _refused(facts: list[Fact], coordinated: bool) -> tuple[messages.Severity, str]:
    names, _them = _partitions(facts)
    why = f" ({facts[0].why})" if facts[0].why else ""
    return messages.Severity.NOTICE, f"{AUTHORITY[coordinated]} refused {facts[0].members[0]}'s commit of {names}{why}"


def _again(facts: list[Fact], _: bool) -> tuple[messages.Severity, str]:
    names, _them = _partitions(facts)
    records = sum(fact.number for fact in facts)
    return messages.Severity.INFO, f"{facts[0].members[0]} delivered {counted(records, 'record')} of {names} again"


def _woken(facts: list[Fact], _: bool) -> tuple[messages.Severity, str]:
    per_member = Counter(member for fact in facts for member in fact.members)
    return (
        messages.Severity.INFO,
        f"ZooKeeper woke {listed(per_member)} with {counted(per_member.total(), 'notification')}",
    )


def _rebalancing(facts: list[Fact], _: bool) -> tuple[messages.Severity, str]:
    members = {member for fact in facts for member in fact.members}
    return messages.Severity.INFO, f"{listed(members)} {'rebalances' if len(members) == 1 else 'rebalance'}"


def _conflict(facts: list[Fact], coordinated: bool) -> tuple[messages.Severity, str]:
    found = {member for fact in facts for member in fact.members}
    members = listed(found)
    if coordinated:
        joining = "was joining: it joins again" if len(found) == 1 else "were joining: they join again"
        return messages.Severity.INFO, f"the group changed while {members} {joining}"
    return (
        messages.Severity.INFO,
        f"{members} found a partition still claimed by another member; retrying after a backoff",
    )


def _of_members(
    text: str, severity: messages.Severity = messages.Severity.INFO
) -> Callable[[list[Fact], bool], tuple[messages.Severity, str]]:
    def as_sentence(facts: list[Fact], coordinated: bool) -> tuple[messages.Severity, str]:
        named = [member for fact in facts for member in fact.members]
        members = listed(named) if named else ""
        return severity, text.format(members=members, authority=AUTHORITY[coordinated], why=facts[0].why)

    return as_sentence


#: Facts of these kinds are reported together, whichever members they are about.
_OF_ALL_MEMBERS = frozenset({"woken", "rebalancing", "left", "conflict", "stopped"})

WORDS: Mapping[str, Callable[[list[Fact], bool], tuple[messages.Severity, str]]] = {
    "handed over": _handed_over,  # members: old, new; why: released, or how the old one was lost; number: ms
    "stopped": _stopped,  # by the same member, which resumed it
    "nobody": _nobody,  # members: old; why: as above
    "two": _two,  # members: those who deliver; why: the one that is cut off, if any; number: ms, if it is over already
    "one again": _one_again,  # number: ms
    "moved back": _moved_back,  # number: records
    "refused": _refused,  # why: the error
    "again": _again,  # number: records
    "woken": _woken,
    "rebalancing": _rebalancing,
    "begins": _of_members("{authority} begins a rebalance: {why}"),
    "left": _of_members("{authority} no longer lists {members} ({why})"),
    "conflict": _conflict,
    "gave up": _of_members(
        "{members} gave up after its last attempt: it delivers nothing until the next change", messages.Severity.NOTICE
    ),
    "failed": _of_members("{members}: {why}", messages.Severity.NOTICE),
}
