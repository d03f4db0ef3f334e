"""Why members own nothing, in sentences: what brokers and ZooKeeper say about a group in, reasons out. Pure.

`group_readers` asks. What keeps a member from everything comes first, and alone: without a broker nobody knows
the topics, and without a coordinator there is no group.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from comparison.group_readers.columns import Keeper, PatternKind, Subscribed
from comparison.screen.counted import counted
from kernel.designs import DESIGNS
from kernel.errors import UserError
from kernel.java_regex import compiled
from kernel.suggestions import did_you_mean
from kernel.topic_names import INTERNAL_TOPICS, OFFSETS_TOPIC
from zkconsumer.znodes.filters import cleaned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from comparison.group_readers.columns import GroupSeen

#: How many topics a sentence names.
_NAMED_MAX = 3
#: What to write instead of a pattern that matches nothing, and what is wrong with it; the first that matches is meant.
_REWRITES: tuple[tuple[Callable[[str], str], str], ...] = (
    (lambda pattern: pattern.replace(",", "|"), "A comma is no `or` in this design"),
    (
        lambda pattern: re.sub(r"(?<![.)\]\\])\*", ".*", pattern).replace("?", "."),
        "In a regular expression * repeats what stands before it",
    ),
    (lambda pattern: f"{pattern.removesuffix('$')}.*", "A pattern must match the whole name"),
    (lambda pattern: f".*{pattern.removeprefix('^')}", "A pattern must match the whole name"),
    (lambda pattern: f".*{pattern.removeprefix('^').removesuffix('$')}.*", "A pattern must match the whole name"),
    (lambda pattern: f"(?i){pattern}", "A pattern distinguishes upper and lower case"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """Streams that own nothing, all with one subscription. `who` says whose they are, in a sentence's beginning."""

    subscribed: Subscribed
    idle: int = 1
    streams: int = 1
    who: str = "this consumer"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFacts:
    """What could be asked about a group and its cluster."""

    group: str
    unreachable: str = ""  #: why nothing else is known
    lookup_error: str = ""  #: Kafka's error of FindCoordinator
    lookup_message: str = ""  #: the broker's words about it
    brokers: int | None = None  #: that are running
    topics: Mapping[str, int] | None = None  #: all of them, with their numbers of partitions
    seen: GroupSeen | None = None


def blocked(facts: GroupFacts) -> tuple[str, ...]:
    """What keeps all members of a group from going on, whatever they own; empty if nothing is known to."""
    if facts.unreachable:
        return (facts.unreachable,)
    if facts.brokers == 0:
        return ("no broker is registered in ZooKeeper. Start one with `rebalance-lab broker`",)
    return (no_coordinator(facts),) if facts.lookup_error else ()


def reasons(idle: Idle, facts: GroupFacts, design: str = "") -> tuple[str, ...]:
    """Why these streams own nothing; never empty."""
    if found := blocked(facts):
        return found
    if missing := tuple(_missing(idle.subscribed, facts.topics)):
        return missing
    return tuple(_in_the_group(idle, facts, design)) or (_state(facts),)


def unsent(topic: str, error: str, topics: Mapping[str, int], leaderless: Sequence[int]) -> str:
    """Why records of a producer are not stored; `error` is Kafka's, of the topic's metadata."""
    if not topics.get(topic):
        meant = did_you_mean(topic, [name for name in topics if name not in INTERNAL_TOPICS]) or "."
        refused = f" ({error})" if error else ""
        return (
            f"topic {topic!r} does not exist, and the brokers do not create it{refused}{meant} `rebalance-lab topic "
            f"create {topic}` creates it; brokers do with auto.create.topics.enable=true"
        )
    if leaderless:
        numbers = ", ".join(map(str, leaderless))
        return f"no leader of topic {topic!r}, partition {numbers}: the brokers that have its records are not running"
    return f"no leader of topic {topic!r} acknowledges the records"


def has_idle_members(seen: Iterable[GroupSeen]) -> bool:
    """Whether some member of a group owns nothing."""
    return any(not member.owned for each in seen for member in each.members)


def reasons_of_members(facts: GroupFacts) -> tuple[str, ...]:
    """Why members of a group own nothing; none if each owns something."""
    if facts.seen is None:
        return ()
    by_subscription: dict[Subscribed, list[str]] = {}
    for each in facts.seen.members:
        if not each.owned:
            by_subscription.setdefault(each.subscribed, []).append(each.member)
    found: list[str] = []
    for subscribed, members in by_subscription.items():
        who = f"member {members[0]}" if len(members) == 1 else f"{len(members)} members"
        found += reasons(Idle(subscribed=subscribed, who=who), facts)
    return tuple(dict.fromkeys(found))


