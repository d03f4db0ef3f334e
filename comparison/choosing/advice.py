"""Which design a choice comes to, in a sentence with its reason; what it leaves out; and what would answer the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.choosing.choice import EVENTS
from comparison.choosing.costs import REQUESTS, STANDSTILL_IN_ALL, slow_record
from comparison.screen.brief_number import brief
from kernel.designs import DESIGNS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comparison.choosing.choice import DesignCosts, Group
    from comparison.choosing.costs import Bounds

#: The largest groups that are run as a whole.
MEMBERS_MAX, PARTITIONS_MAX = 200, 1000
LEFT_OUT = (
    "live machines and networks: the runs are simulated, between processes of one machine; a live run waits for disks "
    "and cores as well",
    "timers other than those of the runs: sessions of 3 s, and of 10 s in deploys; a crash stands still for about a "
    "session, whatever the design",
    "events that come together: each is measured in a group that is otherwise at rest. Where a rebalance waits for all "
    "members it also waits for a slow record, in each rebalance of a deploy: count those that meet one in --slow-joins",
    "other clients: Java, librdkafka and others have their own polls, retries and strategies",
    "transactions, rebalance listeners that take long, several topics, and losses of brokers or ZooKeeper servers",
)


def advice(found: Sequence[DesignCosts], *, judged: bool) -> str:
    """A sentence or two. `found` are the weeks of the designs; `judged`: not everything is tolerated."""
    known = {each.design: bounds for each in found if (bounds := each.figures[STANDSTILL_IN_ALL].bounds) is not None}
    if not known:
        return "Nobody can say: no run covers this week in any design."
    ranked = sorted(
        (each for each in found if each.design in known), key=lambda each: (known[each.design].middle, _requests(each))
    )
    meeting = " that meet what you tolerate" if judged else ""
    for meets, those in ((True, meeting), (None, " that may meet what you tolerate")):
        able = [each for each in ranked if each.meets is meets]
        usable = [each for each in able if is_of_consumers_today(each.design)]
        if usable:
            return " ".join(_reasons(usable, able, known, those))
    return (
        "No design of today's consumers meets what you tolerate in these runs: tolerate more, have fewer of the "
        "events, or sweep with other timers and choose --from that."
    )


def is_of_consumers_today(design: str) -> bool:
    """Whether consumers of today's Kafka clients have it: none has ZooKeeper sessions, and only Connect delays."""
    row = DESIGNS.get(design)
    return row is None or not (row.zookeeper_sessions or row.delays_reassignment)


def _reasons(
    usable: Sequence[DesignCosts], able: Sequence[DesignCosts], known: Mapping[str, Bounds], those: str
) -> list[str]:
    best = usable[0]
    said = [f"Choose {best.design}: the only one of today's consumers{those}."]
    if len(usable) > 1:
        said = [
            f"Choose {best.design}: of {len(usable)} designs of today's consumers{those}, its partitions stand still "
            f"least, about {_text(known[best.design])} partition-s a week."
        ]
    if best.meets is None:
        said.append(f"It is not certain: {best.because}.")
    if close := [each.design for each in usable[1:] if known[each.design].low <= known[best.design].high]:
        said.append(f"Its range overlaps with that of {', '.join(close)}: between these the runs do not decide.")
    elif usable[1:]:
        said.append(f"Next is {usable[1].design} with {_text(known[usable[1].design])}.")
    if able[0] is not best and not is_of_consumers_today(able[0].design):
        said.append(
            f"{able[0].design} stands still less, {_text(known[able[0].design])}, but no consumer of today's clients "
            "has it."
        )
    return said


def _requests(each: DesignCosts) -> float:
    bounds = each.figures[REQUESTS].bounds
    return float("inf") if bounds is None else bounds.middle


def _text(bounds: Bounds) -> str:
    return f"{brief(bounds.middle)} ({brief(bounds.low)} to {brief(bounds.high)})"


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
