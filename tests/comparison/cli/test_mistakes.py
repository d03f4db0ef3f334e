"""An internal error in a broker's storage or view ends its process with a traceback and an exit code."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from comparison.exits import Exit
from kernel.zookeeper import paths
from tests.support.zookeeper.sessions import opened

#: Runs the command with an injected fault: `TARGET` raises MemoryError.
PROGRAM = """
import sys
from unittest import mock
from comparison.cli.main import main

with mock.patch(sys.argv[1], side_effect=MemoryError("injected")):
    main(sys.argv[2:])
"""


@pytest.mark.parametrize(
    ("target", "what"),
    [
        ("kernel.broker.storage.writer.Writer._work", "the storage in broker-1-"),
        ("kernel.broker.cluster.controlling.Controller.step", "broker 1: broker-1-view"),
    ],
)
async def test_broker_with_an_internal_error_ends_with_the_traceback(
    chroot: str, tmp_path: Path, target: str, what: str
) -> None:
    async with opened(chroot) as session:  # a topic to take over, so that the storage has something to do
        await session.create(paths.topic("t"), b'{"version":1,"partitions":{"0":[1]}}', makepath=True)
    arguments = ["broker", "--zookeeper", chroot, "--port", "0", "--set", "broker.id=1", "--folder", str(tmp_path)]
    ended = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", PROGRAM, target, *arguments],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == Exit.INTERNAL, ended.stderr
    assert "Traceback" in ended.stderr
    assert "MemoryError: injected" in ended.stderr
    last = ended.stderr.splitlines()[-1]
    assert what in last, ended.stderr
    assert "restart the broker" in last