def no_coordinator(facts: GroupFacts) -> str:
    """That a group has no coordinator, why, and what to do where that is known."""
    return f"group {facts.group!r} has no coordinator: {lookup_failure(facts)}"


def lookup_failure(facts: GroupFacts) -> str:
    """Why no coordinator was found, in the broker's words, and what to do where that is known."""
    fact = facts.lookup_error + (f" ({facts.lookup_message})" if facts.lookup_message else "")
    if facts.topics is None or OFFSETS_TOPIC in facts.topics or not facts.brokers:
        return fact
    return (
        f"{fact}. {OFFSETS_TOPIC} does not exist: it needs as many brokers as offsets.topic.replication.factor says, "
        f"and {counted(facts.brokers, 'broker')} can be reached. Start more, or set a smaller factor"
    )


# -- topics ----------------------------------------------------------------------------------------------------------


def _missing(subscribed: Subscribed, topics: Mapping[str, int] | None) -> Iterator[str]:
    """Why no topic of a subscription exists, or which do not."""
    if topics is None:
        return
    public = [name for name in topics if name not in INTERNAL_TOPICS]
    for name in subscribed.topics:
        if not topics.get(name):
            meant = did_you_mean(name, public) or "."
            yield f"topic {name!r} does not exist{meant} `rebalance-lab topic create {name}` creates it"
    if subscribed.pattern and _known_to_match(subscribed, topics) == []:
        yield _unmatched(subscribed, public)


def _known_to_match(subscribed: Subscribed, topics: Iterable[str]) -> list[str] | None:
    """The topics that a pattern selects, without internal ones; None if that cannot be said."""
    pattern = subscribed.pattern
    black = subscribed.kind is PatternKind.BLACK_LIST
    if black or subscribed.kind is PatternKind.WHITE_LIST:
        pattern = cleaned(pattern)
    try:
        regex = compiled(pattern)
    except UserError:
        return None
    return [name for name in topics if name not in INTERNAL_TOPICS and (regex.fullmatch(name) is None) is black]


def _unmatched(subscribed: Subscribed, public: Sequence[str]) -> str:
    pattern = subscribed.pattern
    if not public:
        return f"pattern {pattern!r} matches no topic: there is none. `rebalance-lab topic create NAME` creates one"
    if subscribed.kind is PatternKind.BLACK_LIST:
        return f"blacklist {pattern!r} excludes every topic: {_listed(public)}"
    fact = f"pattern {pattern!r} matches no topic of {_listed(public)}"
    for rewrite, wrong in _REWRITES:
        written = rewrite(pattern)
        if written == pattern:
            continue
        meant = _known_to_match(Subscribed(pattern=written, kind=subscribed.kind), public)
        if meant:
            return f"{fact}. {wrong}: did you mean {written!r}, which matches {_listed(meant)}?"
    glob, wrong = _REWRITES[1]
    if glob(pattern) != pattern:
        return f"{fact}. {wrong}: write {glob(pattern)!r} for names of that form"
    return fact


# -- the group -------------------------------------------------------------------------------------------------------


def _in_the_group(idle: Idle, facts: GroupFacts, design: str) -> Iterator[str]:
    seen, topics = facts.seen, facts.topics
    if seen is None or topics is None:
        return
    if gathering := _GATHERING.get(seen.state):
        yield f"group {facts.group!r} {gathering}"
        return
    if design and DESIGNS[design].zookeeper_sessions and seen.keeper is Keeper.COORDINATOR and not seen.members:
        yield (
            f"the coordinator {seen.coordinator} does not see this consumer's znode. Give --zookeeper with the servers "
            "and the chroot of the brokers"
        )
        return
    mine = _selected(idle.subscribed, topics)
    if idle.subscribed == Subscribed():  # not known: what the group has
        mine = tuple(sorted({row.partition.topic for row in seen.partitions} & topics.keys()))
    if left := tuple(_left_claims(seen, mine)):
        yield from left
        return
    sizes = [topics[name] for name in mine]
    sharing = sum(each.streams for each in seen.members if _shares(each.subscribed, topics, mine))
    by_topic = seen.strategy == "range"  # it divides each topic by itself
    room = max(sizes, default=0) if by_topic else sum(sizes)
    if sizes and sharing > room:
        whose = f"{idle.idle} of the {idle.streams} streams of {idle.who}" if idle.streams > 1 else idle.who
        of_each = " of the largest topic" if by_topic and len(sizes) > 1 else ""
        yield (
            f"{counted(room, 'partition')}{of_each} of {_listed(mine)} {'is' if room == 1 else 'are'} shared by "
            f"{counted(sharing, 'stream')} of group {facts.group!r}, which leaves {whose} with nothing"
        )
        return
    owned = {row.partition for row in seen.partitions if row.owner}
    unowned = sum(sizes) - sum(tp.topic in mine for tp in owned)
    if unowned > 0 and sizes:
        yield from _left_over(facts.group, seen, mine, unowned, design)


