"""Clients of the ZooKeeper era by other authors, as child processes: kafka-node (Node.js) and pykafka.

    async with era_member("kafka-node", bootstrap, zookeeper, "g", "t", folder) as member:
        member.read        # [(partition, offset)] in the order of delivery

They are fetched by name, with the user's own settings of npm and pip, into the cache folder of the originals; a test
skips, with the reason, where they cannot be. pykafka gets a folder of its own because it needs an old kazoo.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from comparison.originals.jars import OFFLINE_VARIABLE
from kernel.platform.cache_folder import cache_dir
from kernel.platform.processes import start_child, stop_child

KAFKA_NODE = "kafka-node@2.6.1"
PYKAFKA = ("pykafka==2.8.0", "kazoo==2.5.0", "six==1.17.0", "tabulate==0.10.0")

#: The kinds of clients: kafka-node's HighLevelConsumer, and pykafka's consumers without a group, with one in ZooKeeper,
#: and with one at the coordinator.
NODE, SIMPLE, BALANCED, MANAGED = "kafka-node", "simple", "balanced", "managed"

_numbers = itertools.count(1)

_FETCH_S = 300.0
_STOP_S = 30.0


class EraMember:
    """One child."""

    def __init__(self, process: subprocess.Popen[bytes], out: Path, log: Path) -> None:
        self._process = process
        self._out = out
        self._log = log
        self._is_stopped = False

    @property
    def read(self) -> list[tuple[int, int]]:
        """(partition, offset) of the records so far; the last line may not be complete yet."""
        assert self._is_stopped or self._process.poll() is None, f"the client has ended: {self.said}"
        whole, _, _ = self._out.read_text(encoding="utf-8").rpartition("\n")
        return [(partition, offset) for partition, offset in map(json.loads, whole.splitlines())]

    @property
    def said(self) -> str:
        """The end of its log, for a message."""
        return self._log.read_text(encoding="utf-8", errors="replace")[-2000:]

    async def stop(self) -> None:
        """Let it commit and leave. Idempotent."""
        self._is_stopped = True
        await asyncio.to_thread(stop_child, self._process, grace_s=_STOP_S)


@asynccontextmanager
async def era_member(
    kind: str, bootstrap: str, zookeeper: str, group: str, topic: str, folder: Path
) -> AsyncIterator[EraMember]:
    """A client that has been started, with its output in `folder`; it leaves at the end."""
    if kind == NODE:
        command = ["node", str(Path(__file__).parent / "kafka_node_member.js"), str(await _fetched(_kafka_node))]
        environment = dict(os.environ)
    else:
        command = [sys.executable, "-P", str(Path(__file__).parent / "pykafka_member.py"), kind, bootstrap]
        environment = {**os.environ, "PYTHONPATH": str(await _fetched(_pykafka))}
    name = f"{kind}-{next(_numbers)}"
    out, log = folder / f"{name}.out", folder / f"{name}.log"
    with out.open("wb") as output, log.open("wb") as errors:
        process = start_child(
            [*command, zookeeper, group, topic], stdout=output, stderr=errors, cwd=folder, environment=environment
        )
    member = EraMember(process, out, log)
    try:
        yield member
    finally:
        await member.stop()


async def _fetched(fetch: functools._lru_cache_wrapper[Path | str]) -> Path:
    """The folder, or a skip: `fetch` returns why there is none."""
    found = await asyncio.to_thread(fetch)
    if isinstance(found, str):
        pytest.skip(found)
    return found


@functools.cache
def _kafka_node() -> Path | str:
    """The module's folder."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        return "kafka-node cannot be run: node and npm are not installed"
    folder = cache_dir() / "era" / KAFKA_NODE
    options = ("--no-save", "--no-package-lock", "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund")
    problem = _provide(folder, ["npm", "install", *options, "--prefix", str(folder), KAFKA_NODE])
    return problem or folder / "node_modules" / "kafka-node"


@functools.cache
def _pykafka() -> Path | str:
    """The folder to import from."""
    folder = cache_dir() / "era" / PYKAFKA[0]
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), *PYKAFKA]
    return _provide(folder, command) or folder


def _provide(folder: Path, command: list[str]) -> str:
    """Fill the folder once; why it cannot be, or ''."""
    done = folder / ".complete"
    if done.exists():
        return ""
    if os.environ.get(OFFLINE_VARIABLE):
        return f"{folder.name} is not in the cache, and {OFFLINE_VARIABLE} is set"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        fetched = subprocess.run(command, capture_output=True, text=True, timeout=_FETCH_S, check=False, cwd=folder)
    except subprocess.TimeoutExpired:
        return f"{folder.name} could not be fetched within {_FETCH_S:g} s"
    if fetched.returncode != 0:
        return f"{folder.name} could not be fetched: {fetched.stderr[-500:]}"
    done.touch()
    return ""
