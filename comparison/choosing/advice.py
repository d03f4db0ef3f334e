"""Which design a choice comes to, in a sentence with its reason; what it leaves out; and what would answer the rest."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from comparison.choosing.choice import EVENTS, Tolerated, limits
from comparison.choosing.costs import (
    REPEATS,
    REQUESTS,
    STANDSTILL,
    STANDSTILL_IN_ALL,
    STOPPED,
    slow_record,
)
from comparison.screen.brief_number import brief, brief_range
from kernel.designs import DESIGNS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from comparison.choosing.choice import DesignCosts, Group
    from comparison.choosing.costs import Bounds, Costs
    from kernel.designs import Design

#: The largest groups that are run as a whole.
MEMBERS_MAX, PARTITIONS_MAX = 200, 1000
_SIMULATED = (
    "live machines and networks: the runs are simulated, between processes of one machine; a live run waits for disks "
    "and cores as well"
)
_ONE_SEED = (
    "what chance does: there is one run of each, and a range reaches over sizes of the group and over an interval of "
    "the timers, not over seeds"
)
_ALWAYS = (
    "that chance evens out: each bound of many events is that of one, at its best or worst moment, times their number",
    "starts that take longer: in a deploy a process is back a second after it has left, and with group.instance.id its "
    "partitions stand still for as long as it is away",
    "events that come together: each is measured in a group that is otherwise at rest. Where a rebalance waits for all "
    "members it also waits for a slow record, in each rebalance of a deploy: count those that meet one in --slow-joins",
    "other clients: Java, librdkafka and others have their own polls, retries and strategies",
    "transactions, rebalance listeners that take long, several topics, and losses of brokers or ZooKeeper servers",
)
#: Figures in words. One decides only after those before it.
ORDER: Mapping[str, str] = MappingProxyType(
    {
        STANDSTILL: "longest standstill",
        STANDSTILL_IN_ALL: "standstill of all partitions",
        STOPPED: "partitions stopped",
        REPEATS: "records repeated",
        REQUESTS: "requests at the authority",
    }
)
RULE = (
    f"The rule: in the order {', '.join(ORDER.values())}, a design drops out where its whole range lies above "
    "another's; the one that is left is chosen."
)


def advice(found: Sequence[DesignCosts], tolerated: Tolerated) -> tuple[str, str]:
    """What to choose, and why, in sentences; `found` are the weeks of the designs. Only if the runs decide, one is."""
    if not any(each.is_known for each in found):
        return "Nobody can say: no run covers this week in any design.", ""
    usable = [each for each in found if not why_left_out(each.design)]
    judged = tolerated != Tolerated()
    able = [each for each in usable if each.is_known and each.meets]
    doubtful = [each for each in usable if each not in able and each.meets is not False]
    said = []
    if judged:
        words = {True: "surely met by", False: "surely missed by", None: "it cannot be said of"}
        by_word = {what: [each for each in found if each.meets is meets] for meets, what in words.items()}
        groups = [f"{what} {_names(those)}" for what, those in by_word.items() if those]
        said.append(f"What you tolerate: {'; '.join(groups)}.")
    elif doubtful:
        said.append(f"No run covers this week in {_names(doubtful)}.")
    why: list[str] = []
    if able:
        choice, *why = _decided(able, " that surely meet it" if judged else "")
        said.append(choice)
    elif doubtful:
        said.append(f"Cannot say which to choose: in the way {_in_the_way(doubtful, tolerated)}.")
    else:
        said.append(
            "No design of today's consumers meets what you tolerate in these runs: tolerate more, have fewer of the "
            "events, or sweep with other timers and choose --from that."
        )
    return " ".join(said), " ".join([*why, *_left_out(found)])


def left_out(costs: Costs) -> list[str]:
    """What the runs behind a choice do not show."""
    timers = (
        f"timers other than those of the runs: sessions of {3 * costs.heartbeat_s:g} s, and of 10 s in deploys; a "
        "crash stands still for about a session, whatever the design"
    )
    is_single = all(cell.runs == 1 for cell in costs.cells)
    applies = {_SIMULATED: costs.simulated, timers: True, _ONE_SEED: is_single}
    return [*(text for text, does in applies.items() if does), *_ALWAYS]


def in_a_client(designs: Iterable[str]) -> dict[str, str]:
    """What gives a client of today each of these designs that it can have."""
    return {name: _settings(DESIGNS[name]) for name in designs if name in DESIGNS and not why_left_out(name)}


def _settings(design: Design) -> str:
    if design.static_membership:
        return (
            "group.instance.id, here with range, where a process comes back under its name before its session ends; "
            "until it is back its partitions stand still. The others can have it, too"
        )
    if design.reconciles:
        return "group.protocol=consumer"
    return f"partition.assignment.strategy {design.strategy or 'range, as here, or sticky'}"


def why_left_out(design: str) -> str:
    """Why no consumer of today's Kafka clients has the design; '' if they have it."""
    row = DESIGNS.get(design)
    if row is not None and row.zookeeper_sessions:
        return "no consumer of today's Kafka clients has ZooKeeper sessions"
    return "only Kafka Connect delays reassignments" if row is not None and row.delays_reassignment else ""