def _left_claims(seen: GroupSeen, mine: Sequence[str]) -> Iterator[str]:
    """Claims in ZooKeeper of members that are not registered (any more), which keep others from claiming."""
    registered = {member.member for member in seen.members}
    claims = [
        (row.owner.rpartition("-")[0], row) for row in seen.partitions if row.owner and row.partition.topic in mine
    ]
    for owner in dict.fromkeys(member for member, _ in claims if member not in registered):
        count = sum(member == owner for member, _ in claims)
        if seen.keeper is Keeper.ZOOKEEPER:
            yield (
                f"{counted(count, 'partition')} of {_listed(mine)} {'is' if count == 1 else 'are'} claimed by {owner}, "
                "which is not registered: its claims disappear when its ZooKeeper session ends"
            )


def _left_over(group: str, seen: GroupSeen, mine: Sequence[str], unowned: int, design: str) -> Iterator[str]:
    """Why partitions have no owner although the group is not gathering."""
    fact = f"{counted(unowned, 'partition')} of {_listed(mine)} {'has' if unowned == 1 else 'have'} no owner"
    if seen.keeper is Keeper.ZOOKEEPER:
        yield f"{fact}: the members of group {group!r} have not rebalanced, or have given up until the group changes"
    elif not seen.members:
        yield f"{fact}: group {group!r} has no member that has joined"
    elif design and DESIGNS[design].delays_reassignment:
        yield f"{fact}: they wait for a lost member to return, for at most scheduled.rebalance.max.delay.ms"
    elif not design or DESIGNS[design].classic:
        yield f"{fact}: the group's leader looks for new topics and partitions every metadata.max.age.ms"


#: What keeps the members of a group in these states waiting.
_GATHERING: Mapping[str, str] = {
    "PreparingRebalance": "is gathering: its coordinator waits until every known member has joined again, which a slow "
    "one does when it polls, or is removed after max.poll.interval.ms (a first member: group.initial.rebalance."
    "delay.ms)",
    "CompletingRebalance": "has gathered, and waits for its leader's assignment",
    "Assigning": "waits for its coordinator's assignment",
    "Reconciling": "is reconciling: other members must first give up, at their next poll, what this one is to get",
}


def _selected(subscribed: Subscribed, topics: Mapping[str, int]) -> tuple[str, ...]:
    if subscribed.pattern:
        return tuple(_known_to_match(subscribed, topics) or ())
    return tuple(name for name in subscribed.topics if name in topics)


def _shares(theirs: Subscribed, topics: Mapping[str, int], mine: Sequence[str]) -> bool:
    """Whether a member may own partitions of these topics; one whose subscription is not known may."""
    return theirs == Subscribed() or not set(_selected(theirs, topics)).isdisjoint(mine)


def _state(facts: GroupFacts) -> str:
    seen = facts.seen
    if seen is None or not seen.state:
        return f"nothing is known to be in the way of group {facts.group!r}"
    return f"group {facts.group!r} is {seen.state}, with {counted(len(seen.members), 'member')}"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED_MAX
    return ", ".join(map(repr, sorted(names)[:_NAMED_MAX])) + (f" and {more} more" if more > 0 else "")


# -- when to say it --------------------------------------------------------------------------------------------------


class Saying:
    """Says each reason once, as soon as nothing has been owned for a while, and when that is over."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._since_s: float | None = None
        self._said: tuple[str, ...] = ()

    def is_due(self, now_s: float, *, idle: bool) -> bool:
        """Whether it is time to ask for the reasons."""
        if not idle:
            self._since_s = None
            return False
        if self._since_s is None:
            self._since_s = now_s
        return now_s - self._since_s >= self._patience_s

    def new(self, found: Sequence[str]) -> tuple[str, ...]:
        """Those of the present reasons that were not said last time."""
        before, self._said = self._said, tuple(found)
        return tuple(each for each in found if each not in before)

    def over(self) -> bool:
        """Whether reasons were said that no longer hold, as there is nothing left to explain."""
        before, self._said = self._said, ()
        return bool(before)
