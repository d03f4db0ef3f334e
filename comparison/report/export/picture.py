"""From a run's stream to its tracks: what each kind of event is in the picture."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from comparison.ownership.fold import Key, Ownership
from comparison.ownership.groups import Memberships
from comparison.report.export.members import Members
from comparison.report.export.tracks import (
    Open,
    Slice,
    Track,
    Value,
    facts_of,
    instant,
    partition_of,
    partitions_in_words,
)
from comparison.results.keys import AUTHORITY, BELIEVED
from comparison.screen.natural_order import natural
from comparison.screen.printable import printable
from kernel.designs import ZOOKEEPER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from comparison.ownership.fold import Interval
    from comparison.report.export.stream import Recorded, Stream

RUN, PARTITIONS = "run", "partitions"


#: The order of tracks below each other; others come after them, in the order of their names.
_ORDER = (
    *(RUN, PARTITIONS),
    *("stages", "changes", "faults", "links"),
    *("named by ZooKeeper", "named by the coordinator", "delivers"),
    *("rebalances", "attempts", "phases", "owns", "notifications", "events"),
    *("commits", "committed offset", "log end offset", "records delivered", "records"),
)


def picture(stream: Stream) -> Track:
    """The root of the tree; it is no track itself."""
    return _Picture(stream).drawn()


def _arrange(track: Track) -> None:
    """Put everything below a track in order."""
    places = {name: place for place, name in enumerate(_ORDER)}
    ordered = sorted(track.below.items(), key=lambda each: (places.get(each[0], len(places)), natural(each[0])))
    track.below = dict(ordered)
    for each in track.below.values():
        _arrange(each)


class _Picture:
    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._members = Members(stream.events)
        self._authority = "ZooKeeper" if stream.design == ZOOKEEPER else "the coordinator"
        self._root = Track("")
        self._root.track(RUN)
        self._open = Open()
        memberships = Memberships.of_events(each.event for each in stream.events)
        self._ownership = Ownership(memberships.group)
        self._groups = memberships.names
        self._began: list[Recorded] = []  #: the event with which each interval of ownership began
        self._committed: dict[Key, int] = {}
        for number, (process, role) in enumerate(sorted(stream.roles.items()), start=1):
            track = self._process(process)
            track.process = number
            track.name = printable(process if process.startswith(role) else f"{process} ({role})")

    def drawn(self) -> Track:
        for recorded in self._stream.events:
            draw = _DRAWN_BY.get(recorded.event["kind"], _Picture._other)
            draw(self, recorded, recorded.event)
            self._ownership.take(recorded.event, recorded.t_ns)
            self._began += [recorded] * (len(self._ownership.intervals) - len(self._began))
        end_ns = self._stream.events[-1].t_ns
        self._open.end_all(end_ns)
        for interval, began in zip(self._ownership.intervals, self._began, strict=True):
            track, name = self._of_interval(interval, began)
            until_ns = end_ns if interval.until_ns is None else interval.until_ns
            track.slices.append(Slice(interval.from_ns, until_ns, printable(name), facts_of(began)))
        _arrange(self._root)
        return self._root

    # -- places ------------------------------------------------------------------------------------------------------

    def _process(self, name: str) -> Track:
        return self._root.track(f"process {name}")

    def _of_member(self, event: Mapping[str, Any]) -> Track:
        """The member's track; its process's if that has no other member."""
        process = self._process(event["process"])
        name = self._members.of(event)
        return process.track(name) if name and name != event["process"] else process

    def _whose(self, event: Mapping[str, Any]) -> tuple[str, str]:
        return event["process"], self._members.of(event)

    def _partition(self, fields: Mapping[str, Any], *names: str) -> Track:
        return self._root.track(PARTITIONS, partition_of(fields), *names)

    def _of_group(self, key: Key, name: str) -> Track:
        """The track of a partition of a group, which is named where there are several."""
        group = [f"group {key.group}"] if len(self._groups) > 1 else []
        return self._root.track(PARTITIONS, f"{key.topic}-{key.partition}", *group, name)

    def _of_interval(self, interval: Interval, began: Recorded) -> tuple[Track, str]:
        """Where an interval is drawn, and under which name."""
        if interval.view == AUTHORITY:
            return self._of_group(interval.key, f"named by {self._authority}"), self._members.of_owner(interval.owner)
        if interval.view == BELIEVED:
            return self._of_member(began.event).track("owns"), f"{interval.key.topic}-{interval.key.partition}"
        member = self._members.of(began.event) or str(began.event["process"])
        return self._of_group(interval.key, "delivers"), member

    def _end_all_of(self, whose: tuple[str, ...], at_ns: int) -> None:
        """End what a process, or one of its members, was doing."""
        for key in self._open.open_keys():
            if key[0] in _OF_PROCESSES and key[1 : 1 + len(whose)] == whose:
                self._open.end(key, at_ns)

    # -- the run -----------------------------------------------------------------------------------------------------

    def _stage(self, recorded: Recorded, event: Mapping[str, Any]) -> None:
        self._open.begin(("stage",), self._root.track(RUN, "stages"), recorded, str(event["stage"]))

    def _change(self, recorded: Recorded, event: Mapping[str, Any]) -> None:
        key = "change", event["change"], event["round"]
        self._open.begin(key, self._root.track(RUN, "changes"), recorded, f"{event['change']} {event['round']}")

    def _settled(self, recorded: Recorded, event: Mapping[str, Any]) -> None:
        self._open.end(("change", event["change"], event["round"]), recorded.t_ns)
        instant(self._root.track(RUN, "events"), recorded, f"{event['change']} {event['round']} has settled")

    def _fault(self, recorded: Recorded, event: Mapping[str, Any]) -> None:
        key = "fault", event["fault"], event["target"]
        name = f"{event['fault']} {event['target']}".strip()
        if event["kind"] == "fault_started":
            self._open.begin(key, self._root.track(RUN, "faults"), recorded, name)
        else:
            self._open.end(key, recorded.t_ns)
            instant(self._root.track(RUN, "events"), recorded, f"end of {name}")

    def _link(self, recorded: Recorded, event: Mapping[str, Any]) -> None:
        if event["kind"] == "link_cut":
            track = self._root.track(RUN, "links")
            self._open.begin(("link", event["link"]), track, recorded, f"{event['link']} is cut")
        else:
            self._open.end(("link", event["link"]), recorded.t_ns)
            instant(self._root.track(RUN, "events"), recorded, f"{event['link']} is healed")

    def _of_run(self, recorded: Recorded, event: Mapping[str, Any]) -> None:
        words = {name: event[name] for name in ("target", "how", "outcome", "topic") if event.get(name)}
        name = " ".join([event["kind"].replace("_", " "), *map(str, words.values())])
        instant(self._root.track(RUN, "events"), recorded, name)
        if event["kind"] == "process_ended":
            self._end_all_of((event["target"],), recorded.t_ns)

    # -- the group and its partitions ----------------------------------------------------------------------------------

    def _group(self, recorded: Recorded, event: Mapping[str, Any]) -> None:
        group = self._root.track(f"group {event['group']}")
        name = f"{event['state']}, generation {event['generation']}"
        self._open.begin(("state", event["group"]), group.track("state"), recorded, name)
        group.track("generation").values.append(Value(recorded.t_ns, event["generation"]))
        group.track("members").values.append(Value(recorded.t_ns, event["members"]))

    def _membership(self, recorded: Recorded, event: Mapping[str, Any]) -> None:
        name = self._members.of_id(str(event["id"]))
        what = "joins" if event["kind"] == "group_member_joined" else f"leaves ({event['reason']})"
        instant(self._root.track(f"group {event['group']}", "who joins and leaves"), recorded, f"{name} {what}")

    def _advanced(self, recorded: Recorded, event: Mapping[str, Any]) -> None:
        track = self._root.track(f"group {event['group']}", f"epoch of {self._members.of_id(str(event['id']))}")
        track.values.append(Value(recorded.t_ns, event["epoch"]))

    def _cleared(self, recorded: Recorded, event: Mapping[str, Any]) -> None:
        instant(self._partition(event, "events"), recorded, f"owned by nobody ({event['reason']})")

    def _commit(self, recorded: Recorded, event: Mapping[str, Any]) -> None:
        who, offset = self._members.of_id(str(event["by"])), event["offset"]
        key = Key(event["group"], event["topic"], event["partition"])
        if event["kind"] == "offset_refused":
            name = f"{who} commits {offset}: {event['error']}"
        else:
            back = self._committed.get(key, offset) - offset
            self._committed[key] = offset
            name = f"{who} moves back by {back} to {offset}" if back > 0 else f"{who} commits {offset}"
            self._of_group(key, "committed offset").values.append(Value(recorded.t_ns, offset))
        instant(self._of_group(key, "commits"), recorded, name)

    def _acked(self, recorded: Recorded, event: Mapping[str, Any]) -> None:
        self._partition(event, "log end offset").values.append(Value(recorded.t_ns, event["last"] + 1))

    def _leader(self, recorded: Recorded, event: Mapping[str, Any]) -> None:
        instant(self._partition(event, "events"), recorded, f"leader is {event['leader']}")

    # -- members -------------------------------------------------------------------------------------------------------

    def _rebalance(self, recorded: Recorded, event: Mapping[str, Any]) -> None:
        key = "rebalance", *self._whose(event)
        if event["kind"] == "rebalance_started":
            track = self._of_member(event).track("rebalances")
            self._open.begin(key, track, recorded, f"rebalance ({event['trigger']})")
            return
        for inner in ("phase", "attempt"):
            self._open.end((inner, *key[1:]), recorded.t_ns)
        self._open.end(key, recorded.t_ns, "" if event["outcome"] == "ok" else str(event["outcome"]))
        instant(self._of_member(event).track("events"), recorded, f"the rebalance has ended ({event['outcome']})")

    def _attempt(self, recorded: Recorded, event: Mapping[str, Any]) -> None:
        key = "attempt", *self._whose(event)
        if event["kind"] == "attempt_started":
            track = self._of_member(event).track("attempts")
            self._open.begin(key, track, recorded, f"attempt {event['attempt']}")
            return
        self._open.end(("phase", *key[1:]), recorded.t_ns)
        self._open.end(key, recorded.t_ns, "" if event["outcome"] == "ok" else str(event["outcome"]))
        name = f"attempt {event['attempt']} has ended ({event['outcome']})"
        instant(self._of_member(event).track("events"), recorded, name)

    def _phase(self, recorded: Recorded, event: Mapping[str, Any]) -> None:
        key = "phase", *self._whose(event)
        self._open.begin(key, self._of_member(event).track("phases"), recorded, str(event["phase"]))

    def _owned(self, recorded: Recorded, event: Mapping[str, Any]) -> None:
        verb = _VERBS[event["kind"]]
        instant(self._of_member(event).track("events"), recorded, f"{verb} {partitions_in_words(event['partitions'])}")

    def _closed(self, recorded: Recorded, event: Mapping[str, Any]) -> None:
        self._end_all_of(self._whose(event), recorded.t_ns)
        instant(self._of_member(event).track("events"), recorded, "leaves the group")

    def _records(self, recorded: Recorded, event: Mapping[str, Any]) -> None:
        member, many = self._of_member(event), event["last"] - event["first"] + 1
        member.track("records delivered").count(recorded.t_ns, many)
        name = f"{partition_of(event)} {event['first']} to {event['last']}"
        instant(member.track("records"), recorded, name)

    def _operation(self, recorded: Recorded, event: Mapping[str, Any]) -> None:
        refused = f": {event.get('error') or 'refused'}" if not event["ok"] else ""
        track = self._process(event["process"])
        track.track("ZooKeeper requests").count(recorded.t_ns, 1)
        instant(track.track("ZooKeeper"), recorded, f"{event['op']} {event['path']}{refused}")

    def _waited(self, recorded: Recorded, event: Mapping[str, Any]) -> None:
        failed = f": {event.get('error') or 'failed'}" if not event["ok"] else ""
        name = f"{event['op']} took {event['latency_ns'] / 1e6:.1f} ms{failed}"
        instant(self._process(event["process"]).track("ZooKeeper"), recorded, name)

    def _request(self, recorded: Recorded, event: Mapping[str, Any]) -> None:
        refused = f": {event['error']}" if event["error"] else ""
        instant(self._process(event["process"]).track("brokers"), recorded, f"{event['api']}{refused}")

    def _notified(self, recorded: Recorded, event: Mapping[str, Any]) -> None:
        name = f"{event['event']} {event['path']}"
        instant(self._process(event["process"]).track("notifications"), recorded, name)

    def _answered(self, recorded: Recorded, event: Mapping[str, Any]) -> None:
        name = f"{partition_of(event)} {event['offset']}: {event['outcome']}"
        instant(self._of_member(event).track("commits"), recorded, name)

    def _other(self, recorded: Recorded, event: Mapping[str, Any]) -> None:
        words = {name: event[name] for name in ("trigger", "state", "error") if isinstance(event.get(name), str)}
        name = " ".join([str(event["kind"]).replace("_", " "), *words.values()])
        instant(self._of_member(event).track("events"), recorded, name)


_VERBS = {"partitions_assigned": "is given", "partitions_revoked": "stops", "partitions_lost": "has lost"}
#: Slices that end with their process; its name is the second part of their keys, and their member's the third.
_OF_PROCESSES = frozenset({"rebalance", "attempt", "phase"})

_DRAWN_BY: Mapping[str, Callable[[_Picture, Recorded, Mapping[str, Any]], None]] = MappingProxyType(
    {
        "stage_entered": _Picture._stage,
        "change_started": _Picture._change,
        "change_settled": _Picture._settled,
        **dict.fromkeys(("fault_started", "fault_ended"), _Picture._fault),
        **dict.fromkeys(("link_cut", "link_healed"), _Picture._link),
        **dict.fromkeys(
            (
                "run_started",
                "run_ended",
                "phase_drawn",
                "process_started",
                "process_ended",
                "topic_wanted",
                "copies_read",
                "counters_read",
                "final_offset",
            ),
            _Picture._of_run,
        ),
        "group_changed": _Picture._group,
        **dict.fromkeys(("group_member_joined", "group_member_left"), _Picture._membership),
        "group_member_advanced": _Picture._advanced,
        "authority_named": lambda *_: None,
        "authority_cleared": _Picture._cleared,
        **dict.fromkeys(("offset_written", "offset_refused"), _Picture._commit),
        "records_acked": _Picture._acked,
        "leader_changed": _Picture._leader,
        **dict.fromkeys(("rebalance_started", "rebalance_ended"), _Picture._rebalance),
        **dict.fromkeys(("attempt_started", "attempt_ended"), _Picture._attempt),
        "phase_entered": _Picture._phase,
        **dict.fromkeys(("partitions_assigned", "partitions_revoked", "partitions_lost"), _Picture._owned),
        "member_closed": _Picture._closed,
        "records_delivered": _Picture._records,
        "zk_op": _Picture._operation,
        "bystander_op": _Picture._waited,
        "request_answered": _Picture._request,
        "zk_notified": _Picture._notified,
        "commit_answered": _Picture._answered,
    }
)
