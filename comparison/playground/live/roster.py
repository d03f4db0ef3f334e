"""The members of a group: their processes, faults, phases, and what they wait for. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from comparison.playground import messages
from comparison.playground.live.feed import AUTHORITY, Fact, listed
from comparison.playground.live.lanes import style_of
from comparison.playground.live.ownership import place_of
from comparison.playground.live.table import rows_of
from comparison.screen.counted import counted
from comparison.screen.natural_order import natural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comparison.playground.live.feed import Feed
    from comparison.playground.live.lanes import Lanes
    from comparison.playground.live.ownership import LiveOwnership

    Event = Mapping[str, object]

#: What a fault is called in the feed, when it begins and when it ends.
_FAULTS = {
    "freeze": ("{target} is frozen", "{target} continues"),
    "cut": ("{target} is cut off from {authority}", "{target} reaches {authority} again"),
    "slow": ("{target} is slow: it spends {delay_ms} ms on each record", "{target} is back to full speed"),
    "step": ("{target} waits before each ZooKeeper operation", "{target} no longer waits"),
}
#: What the end of a fault is called in a lane.
_HEALS = {"freeze": "continue", "cut": "heal", "slow": "full speed", "step": "last step"}
#: How a process ended: in the feed, as a member's `ended`, and in a lane.
_ENDS = {
    "kill": ("was killed", "killed", "kill"),
    "leave": ("has left", "left", "left"),
    "stop": ("was stopped", "stopped", "stop"),
    "itself": ("ended by itself", "by itself", "ended"),
}
_LOST = "lost its place in the group"


class Roster:
    """Everyone who is or was in the group, by place."""

    def __init__(
        self,
        table: tuple[messages.StepRow, ...],
        lanes: Lanes,
        feed: Feed,
        ownership: LiveOwnership,
        *,
        coordinated: bool,
    ) -> None:
        self.members: dict[str, messages.Member] = {}
        self.places: dict[str, str] = {}  #: member id -> place
        self.decider = ""  #: the member that decided last
        self._table = table
        self._lanes = lanes
        self._feed = feed
        self._ownership = ownership
        self._authority = AUTHORITY[coordinated]
        self._faults: dict[str, set[str]] = {}  #: by place
        self._phases: dict[str, str] = {}  #: by process
        self._waiting: dict[str, messages.Waiting] = {}

    # -- what is asked ----------------------------------------------------------------------------------------

    def place(self, owner: str) -> str:
        """The place of a member id, or of a thread id, which has a number behind it; itself if it is unknown."""
        return self.places.get(owner) or self.places.get(owner.rpartition("-")[0]) or owner

    @property
    def waiting(self) -> tuple[messages.Waiting, ...]:
        return tuple(self._waiting[name] for name in sorted(self._waiting, key=natural))

    def shown(self, name: str, *, leads: bool) -> messages.Member:
        """A member with all that is known about it."""
        member, faults = self.members[name], self._faults.get(name, set())
        state = member.state
        if state in (messages.MemberState.PENDING, messages.MemberState.RUNNING):
            state = (
                messages.MemberState.FROZEN
                if "freeze" in faults
                else messages.MemberState.CUT
                if "cut" in faults
                else state
            )
        ended = state is messages.MemberState.ENDED
        delivers = () if ended else self._ownership.believed_by(member.process)
        return replace(
            member,
            state=state,
            delivers=delivers,
            rebalancing=self._phases.get(member.process, ""),
            stepping="step" in faults,
            leads=leads and not ended,
        )

    # -- processes and faults ---------------------------------------------------------------------------------

    def process_started(self, at_ms: float, event: Event) -> None:
        process = str(event["target"])
        place = place_of(process)
        if not place.removeprefix("m").isdigit():
            return  # a broker
        self.members[place] = messages.Member(name=place, style=style_of(place), process=process)
        self._faults[place] = set()
        self._ownership.hear(at_ms, process)

    def process_ended(self, at_ms: float, event: Event) -> None:
        process = str(event["target"])
        how, ended, label = _ENDS.get(str(event["how"]), ("has ended", "ended", "ended"))
        place = place_of(process)
        member = self.members.get(place)
        if member is None:
            return
        self._ownership.silence(at_ms, process, how)
        if member.process != process:  # another one has been started in its place
            return
        self.members[place] = replace(member, state=messages.MemberState.ENDED, ended=ended, delay_ms=0)
        for fault in sorted(self._faults.pop(place, ())):
            self._lanes.close(messages.IntervalKind.FAULT, place, at_ms, label=fault)
        self._ownership.cut.discard(place)
        self._lanes.close_all(messages.IntervalKind.PHASE, place, at_ms)
        self._phases.pop(process, None)
        self._waiting.pop(place, None)
        severity = messages.Severity.NOTICE if event["how"] == "itself" else messages.Severity.ACT
        self._act(at_ms, label, "begin", f"{place} {how}", (place,), severity)

    def fault_started(self, at_ms: float, event: Event) -> None:
        fault, process = str(event["fault"]), str(event["target"])
        place = place_of(process)
        if fault not in _FAULTS or place not in self.members:
            return
        self._faults.setdefault(place, set()).add(fault)
        self._lanes.open(messages.IntervalKind.FAULT, place, at_ms, label=fault)
        detail = event.get("detail")
        delay_ms = detail.get("delay_ms", 0) if isinstance(detail, dict) else 0
        if fault == "slow":
            self.members[place] = replace(self.members[place], delay_ms=int(delay_ms))
        elif fault == "cut":
            self._ownership.cut.add(place)
        elif fault == "freeze":
            self._ownership.silence(at_ms, process, "was frozen", is_frozen=True)
        text = _FAULTS[fault][0].format(target=place, authority=self._authority, delay_ms=delay_ms)
        self._act(at_ms, fault, "begin", text, (place,))

    def fault_ended(self, at_ms: float, event: Event) -> None:
        fault, process = str(event["fault"]), str(event["target"])
        place = place_of(process)
        if fault not in self._faults.get(place, ()):
            return
        self._faults[place].discard(fault)
        self._lanes.close(messages.IntervalKind.FAULT, place, at_ms, label=fault)
        if fault == "slow":
            self.members[place] = replace(self.members[place], delay_ms=0)
        elif fault == "cut":
            self._ownership.cut.discard(place)
        elif fault == "freeze":
            self._ownership.hear(at_ms, process)
        text = _FAULTS[fault][1].format(target=place, authority=self._authority)
        self._act(at_ms, _HEALS[fault], "heal", text, (place,))

    def change_started(self, at_ms: float, event: Event) -> None:
        detail = event.get("detail")
        about = detail if isinstance(detail, dict) else {}
        targets = [str(each) for each in about.get("targets", ())]
        if targets and event["change"] in ("form", "grow", "join"):
            again = " again" if self.members.keys() >= set(targets) else ""
            text = f"{listed(targets)} {_are(targets)} started{again}"
            self._act(at_ms, "start", "change", text, targets)
        elif targets and event["change"] == "leave":
            self._act(at_ms, "leave", "begin", f"{listed(targets)} {_are(targets)} asked to leave", targets)
        elif event["change"] == "partition-increase":
            more = int(about.get("after", 0)) - int(about.get("before", 0))
            text = f"{counted(more, 'partition')} added: {about.get('after')} now"
            self._act(at_ms, f"+{counted(more, 'partition')}", "change", text)

    def _act(
        self,
        at_ms: float,
        label: str,
        style: str,
        text: str,
        members: Sequence[str] = (),
        severity: messages.Severity = messages.Severity.ACT,
    ) -> None:
        """Say what was done, or came of it, in the feed, and mark it in the lanes."""
        self._feed.say(int(at_ms), severity, text, tuple(members))
        self._lanes.mark(at_ms, label, style, text, members)

    # -- members ----------------------------------------------------------------------------------------------

    def member_started(self, _at_ms: float, event: Event) -> None:
        place = place_of(str(event["process"]))
        member = self.members.get(place)
        if member is not None and member.state is not messages.MemberState.ENDED:
            self.members[place] = replace(member, state=messages.MemberState.RUNNING, id=str(event["member"]))

    def member_failed(self, at_ms: float, event: Event) -> None:
        error = str(event["error"])
        if not error.startswith("RebalanceFailed"):  # of the last attempt, which is reported
            self._feed.add(int(at_ms), Fact("failed", (place_of(str(event["process"])),), error))

    def member_refused(self, at_ms: float, event: Event) -> None:
        why = f"refused for good ({event['api']}: {event['error']})"
        self._feed.add(int(at_ms), Fact("failed", (place_of(str(event["process"])),), why))

    def claimed(self, at_ms: float, event: Event) -> None:
        self._ownership.look(at_ms, *([_LOST] if event["kind"] == "partitions_lost" else []))

    def rebalance_started(self, at_ms: float, event: Event) -> None:
        self._feed.add(int(at_ms), Fact("rebalancing", (place_of(str(event["process"])),)))

    def phase_entered(self, at_ms: float, event: Event) -> None:
        process, phase = str(event["process"]), str(event["phase"])
        place = place_of(process)
        self._lanes.close_all(messages.IntervalKind.PHASE, place, at_ms)
        self._lanes.open(messages.IntervalKind.PHASE, place, at_ms, label=phase)
        self._phases[process] = phase
        if phase == "decide":
            self.decider = place

    def attempt_ended(self, at_ms: float, event: Event) -> None:
        self._end_phase(at_ms, event)
        if event["outcome"] == "conflict":
            self._feed.add(int(at_ms), Fact("conflict", (place_of(str(event["process"])),)))

    def rebalance_ended(self, at_ms: float, event: Event) -> None:
        self._end_phase(at_ms, event)
        if event["outcome"] == "failed":
            self._feed.add(int(at_ms), Fact("gave up", (place_of(str(event["process"])),)))

    def _end_phase(self, at_ms: float, event: Event) -> None:
        process = str(event["process"])
        self._lanes.close_all(messages.IntervalKind.PHASE, place_of(process), at_ms)
        self._phases.pop(process, None)

    def zk_waiting(self, at_ms: float, event: Event) -> None:
        place = place_of(str(event["process"]))
        if not event.get("op"):
            self._waiting.pop(place, None)
            return
        op, path, step = str(event["op"]), str(event["path"]), str(event.get("step") or "")
        behind = event.get("behind")
        known = self._waiting.get(place)
        same = known is not None and (known.operation, known.path, known.step) == (op, path, step)
        self._waiting[place] = messages.Waiting(
            member=place,
            operation=op,
            path=path,
            step=step,
            rows=rows_of(self._table, op, path, step),
            since_ms=known.since_ms if known is not None and same else int(at_ms),
            behind=behind if isinstance(behind, int) else 0,
        )


def _are(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"
