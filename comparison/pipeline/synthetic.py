"""Generate a run of any size whose figures are known, to check and to time the pipeline.

In each round every partition goes to the next member, which delivers its records in polls of ten. Between two rounds
all partitions are released and claimed again. A fixed fraction of the partitions has a fault in each round: an owner
that still believes in its ownership and commits after its successor has begun, records that no member receives, or
records that are delivered twice.
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
    """The figures that an analysis must find."""

    events: int = 0
    rounds: int = 0
    duplicates: int = 0
    lost: int = 0
    double_owned_ms: int = 0
    stale_writes: int = 0


def write_synthetic(folder: Path, *, events_min: int, members: int = 4, partitions: int = 12, seed: int = 0) -> Truth:
    """Write a run of at least `events_min` events to `folder`/trace, and return its true figures."""
    (folder / "trace").mkdir(parents=True)
    with ExitStack() as opened:
        run = _SyntheticRun(folder, opened, seed)
        parameters = {"members": members, "partitions": partitions, "topics": 1, "streams": 1, "brokers": 1}
        run.emit("runner", 0, "run_started", parameters=parameters)
        run.emit("runner", 0, "stage_entered", stage="steady")
        for number in range(members):
            run.emit(f"m{number}", 0, "member_started", group=_GROUP, streams=1)
        owners = [partition % members for partition in range(partitions)]
        while run.truth.events < events_min:
            run.round(owners)
            owners = [(owner + 1) % members for owner in owners]
        run.emit("runner", run.now_ms, "stage_entered", stage="final")
        run.emit("runner", run.now_ms, "run_ended", outcome="complete")
    return run.truth


class _SyntheticRun:
    """The files of the run, its current time, and the end of each partition's log."""

    def __init__(self, folder: Path, opened: ExitStack, seed: int) -> None:
        self.truth = Truth()
        self.now_ms = 0
        self._folder = folder
        self._opened = opened
        self._seed = seed
        self._random = random.Random(seed)
        self._files: dict[str, tuple[BinaryIO, list[int]]] = {}
        self._ends: dict[int, int] = {}
        self._zombies: dict[int, int] = {}  # partition -> the owner from the round before, which goes on
        self._encode = msgspec.json.Encoder().encode

    def emit(self, process: str, at_ms: int, kind: str, **fields: Any) -> None:
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
        """Claim, deliver and release every partition, all of them at the same times."""
        begin, end = self.now_ms + 100, self.now_ms + 100 + POLLS_A_ROUND * POLL_MS
        for partition, owner in enumerate(owners):
            process = f"m{owner}"
            each = {"topic": _TOPIC, "partition": partition}
            where = {"group": _GROUP, **each}
            path = f"/consumers/{_GROUP}/owners/{_TOPIC}/{partition}"
            self.emit(process, begin, "zk_op", op="create", path=path, ok=True, error="", step="R11", zxid=1)
            self.emit("observer", begin, "authority_named", **where, owner=f"{process}-0", epoch=begin)
            self.emit(process, begin, "partitions_assigned", partitions=[each], all=[each])
            self._end_the_zombie(partition, begin, where)
            self._polls(partition, process, begin)
            self.emit(process, end, "zk_op", op="delete", path=path, ok=True, error="", step="R5", zxid=1)
            self.emit("observer", end, "authority_cleared", **where, owner=f"{process}-0", epoch=end, reason="delete")
            if self._random.random() < _FAULT_SHARE:
                self._zombies[partition] = owner  # it is not notified of the release
            else:
                self.emit(process, end, "partitions_revoked", partitions=[each], all=[])
        self.now_ms = end
        self.truth.rounds += 1

    def _end_the_zombie(self, partition: int, begin: int, where: dict[str, Any]) -> None:
        owner = self._zombies.pop(partition, None)
        if owner is None:
            return
        process, each = f"m{owner}", {"topic": _TOPIC, "partition": partition}
        # Nobody else owned it during the first 100 ms.
        self.truth.double_owned_ms += _OVERLAP_MS
        offset = self._ends.get(partition, 0)
        self.emit("observer", begin + 1, "offset_written", **where, offset=offset, by=process, epoch=begin)
        self.truth.stale_writes += 1
        self.emit(process, begin + _OVERLAP_MS, "partitions_lost", partitions=[each], all=[])

    def _polls(self, partition: int, process: str, begin: int) -> None:
        each = {"topic": _TOPIC, "partition": partition}
        start = self._ends.get(partition, 0)
        self.emit(process, begin, "position_started", **each, offset=start)
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
            self.emit(
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
        """Offsets and serials are equal, because nothing was produced twice."""
        self.emit(
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
