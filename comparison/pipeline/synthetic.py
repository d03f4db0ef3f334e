"""A made-up run of any size whose answers are known: for the figures of the pipeline, and to check them by.

Members take turns: in each round every partition has the next member as its owner and is delivered in polls of
ten; between two rounds everything is released and claimed again. Faults are put in at a fixed share of the
rounds' partitions: an owner that believes, delivers and commits on while its successor has begun, records that
nobody gets, records that are delivered again.
"""

from __future__ import annotations

import random
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from kernel.trace.events import SCHEMA_VERSION, Role

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

_NS_PER_MS = 1_000_000
POLL_RECORDS = 10
POLLS_A_ROUND = 20
POLL_MS = 50
_FAULT_SHARE = 0.05
_OVERLAP_MS = 400
_GROUP, _TOPIC = "g", "t"


@dataclass(slots=True)
class Truth:
    """What an analysis has to find."""

    events: int = 0
    rounds: int = 0
    duplicates: int = 0
    lost: int = 0
    double_owned_ms: int = 0
    unowned_ms: int = 0
    stale_writes: int = 0


def write_synthetic(folder: Path, *, events_min: int, members: int = 4, partitions: int = 12, seed: int = 0) -> Truth:
    """Write a run of at least that many events to `folder`/trace; returns the answers to it."""
    (folder / "trace").mkdir(parents=True)
    with ExitStack() as opened:
        made = _Made(folder, opened, seed)
        parameters = {"members": members, "partitions": partitions, "topics": 1, "streams": 1, "brokers": 1}
        made.tell("runner", 0, "run_started", parameters=parameters)
        made.tell("runner", 0, "stage_entered", stage="steady")
        for number in range(members):
            made.tell(f"m{number}", 0, "member_started", group=_GROUP, streams=1)
        owners = [partition % members for partition in range(partitions)]
        while made.truth.events < events_min:
            made.round(owners)
            owners = [(owner + 1) % members for owner in owners]
        made.tell("runner", made.now_ms, "stage_entered", stage="final")
        made.tell("runner", made.now_ms, "run_ended", outcome="complete")
    return made.truth


class _Made:
    """The files of the run, the time in it, and where each partition's log stands."""

    def __init__(self, folder: Path, opened: ExitStack, seed: int) -> None:
        self.truth = Truth()
        self.now_ms = 0
        self._folder = folder
        self._opened = opened
        self._seed = seed
        self._random = random.Random(seed)
        self._files: dict[str, tuple[BinaryIO, list[int]]] = {}
        self._ends: dict[int, int] = {}
        self._zombies: dict[int, int] = {}  # partition -> the owner that goes on from the round before
        self._encode = msgspec.json.Encoder().encode

    def tell(self, process: str, at_ms: int, kind: str, **fields: Any) -> None:
        file, seq = self._file(process)
        event = {
            "seq": seq[0],
            "ns": at_ms * _NS_PER_MS,
            "kind": kind,
            "process": process,
            "member": process if process.startswith("m") else None,
            "stream": 0 if process.startswith("m") else None,
            "cause": "",
            **fields,
        }
        file.write(self._encode(event) + b"\n")
        seq[0] += 1
        self.truth.events += 1

    def _file(self, process: str) -> tuple[BinaryIO, list[int]]:
        if process not in self._files:
            file = self._opened.enter_context((self._folder / "trace" / f"{process}.jsonl").open("wb"))
            roles = {"runner": Role.RUNNER, "observer": Role.OBSERVER}
            header = {
                "schema": SCHEMA_VERSION,
                "run": self._folder.name,
                "scenario": "synthetic",
                "design": "zookeeper",
                "role": roles.get(process, Role.MEMBER),
                "implementation": "ours",
                "process": process,
                "seed": self._seed,
                "clock": "simulated",
                "boot_id": "",
                "monotonic_ns": 0,
                "wall_ns": 0,
                "pid": 0,
            }
            file.write(self._encode({"header": header}) + b"\n")
            self._files[process] = file, [0]
        return self._files[process]

    def round(self, owners: list[int]) -> None:
        """Claim everything, deliver, release; all at the same moments for every partition."""
        begin, end = self.now_ms + 100, self.now_ms + 100 + POLLS_A_ROUND * POLL_MS
        for partition, owner in enumerate(owners):
            process = f"m{owner}"
            each = {"topic": _TOPIC, "partition": partition}
            where = {"group": _GROUP, **each}
            path = f"/consumers/{_GROUP}/owners/{_TOPIC}/{partition}"
            self.tell(process, begin, "zk_op", op="create", path=path, ok=True, error="", step="R11", zxid=1)
            self.tell("observer", begin, "authority_named", **where, owner=f"{process}-0", epoch=begin)
            self.tell(process, begin, "partitions_assigned", partitions=[each], all=[each])
            self._end_the_zombie(partition, begin, where)
            self._polls(partition, process, begin)
            self.tell(process, end, "zk_op", op="delete", path=path, ok=True, error="", step="R5", zxid=1)
            self.tell("observer", end, "authority_cleared", **where, owner=f"{process}-0", epoch=end, reason="delete")
            if self._random.random() < _FAULT_SHARE:
                self._zombies[partition] = owner  # it does not hear of the release
            else:
                self.tell(process, end, "partitions_revoked", partitions=[each], all=[])
                self.truth.unowned_ms += 100
        self.now_ms = end
        self.truth.rounds += 1

    def _end_the_zombie(self, partition: int, begin: int, where: dict[str, Any]) -> None:
        owner = self._zombies.pop(partition, None)
        if owner is None:
            return
        process, each = f"m{owner}", {"topic": _TOPIC, "partition": partition}
        # The first 100 ms nobody else owned it.
        self.truth.double_owned_ms += _OVERLAP_MS
        offset = self._ends.get(partition, 0)
        self.tell("observer", begin + 1, "offset_written", **where, offset=offset, by=process, epoch=begin)
        self.truth.stale_writes += 1
        self.tell(process, begin + _OVERLAP_MS, "partitions_lost", partitions=[each], all=[])

    def _polls(self, partition: int, process: str, begin: int) -> None:
        each = {"topic": _TOPIC, "partition": partition}
        start = self._ends.get(partition, 0)
        self.tell(process, begin, "position_started", **each, offset=start)
        if start and self._random.random() < _FAULT_SHARE:
            self._numbered(process, begin, "records_delivered", partition, start - POLL_RECORDS, start - 1)
            self.truth.duplicates += POLL_RECORDS
        skipped = self._random.randrange(POLLS_A_ROUND) if self._random.random() < _FAULT_SHARE else None
        for poll in range(POLLS_A_ROUND):
            at, first = begin + poll * POLL_MS, start + poll * POLL_RECORDS
            last = first + POLL_RECORDS - 1
            self._numbered("runner", at, "records_acked", partition, first, last)
            if poll == skipped:
                self.truth.lost += POLL_RECORDS
            else:
                self._numbered(process, at + 5, "records_delivered", partition, first, last)
            self.tell(
                process,
                at,
                "request_answered",
                api="Fetch",
                version=4,
                correlation=at,
                broker=1,
                error="",
                group=_GROUP,
            )
        self._ends[partition] = start + POLLS_A_ROUND * POLL_RECORDS

    def _numbered(self, process: str, at: int, kind: str, partition: int, first: int, last: int) -> None:
        """Offsets and serials are the same: nothing was produced twice."""
        self.tell(
            process,
            at,
            kind,
            topic=_TOPIC,
            partition=partition,
            first=first,
            last=last,
            serial_first=first,
            serial_last=last,
        )
