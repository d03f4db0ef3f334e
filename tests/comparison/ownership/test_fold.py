"""Short traces with their intervals written by hand, for the fold and for the pipeline's arrays alike.

An interval is `view partition owner from-until closed_by`: in milliseconds, without an end while it is open, with the
group before the partition where there are two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from comparison.ownership.fold import ownership_of
from comparison.pipeline.gold import ownership
from comparison.pipeline.silver.deliveries import claims_of, delivered_of
from comparison.pipeline.silver.naming import Naming, naming_rows
from tests.support.trace.traces import MS, context, e, tables

Event = dict[str, Any]


def joined(at_ms: float, process: str = "m1", group: str = "g", member: str = "a") -> Event:
    return e(at_ms, process, "member_started", member=member, group=group, stream=0)


def closed(at_ms: float, process: str = "m1", member: str = "a") -> Event:
    return e(at_ms, process, "member_closed", member=member, group="g")


def ended(at_ms: float, process: str = "m1", how: str = "kill") -> Event:
    return e(at_ms, "runner", "process_ended", target=process, how=how)


def claim(at_ms: float, what: str, t: str = "t0", process: str = "m1", member: str = "a", stream: int = 0) -> Event:
    return e(at_ms, process, f"partitions_{what}", t=t, member=member, stream=stream)


def polls(*at_ms: float, process: str = "m1", member: str = "a", p: int = 0) -> list[Event]:
    who = {"member": member, "stream": 0}
    return [e(at, process, "records_delivered", p=p, first=round(at), last=round(at), **who) for at in at_ms]


def named(at_ms: float, owner: str = "a-0", group: str = "g", p: int = 0) -> Event:
    return e(at_ms, "observer", "authority_named", group=group, p=p, owner=owner, epoch=1)


def cleared(at_ms: float, reason: str = "session", group: str = "g", p: int = 0) -> Event:
    fields = {"owner": "a-0", "epoch": 1, "reason": reason}
    return e(at_ms, "observer", "authority_cleared", group=group, p=p, **fields)


def fault(at_ms: float, kind: str = "started", target: str = "m1") -> Event:
    return e(at_ms, "runner", f"fault_{kind}", fault="freeze", target=target)


#: The events of each case in the order of time, and its intervals in the order in which they began.
CASES: Mapping[str, tuple[list[Event], str]] = {
    # -- what is believed
    "nothing": ([joined(1)], ""),
    "assigned for ever": ([claim(1, "assigned", "t0 t1")], "believed 0 m1/a/0 1- end; believed 1 m1/a/0 1- end"),
    "revoked in part": (
        [claim(1, "assigned", "t0 t1"), claim(5, "revoked", "t0")],
        "believed 0 m1/a/0 1-5 revoked; believed 1 m1/a/0 1- end",
    ),
    "lost and assigned again": (
        [claim(1, "assigned"), claim(5, "lost"), claim(9, "assigned")],
        "believed 0 m1/a/0 1-5 lost; believed 0 m1/a/0 9- end",
    ),
    "assigned twice": (
        [claim(1, "assigned"), claim(5, "assigned")],
        "believed 0 m1/a/0 1-5 reassigned; believed 0 m1/a/0 5- end",
    ),
    "revoked without having had it": ([claim(1, "revoked")], ""),
    "killed": ([claim(1, "assigned"), ended(7)], "believed 0 m1/a/0 1-7 process"),
    "killed at the moment of the assignment": ([claim(1, "assigned"), ended(1)], "believed 0 m1/a/0 1-1 process"),
    "another process killed": ([claim(1, "assigned"), ended(7, "m2")], "believed 0 m1/a/0 1- end"),
    "killed and started again under its name": (
        [claim(1, "assigned"), ended(5), claim(10, "assigned"), ended(20)],
        "believed 0 m1/a/0 1-5 process; believed 0 m1/a/0 10-20 process",
    ),
    "left": (
        [claim(1, "assigned"), claim(1, "assigned", "t1", member="b"), closed(6)],
        "believed 0 m1/a/0 1-6 member; believed 1 m1/b/0 1- end",
    ),
    "left, and back under its id at the same moment": (
        [claim(1, "assigned"), closed(6), claim(6, "assigned")],
        "believed 0 m1/a/0 1-6 member; believed 0 m1/a/0 6- end",
    ),
    "each stream by itself": (
        [claim(1, "assigned"), claim(1, "assigned", "t1", stream=1), claim(4, "revoked", "t1", stream=1)],
        "believed 0 m1/a/0 1- end; believed 1 m1/a/1 1-4 revoked",
    ),
    "two believe it": (
        [claim(1, "assigned"), claim(5, "assigned", process="m2"), claim(9, "lost")],
        "believed 0 m1/a/0 1-9 lost; believed 0 m2/a/0 5- end",
    ),
    "a member that is frozen goes on believing": (
        [claim(1, "assigned"), fault(2), claim(20, "assigned", process="m2"), fault(90, "ended"), claim(95, "lost")],
        "believed 0 m1/a/0 1-95 lost; believed 0 m2/a/0 20- end",
    ),
    "after the last member has left nobody has anything": (
        [claim(1, "assigned"), claim(5, "revoked"), closed(6), fault(90)],
        "believed 0 m1/a/0 1-5 revoked",
    ),
    "a topic is nobody's before it exists": (
        [joined(1), e(50, "runner", "topic_wanted", topic="t", wanted=1), claim(60, "assigned")],
        "believed 0 m1/a/0 60- end",
    ),
    # -- whom the authority names
    "named": ([named(1)], "authority 0 a-0 1- end"),
    "cleared and named anew": (
        [named(1), cleared(5), named(8, "b-0"), named(9, "c-0")],
        "authority 0 a-0 1-5 session; authority 0 b-0 8-9 renamed; authority 0 c-0 9- end",
    ),
    "cleared without having been named": ([cleared(5)], ""),
    "a claim outlives its process until the session ends": (
        [claim(1, "assigned"), named(1), ended(5), cleared(30)],
        "believed 0 m1/a/0 1-5 process; authority 0 a-0 1-30 session",
    ),
    # -- what is delivered
    "polls follow each other": ([*polls(0, 400, 1_400)], "delivering 0 m1/a/0 0-1400 pause"),
    "a pause of more than a second": (
        polls(0, 400, 1_401, 1_500),
        "delivering 0 m1/a/0 0-400 pause; delivering 0 m1/a/0 1401-1500 pause",
    ),
    "one poll has no length": (polls(7), "delivering 0 m1/a/0 7-7 pause"),
    "a change of the claim within a pause": (
        [claim(1, "assigned"), *polls(2, 10), claim(11, "revoked"), claim(12, "assigned"), *polls(13, 20)],
        "believed 0 m1/a/0 1-11 revoked; delivering 0 m1/a/0 2-10 pause; believed 0 m1/a/0 12- end; "
        "delivering 0 m1/a/0 13-20 pause",
    ),
    "another partition's claim changes": (
        [*polls(2, 10), claim(11, "assigned", "t1"), *polls(13)],
        "delivering 0 m1/a/0 2-13 pause; believed 1 m1/a/0 11- end",
    ),
    "two deliver": (
        [*polls(0), *polls(10, process="m2"), *polls(20), *polls(30, process="m2")],
        "delivering 0 m1/a/0 0-20 pause; delivering 0 m2/a/0 10-30 pause",
    ),
    "a member that is frozen delivers nothing, though two believe it": (
        [
            claim(0, "assigned"),
            *polls(1, 900),
            fault(1000),
            claim(2000, "assigned", process="m2"),
            *polls(2100, 3000, process="m2"),
            fault(5000, "ended"),
            claim(5030, "lost"),
        ],
        "believed 0 m1/a/0 0-5030 lost; delivering 0 m1/a/0 1-900 pause; believed 0 m2/a/0 2000- end; "
        "delivering 0 m2/a/0 2100-3000 pause",
    ),
    "claims and polls differ without a freeze": (
        [
            claim(0, "assigned"),
            *polls(10, 500),
            claim(600, "assigned", process="m2"),
            *polls(700, process="m2"),
            claim(800, "revoked"),
            *polls(900, process="m2"),
        ],
        "believed 0 m1/a/0 0-800 revoked; delivering 0 m1/a/0 10-500 pause; believed 0 m2/a/0 600- end; "
        "delivering 0 m2/a/0 700-900 pause",
    ),
    # -- groups
    "two groups on one topic": (
        [
            joined(0),
            joined(0, "m2", "h"),
            claim(1, "assigned"),
            claim(1, "assigned", process="m2"),
            named(2),
            named(2, "b-0", "h"),
            *polls(3, 9),
            *polls(4, 8, process="m2"),
            cleared(10, group="h"),
        ],
        "believed g/0 m1/a/0 1- end; believed h/0 m2/a/0 1- end; authority g/0 a-0 2- end; "
        "authority h/0 b-0 2-10 session; delivering g/0 m1/a/0 3-9 pause; delivering h/0 m2/a/0 4-8 pause",
    ),
    "a member of no known group": (
        [joined(0), joined(0, group="h", member="b"), claim(1, "assigned", member="c")],
        "believed /0 m1/c/0 1- end",
    ),
    "a member that does not say its group is in the only one": (
        [named(0), claim(1, "assigned")],
        "authority 0 a-0 0- end; believed 0 m1/a/0 1- end",
    ),
}


def in_words(case: str, rows: Iterable[tuple[str, str, int, str, int, int | None, str]]) -> list[str]:
    several = len({event["group"] for event in CASES[case][0] if "group" in event}) > 1
    return [
        f"{view} {group + '/' if several else ''}{partition} {owner} {from_ns // MS}-"
        f"{'' if until_ns is None else until_ns // MS} {closed_by}"
        for view, group, partition, owner, from_ns, until_ns, closed_by in rows
    ]


def expected(case: str) -> list[str]:
    return [each for each in CASES[case][1].split("; ") if each]


def numbered(case: str) -> list[Event]:
    return [{**event, "seq": seq} for seq, event in enumerate(CASES[case][0])]


@pytest.mark.parametrize("case", CASES)
def test_intervals_are_as_written_by_hand(case: str) -> None:
    events = numbered(case)
    found = ownership_of((event["t_ns"], event) for event in events).intervals
    rows = [
        (each.view, each.key.group, each.key.partition, each.owner, each.from_ns, each.until_ns, each.closed_by)
        for each in found
    ]
    assert in_words(case, rows) == expected(case)


@pytest.mark.parametrize("case", CASES)
def test_arrays_have_the_same_intervals(case: str) -> None:
    found = tables(numbered(case), numbered=True)
    run = context(found)
    claims, naming = claims_of(found, run), naming_rows(found)
    delivered = delivered_of(found, claims, run, Naming(naming))
    parts = (
        ownership.believed(claims, run),
        ownership.authority(naming),
        ownership.delivering(delivered.stretches, claims),
    )
    names = ("view", "group", "partition", "owner", "from_ns", "until_ns", "closed_by")
    rows = [tuple(row[name] for name in names) for part in parts for row in part.to_pylist()]
    assert sorted(in_words(case, rows)) == sorted(expected(case))


def test_belief_says_when_its_owner_ended() -> None:
    events = [claim(1, "assigned"), claim(3, "revoked"), claim(4, "assigned", "t1", member="b"), closed(6), ended(9)]
    found = ownership_of((event["t_ns"], event) for event in events).intervals
    assert [(each.until_ns, each.gone_ns) for each in found] == [(3 * MS, 6 * MS), (9 * MS, 9 * MS)]