def _left_out(found: Sequence[DesignCosts]) -> list[str]:
    by_reason: dict[str, list[DesignCosts]] = {}
    for each in found:
        if why := why_left_out(each.design):
            by_reason.setdefault(why, []).append(each)
    texts = [f"{_names(those)} ({why})" for why, those in by_reason.items()]
    return [f"Not advised: {'; '.join(texts)}."] if texts else []


def _in_the_way(doubtful: Sequence[DesignCosts], tolerated: Tolerated) -> str:
    """The figures that may be more than is tolerated, each in the design whose range ends lowest."""
    texts = []
    for metric, limit in limits(tolerated).items():
        known = [(bounds, each.design) for each in doubtful if (bounds := each.figures[metric].bounds)]
        if len(known) < len(doubtful) or any(bounds.high > limit for bounds, _ in known):
            bounds, design = min(known, key=lambda each: each[0].high, default=(None, ""))
            at_best = f", at best {_range(bounds)} in {design}" if bounds else ", which no run covers"
            texts.append(f"{ORDER[metric]} ({brief(limit)} tolerated{at_best})")
    return f"{'are' if len(texts) > 1 else 'is'} {' and '.join(texts) or 'standstill, which no run covers'}"


def _decided(able: Sequence[DesignCosts], those: str) -> list[str]:
    """The choice among designs, and what each figure before it decided."""
    if len(able) == 1:
        return [f"Choose {able[0].design}: the only one of today's consumers{those}."]
    left = list(able)
    steps: list[str] = []
    even: list[str] = []
    for metric, words in ORDER.items():
        known = {each.design: bounds for each in left if (bounds := each.figures[metric].bounds)}
        lowest = min((bounds.high for bounds in known.values()), default=0.0)
        dropped = [each for each in left if known[each.design].low > lowest] if len(known) == len(left) else []
        if not dropped:
            even.append(words)
            continue
        steps += [_even(even, left)] if even else []
        left = [each for each in left if each not in dropped]
        if len(left) == 1:
            best, after = left[0].design, min(dropped, key=lambda each: known[each.design].middle).design
            one = f"Choose {best} of {_names(able)}{those}, by {words}: {_text(known[best])} a week"
            return [f"{one}; next is {after} with {_text(known[after])}.", *steps, RULE]
        steps.append(f"By {words} {_names(dropped)} {'drops' if len(dropped) == 1 else 'drop'} out.")
        even = [words]
    return [f"Cannot say which of {_names(left)} to choose.", *steps, _even(even, left), RULE]


def _even(words: Sequence[str], left: Sequence[DesignCosts]) -> str:
    return f"By {', '.join(words)} the runs do not tell {_names(left)} apart."


def _names(designs: Sequence[DesignCosts]) -> str:
    return ", ".join(each.design for each in designs)


def _text(bounds: Bounds) -> str:
    return f"{brief(bounds.middle)} ({_range(bounds)})"


def _range(bounds: Bounds) -> str:
    return brief_range(bounds.low, bounds.high, " to ")


def answering_command(events: Mapping[str, float], group: Group, designs: Sequence[str]) -> str:
    """The sweep that would answer for a group outside of the grid; '' if it is too large for runs of everything."""
    if group.members > MEMBERS_MAX or group.partitions > PARTITIONS_MAX:
        return ""
    scenarios: list[str] = []
    for each in EVENTS:
        if events.get(each.name):
            scenarios += each.scenarios or (slow_record(group.slowest_record_s),)
    return (
        f"rebalance-lab sweep --simulated --grid scenario={','.join(dict.fromkeys(scenarios))} "
        f"--grid design={','.join(designs)} --grid members={group.members} --grid partitions={group.partitions} "
        "--seeds 2 -o runs/choice"
    )
