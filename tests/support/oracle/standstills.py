"""How long records waited while nothing was delivered, the slow way: pause by pause, and moment by moment of each."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise

from comparison.ownership.cover import wanted_of
from comparison.ownership.fold import Interval
from comparison.ownership.groups import Memberships
from comparison.pipeline.measured import FaultPeriod, MemberPhase, RunSpan
from comparison.pipeline.measured_standstills import Standstill, Standstills
from tests.support.oracle.cover import Window
from tests.support.oracle.intervals import Event, Key, in_time, key_of, names_partition, of

INTERVALS_MAX, INTERVAL_NS_MIN, NAMED_MAX = 600, 100_000_000, 50
FROZEN, SLOW = "freeze", "slow"


class Standing:
    """What a run did, as far as it tells why nothing was delivered."""

    def __init__(
        self,
        events: list[Event],
        span: RunSpan,
        believed: list[Interval],
        phases: list[MemberPhase],
        faults: list[FaultPeriod],
    ) -> None:
        self.events, self.span, self.believed, self.phases, self.faults = events, span, believed, phases, faults
        self.groups = Memberships.of_events(events)
        self.length_ns = INTERVAL_NS_MIN
        while self.length_ns * INTERVALS_MAX < span.end_ns - span.start_ns:
            self.length_ns += INTERVAL_NS_MIN

    def all(self, windows: list[Window]) -> Standstills | None:
        """All of them; None without acknowledged records."""
        acked = of(self.events, "records_acked")
        if not acked:
            return None
        timed = [(event["t_ns"], event) for event in in_time(self.events)]
        wanted = wanted_of(timed).stretches(max(t_ns for t_ns, _ in timed) + 1)
        found = []
        for key, stretches in wanted.items():
            for from_ns, until_ns, reached in self._pauses(key):
                since_ns = self._waiting_since(key, reached)
                for low, high in stretches if since_ns is not None else ():
                    begin, end = max(low, from_ns, since_ns or 0), min(high, until_ns)
                    if end - begin > self.length_ns:
                        found.append(self._standstill(key, begin, end, from_ns))
        longest: dict[tuple[str, str, int], Standstill] = {}
        for each in sorted(found, key=lambda each: (each.from_ns - each.until_ns, each.from_ns)):
            longest.setdefault((each.group, each.topic, each.partition), each)
        causes: Counter[str] = Counter()
        for each in found:
            causes.update(each.causes)
        parts = {
            number: [min(each.until_ns, end) - max(each.from_ns, begin) for each in found]
            for number, begin, end in windows
        }
        order = sorted(longest.items(), key=lambda item: (item[1].from_ns - item[1].until_ns, item[0]))
        return Standstills(
            causes=dict(causes),
            by_window={number: max(several) for number, several in parts.items() if max(several, default=0) > 0},
            longest=[each for _, each in order][:NAMED_MAX],
        )

    def _pauses(self, key: Key) -> list[tuple[int, int, int]]:
        """From, until, and the offset up to which the group had been handed everything."""
        polls = [event for event in of(self.events, "records_delivered") if key_of(event, self.groups) == key]
        acked = [e for e in of(self.events, "records_acked") if (e["topic"], e["partition"]) == tuple(key[1:])]
        if not polls:
            first = min((event["first"] for event in acked), default=0)
            return [(self.span.start_ns, self.span.end_ns, first)]
        polls.sort(key=lambda event: (event["t_ns"], event["first"]))
        times = [event["t_ns"] for event in polls]
        pauses = [(self.span.start_ns, times[0], polls[0]["first"])]
        for from_ns, until_ns in pairwise([*times, max(self.span.end_ns, times[-1])]):
            reached = max(event["last"] + 1 for event in polls if event["t_ns"] <= from_ns)
            pauses.append((from_ns, until_ns, reached))
        return pauses

    def _waiting_since(self, key: Key, reached: int) -> int | None:
        if key[0] not in self.groups.readers(key[1]):
            return None
        by_interval: defaultdict[int, list[Event]] = defaultdict(list)
        for event in of(self.events, "records_acked"):
            if (event["topic"], event["partition"]) == tuple(key[1:]):
                number = max(-1, (event["t_ns"] - self.span.start_ns) // self.length_ns)
                by_interval[number if event["t_ns"] < self.span.end_ns else 1 << 60].append(event)
        for _, events in sorted(by_interval.items()):
            if max(event["last"] for event in events) >= reached:
                sent = [event["t_ns"] - (event.get("latency_ns") or 0) for event in events]
                return min(sent) if min(event["first"] for event in events) >= reached else max(sent)
        return None

    def _standstill(self, key: Key, low: int, high: int, since_ns: int) -> Standstill:
        moments = {low, high, *(event["t_ns"] for event in self.events), self.span.end_ns}
        moments |= {each for phase in self.phases for each in (phase.from_ns, phase.until_ns)}
        causes: Counter[str] = Counter()
        for begin, end in pairwise(sorted(each for each in moments if low <= each <= high)):
            causes[self._cause(key, begin, since_ns)] += end - begin
        return Standstill(group=key[0], topic=key[1], partition=key[2], from_ns=low, until_ns=high, causes=dict(causes))

    def _cause(self, key: Key, at_ns: int, since_ns: int) -> str:
        if self._is_paused(key, at_ns):
            return "paused"
        if self._is_leaderless(key, at_ns):
            return "no leader"
        owners = {
            each.owner.split("/")[0]
            for each in self.believed
            if each.key == key and each.from_ns <= at_ns and (each.until_ns is None or at_ns < each.until_ns)
        }
        in_rebalance = {
            phase.process for phase in self.phases if phase.group == key[0] and phase.from_ns <= at_ns < phase.until_ns
        }
        if owners & in_rebalance or (in_rebalance and not owners):
            return "rebalance"
        faults = {
            fault.fault
            for fault in self.faults
            if fault.target in owners
            and fault.from_ns <= at_ns
            and (fault.healed_ns is None or at_ns < fault.healed_ns)
        }
        if FROZEN in faults:
            return "frozen"
        if SLOW in faults:
            return "slow record"
        if not owners:
            return "no owner"
        if faults:
            return "fault"
        refused = [
            event
            for event in of(self.events, "fetch_refused")
            if key_of(event, self.groups) == key and since_ns <= event["t_ns"] <= at_ns
        ]
        return "fetch refused" if refused else "unknown"

    def _is_paused(self, key: Key, at_ns: int) -> bool:
        paused: set[tuple[str, int | None]] = set()
        for event in in_time(of(self.events, "partitions_paused", "partitions_resumed", "process_ended")):
            if event["t_ns"] > at_ns:
                break
            if event["kind"] == "process_ended":
                paused = {each for each in paused if each[0] != event["target"]}
            elif names_partition(event, *key[1:]) and self.groups.group(event["process"], event["member"]) == key[0]:
                stream = event["process"], event["stream"]
                (paused.add if event["kind"] == "partitions_paused" else paused.discard)(stream)
        return bool(paused)

    def _is_leaderless(self, key: Key, at_ns: int) -> bool:
        """Whether it was led before, and is not now."""
        own: dict[str, int] = {}
        leads: dict[str, bool] = {}
        for event in in_time(of(self.events, "leader_changed", "process_ended")):
            if event["kind"] == "process_ended":
                if event["t_ns"] <= at_ns and event["target"] in leads:
                    leads[event["target"]] = False
                continue
            if event["leader"] >= 0:
                own.setdefault(event["process"], event["leader"])
            is_here = (event["topic"], event["partition"]) == tuple(key[1:])
            is_own = event["leader"] == own.get(event["process"])
            if is_here and event["t_ns"] <= at_ns and (is_own or event["process"] in leads):
                leads[event["process"]] = is_own
        return bool(leads) and not any(leads.values())
