"""The files of a synthetic run: lines as text, rendered without a dictionary or an encoder for each event.

The fields are in the order of `kernel.trace.writer`'s, and every line passes its check; a test reads them back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from kernel.trace.events import SCHEMA_VERSION, Role
from kernel.trace.listed_file import RUN_FILE, ListedFile

if TYPE_CHECKING:
    from contextlib import ExitStack
    from pathlib import Path
    from typing import BinaryIO

GROUP, TOPIC = "g", "t"
_NS_PER_MS = 1_000_000
#: When a run begins by its processes' wall clocks: an arbitrary time.
_WALL_MS = 1_700_000_000_000
_FLUSH_LINES = 20_000
_ROLES = {"runner": Role.RUNNER, "observer": Role.OBSERVER}


class Boot(NamedTuple):
    """A machine's boot: its id, and what its monotonic clock shows when the run begins; not 0, see `add`."""

    boot_id: str
    began_ms: int


#: The boot of the runner and of all that are not elsewhere.
HERE = Boot("one", 1_000_000)


class SyntheticFiles:
    """Opens the trace files of a run; they are closed with `opened`."""

    def __init__(self, folder: Path, opened: ExitStack, seed: int) -> None:
        (folder / "trace").mkdir(parents=True)
        self._folder = folder
        self._stack = opened
        self._seed = seed
        self._files: list[SyntheticFile] = []
        self._listed: list[ListedFile] = []
        opened.callback(self._list)

    @property
    def events(self) -> int:
        return sum(file.seq for file in self._files)

    @property
    def opened(self) -> int:
        return len(self._files)

    def open(self, process: str, boot: Boot = HERE) -> SyntheticFile:
        file = self._stack.enter_context((self._folder / "trace" / f"{process}.jsonl").open("wb"))
        header = {
            "schema": SCHEMA_VERSION,
            "run": self._folder.name,
            "scenario": "synthetic",
            "design": "zookeeper",
            "role": _ROLES.get(process, Role.MEMBER),
            "implementation": "ours",
            "process": process,
            "seed": self._seed,
            "clock": "simulated",
            "boot_id": boot.boot_id,
            "monotonic_ns": boot.began_ms * _NS_PER_MS,
            "wall_ns": _WALL_MS * _NS_PER_MS,
            "pid": 0,
        }
        file.write(msgspec.json.encode({"header": header}) + b"\n")
        self._files.append(SyntheticFile(process, file, boot.began_ms))
        self._listed.append(ListedFile(f"{process}.jsonl", process, str(header["role"])))
        return self._files[-1]

    def _list(self) -> None:
        """Write the run.json, as a run does."""
        traces = [each._asdict() for each in self._listed]
        (self._folder / RUN_FILE).write_bytes(msgspec.json.encode({"traces": traces}))


class SyntheticFile:
    """One process's file. Times are milliseconds since the run began."""

    def __init__(self, process: str, file: BinaryIO, began_ms: int) -> None:
        self.process = process
        self.seq = 0
        self._file = file
        self._began_ms = began_ms
        is_member = process not in _ROLES
        member, stream = (f'"{process}"', "0") if is_member else ("null", "null")
        self._who = f'"process":"{process}","member":{member},"stream":{stream},"cause":""'
        self._lines: list[str] = []

    def add(self, at_ms: int, kind: str, fields: str) -> None:
        """Add one event. Milliseconds become nanoseconds by six zeros, so the clock must not show 0."""
        self._lines.append(
            f'{{"seq":{self.seq},"ns":{at_ms + self._began_ms}000000,"kind":"{kind}",{self._who},{fields}}}\n'
        )
        self.seq += 1

    def fetched(self, at_ms: int, times: int) -> None:
        ns = f"{at_ms + self._began_ms}000000"
        fields = f'"api":"Fetch","version":4,"correlation":{at_ms},"broker":1,"error":"","group":"{GROUP}"'
        rest = f'"ns":{ns},"kind":"request_answered",{self._who},{fields}}}\n'
        self._lines += [f'{{"seq":{seq},{rest}' for seq in range(self.seq, self.seq + times)]
        self.seq += times

    def delivered(self, at_ms: int, partition: int, first: int, count: int) -> None:
        self._numbered(at_ms, "records_delivered", partition, first, count)

    def acked(self, at_ms: int, partition: int, first: int, count: int) -> None:
        self._numbered(at_ms, "records_acked", partition, first, count)

    def _numbered(self, at_ms: int, kind: str, partition: int, first: int, count: int) -> None:
        """Offsets and serials are the same: nothing was produced twice."""
        last = first + count - 1
        self._lines.append(
            f'{{"seq":{self.seq},"ns":{at_ms + self._began_ms}000000,"kind":"{kind}",{self._who},"topic":"{TOPIC}",'
            f'"partition":{partition},"first":{first},"last":{last},"serial_first":{first},"serial_last":{last}}}\n'
        )
        self.seq += 1

    def flush(self) -> None:
        """Write the lines, if there are enough of them to be worth it."""
        if len(self._lines) >= _FLUSH_LINES:
            self._write()

    def _write(self) -> None:
        self._file.write("".join(self._lines).encode("ascii"))
        self._lines.clear()

    def close(self, at_ms: int) -> None:
        """End the file as a process does that ends in good order."""
        ns = (at_ms + self._began_ms) * _NS_PER_MS
        self._lines.append(f'{{"end":{{"events":{self.seq},"monotonic_ns":{ns}}}}}\n')
        self._write()
        self._file.close()

    def kill(self) -> None:
        """End the file as a killed process does."""
        self._write()
        self._file.close()

    def tear(self, at_ms: int) -> None:
        """End the file in the middle of a line, as a full disk does."""
        self._write()
        self._file.write(f'{{"seq":{self.seq},"ns":{at_ms + self._began_ms}0000'.encode("ascii"))
        self._file.close()


def topic_fields(partition: int) -> str:
    return f'"topic":"{TOPIC}","partition":{partition}'


def group_fields(partition: int) -> str:
    return f'"group":"{GROUP}",{topic_fields(partition)}'


def claim_fields(partition: int) -> str:
    return f'"path":"/consumers/{GROUP}/owners/{TOPIC}/{partition}","ok":true,"error":""'


def partitions_fields(partition: int, held: set[int]) -> str:
    everything = ",".join(f"{{{topic_fields(each)}}}" for each in sorted(held))
    return f'"partitions":[{{{topic_fields(partition)}}}],"all":[{everything}]'
