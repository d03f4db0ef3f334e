"""A process with a Storage, driven by JSON lines on stdin; see `stored.StorageProcess`.

Commands: lead (epoch), flood (append and report every acknowledgement until refused), write (texts), read, pairs
(epoch), upsert (pairs), flood_pairs (as flood), items, fill_up (full), bye. Answers: {"ok": ...} or {"refused": <error
name>, "message": ...}. `--linger N` waits N ms inside every transaction, between the rows and the commit, so that a
stop interrupts it there. `--file-limit N` sets RLIMIT_FSIZE once the storage has been opened.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

from kernel.broker.storage.errors import StorageError
from kernel.broker.storage.files import SqliteTransaction
from kernel.broker.storage.logs import KeyValueLog, PartitionLog
from kernel.broker.storage.storage import Storage
from tests.support.brokers.stored import TOPIC_ID, TP, batch, cells


def say(**fields: Any) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


class Commands:
    """One method per command."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.log: PartitionLog | None = None
        self.pair_log: KeyValueLog | None = None

    async def lead(self, epoch: int) -> int:
        self.log = await self.storage.take_over(TP, TOPIC_ID, epoch)
        return self.log.end_offset

    async def flood(self, prefix: str) -> None:
        """Append until an error, with one line of output per acknowledgement. Prints nothing if it never led."""
        if self.log is None:
            return
        number = 0
        while True:
            result = await self.log.append([batch(f"{prefix}{number}")])
            say(acknowledged=[result.base_offset, f"{prefix}{number}"])
            number += 1

    async def write(self, texts: list[str], size: int = 1) -> list[int]:
        assert self.log is not None
        one = [batch(text) for text in texts]
        results = await asyncio.gather(*(self.log.append([b] * size) for b in one))
        return [result.base_offset for result in results]

    async def read(self) -> list[tuple[int, int, str]]:
        assert self.log is not None
        return cells(await self.log.read(self.log.start_offset, 10**9))

    async def pairs(self, epoch: int) -> None:
        self.pair_log = await self.storage.take_over_pairs(TP, TOPIC_ID, epoch)

    async def upsert(self, pairs: list[tuple[str, str | None]]) -> None:
        assert self.pair_log is not None
        await self.pair_log.upsert([(k.encode(), None if v is None else v.encode()) for k, v in pairs])

    async def flood_pairs(self, first: int = 0) -> None:
        """As `flood`: the value of `n` counts up, and other keys are created and deleted."""
        assert self.pair_log is not None
        number = first
        while True:
            odd = [(b"%d" % i, None if number % 2 else b"%d" % number) for i in range(30)]
            await self.pair_log.upsert([*odd, (b"n", b"%d" % number), *odd])
            say(acknowledged=number)
            number += 1

    async def items(self) -> list[tuple[str, str]]:
        assert self.pair_log is not None
        return [(k.decode(), v.decode()) for k, v in await self.pair_log.items()]

    async def fill_up(self, full: bool) -> None:
        await self.storage.fill_up(full=full)


def linger(ms: int) -> None:
    commit = SqliteTransaction.__exit__

    def slow(self: Any, *arguments: Any) -> None:
        time.sleep(ms / 1000)
        commit(self, *arguments)

    SqliteTransaction.__exit__ = slow  # type: ignore[method-assign]


async def serve(options: argparse.Namespace) -> None:
    storage = Storage(options.data_dir, 1)
    await storage.start()
    if options.file_limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (options.file_limit, resource.RLIM_INFINITY))
    commands = Commands(storage)
    while line := await asyncio.to_thread(sys.stdin.readline):
        command = json.loads(line)
        if command["do"] == "bye":
            break
        if (limit := command.pop("file_limit", None)) is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        try:
            say(ok=await getattr(commands, command.pop("do"))(**command))
        except StorageError as error:
            say(refused=type(error).__name__, message=str(error))
    await storage.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("--linger", type=int, default=0)
    parser.add_argument("--file-limit", type=int, default=0)
    options = parser.parse_args()
    if options.linger:
        linger(options.linger)
    asyncio.run(serve(options))


if __name__ == "__main__":
    main()
