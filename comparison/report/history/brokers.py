"""Which process of a run is which broker, and which of them coordinates a group.

A trace names processes, requests name brokers by id. Started by hand, `broker-2` may well be broker 1: what it
registered in ZooKeeper says so, and so does the first partition that it led, because a broker cannot give up what it
never led.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from kernel.java_hash import java_hash, kafka_abs
from kernel.topic_names import OFFSETS_TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: Why a coordinator calls a group dead that it has handed over: it lives on at the successor.
UNLOADED = "coordinator moved"
#: Of a broker whose id nobody traced, in the place of its id.
UNNUMBERED = -1
_REGISTRATION = re.compile(r"/brokers/ids/([0-9]{1,10})")
_PROCESS = re.compile(r"broker(?:-([0-9]{1,10}))?")


def broker_ids(events: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """The id of each process that is known to be a broker."""
    registered: dict[str, int] = {}
    led: dict[str, int] = {}
    for event in events:
        if event["kind"] == "leader_changed" and event["leader"] >= 0:
            led.setdefault(event["process"], event["leader"])
        elif (id_ := _registered(event)) is not None:
            registered[event["process"]] = id_
    return {**led, **registered}


def _registered(event: Mapping[str, Any]) -> int | None:
    """The id under which a broker registers with this event; None for another event."""
    if event["kind"] != "zk_op" or event["op"] != "multi" or not event["ok"]:
        return None
    path = _REGISTRATION.fullmatch(event["path"])
    return None if path is None else int(path[1])


def broker_of(process: str, ids: Mapping[str, int]) -> int | None:
    """The id of a broker, by its process's name if nobody traced it; None for another process."""
    named = _PROCESS.fullmatch(process)
    return ids.get(process, None if named is None else int(named[1] or UNNUMBERED))


class Coordinators:
    """Who leads each partition of the offsets topic, from `leader_changed` events in order of time."""

    def __init__(self, ids: Mapping[str, int]) -> None:
        self._ids = ids
        self._leaders: dict[int, str] = {}

    def take(self, event: Mapping[str, Any]) -> None:
        # A broker that gives a partition up may name its successor.
        if event["topic"] == OFFSETS_TOPIC and event["leader"] == self._ids.get(event["process"]):
            self._leaders[event["partition"]] = event["process"]

    def of(self, group: str) -> str:
        """The process that took the group's partition last; '' if leadership was not traced."""
        if not self._leaders:
            return ""
        partitions = 1 + max(self._leaders)
        return self._leaders.get(kafka_abs(java_hash(group)) % partitions, "")
