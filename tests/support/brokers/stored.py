"""Storages, small record batches, and a broker process that can be stopped in the middle of a transaction."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Self

from kernel.broker.storage.logs import PartitionLog
from kernel.broker.storage.storage import Storage
from kernel.records.batches import AppendBatch, ProducerStamp
from kernel.values import TopicPartition
from kernel.waiting import wait_until
from tests.support.lean_child import REPOSITORY, lean_command

TP = TopicPartition("orders", 3)
TOPIC_ID = uuid.UUID(int=7)
_HEADER = 27


def batch(text: str, records: int = 1, timestamp_ms: int = 0, producer: ProducerStamp | None = None) -> AppendBatch:
    """A header of magic 2, in which offset and epoch get filled in, followed by `text` of eight bytes."""
    payload = bytes(16) + b"\x02" + bytes(_HEADER - 17) + text.encode().ljust(8, b"\0")
    assert len(payload) == _HEADER + 8, text
    return AppendBatch(payload, records, timestamp_ms, producer)


def cells(data: bytes) -> list[tuple[int, int, str]]:
    """(base offset, leader epoch, text) of every batch."""
    size = _HEADER + 8
    assert len(data) % size == 0, data
    found = [data[i : i + size] for i in range(0, len(data), size)]
    return [(int.from_bytes(c[:8]), int.from_bytes(c[12:16]), c[_HEADER:].rstrip(b"\0").decode()) for c in found]


@asynccontextmanager
async def opened(folder: Path, node_id: int = 1, life: str | None = None) -> AsyncIterator[Storage]:
    """The storage of one incarnation of broker `node_id`, for the duration of a `with`."""
    storage = Storage(folder, node_id, life)
    await storage.start()
    try:
        yield storage
    finally:
        await storage.close()


async def opened_on(stack: AsyncExitStack, folder: Path, node_id: int) -> Storage:
    """As `opened`, until the stack ends."""
    return await stack.enter_async_context(opened(folder, node_id))


async def everything(log: PartitionLog) -> str:
    """The texts of all batches, joined without spaces."""
    return "".join(text for _, _, text in cells(await log.read(log.start_offset, 10**6)))


class StorageProcess:
    """`storage_process.py` as a child: commands in, answers out, one JSON line each."""

    def __init__(self, data_dir: Path, *options: str) -> None:
        self.process = subprocess.Popen(
            lean_command("tests.support.brokers.storage_process", data_dir, *options),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=REPOSITORY,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(60)
        self.process.stdout.close()
        with contextlib.suppress(BrokenPipeError):  # the process no longer reads its input
            self.process.stdin.close()

    def command(self, **command: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the process ended with {self.process.wait(10)}"
        answered: dict[str, Any] = json.loads(line)
        return answered

    def ask(self, **command: Any) -> dict[str, Any]:
        self.command(**command)
        return self.answer()

    def stop(self) -> None:
        """SIGSTOP, and wait until the process has stopped."""
        os.kill(self.process.pid, signal.SIGSTOP)
        status = Path(f"/proc/{self.process.pid}/stat")
        wait_until(lambda: status.read_text().rsplit(")", 1)[1].split()[0] == "T", 60, "the process to be stopped")

    def go_on(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)
