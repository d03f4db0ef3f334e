"""What was delivered, again, and left to do in each interval of the run, the slow way: record by record."""

from __future__ import annotations

from collections import defaultdict

from comparison.ownership.groups import Memberships
from comparison.pipeline.measured import CourseInterval, RunSpan
from tests.support.oracle.intervals import Event, in_time, key_of, of
from tests.support.oracle.lives import life_of

#: Group, topic, partition, and how many lives the topic had had before.
KeyOfLife = tuple[str, str, int, int]

INTERVALS_MAX, INTERVAL_NS_MIN = 600, 100_000_000


def course_of(events: list[Event], span: RunSpan) -> list[CourseInterval]:
    """A row for each interval of the span, if there was any record at all."""
    groups = Memberships.of_events(events)
    acked = [
        (event, (group, event["topic"], event["partition"], life_of(event["first"])))
        for event in in_time(of(events, "records_acked"))
        for group in groups.readers(event["topic"])
    ]
    polled = [
        (event, (*key_of(event, groups), life_of(event["first"]))) for event in in_time(of(events, "records_delivered"))
    ]
    written = [
        (event, (event["group"], event["topic"], event["partition"], life_of(event["offset"])))
        for event in in_time(of(events, "offset_written"))
    ]
    if not acked and not polled and not written:
        return []
    firsts: defaultdict[KeyOfLife, list[int]] = defaultdict(list)
    for event, key in [*acked, *polled]:
        firsts[key].append(event["first"])
    committed: defaultdict[KeyOfLife, list[int]] = defaultdict(list)
    for event, key in written:
        committed[key].append(event["offset"])
    begins = {key: min(firsts.get(key) or committed[key]) for key in {*firsts, *committed}}
    length_ns = INTERVAL_NS_MIN
    while length_ns * INTERVALS_MAX < span.end_ns - span.start_ns:
        length_ns += INTERVAL_NS_MIN
    again, delivered = _deliveries(polled, span, length_ns)
    found = []
    for number, from_ns in enumerate(range(span.start_ns, span.end_ns, length_ns)):
        until_ns = min(from_ns + length_ns, span.end_ns)
        undelivered = lag = 0
        for key, begin in begins.items():
            ends = [event["last"] + 1 for event, of_key in acked if of_key == key and event["t_ns"] < until_ns]
            reached = [event["last"] + 1 for event, of_key in polled if of_key == key and event["t_ns"] < until_ns]
            commits = [event["offset"] for event, of_key in written if of_key == key and event["t_ns"] < until_ns]
            log_end = max([begin, *ends, *reached, *commits])
            undelivered += log_end - max([begin, *reached])
            lag += log_end - (commits[-1] if commits else begin)
        found.append(
            CourseInterval(
                from_ns=from_ns,
                until_ns=until_ns,
                delivered=delivered[number],
                duplicates=again[number],
                undelivered=undelivered if acked else None,
                lag=lag if acked else None,
            )
        )
    return found


def _deliveries(
    polled: list[tuple[Event, KeyOfLife]], span: RunSpan, length_ns: int
) -> tuple[defaultdict[int, int], defaultdict[int, int]]:
    """By interval: how many records the group had been handed before, and how many it was handed in all."""
    again: defaultdict[int, int] = defaultdict(int)
    delivered: defaultdict[int, int] = defaultdict(int)
    seen: set[tuple[KeyOfLife, int]] = set()
    for event, key in polled:
        number = (event["t_ns"] - span.start_ns) // length_ns
        for offset in range(event["first"], event["last"] + 1):
            if span.start_ns <= event["t_ns"] < span.end_ns:
                delivered[number] += 1
                again[number] += (key, offset) in seen
            seen.add((key, offset))
    return again, delivered
