"""Mutated frames of every API and version against a live broker with a memory limit, and a twin without them."""

from __future__ import annotations

import asyncio
import itertools
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel.trace.writer import SilentTracer
from kernel.wire.versions import SERVED
from kernel.zookeeper.chroot import ensure_chroot
from tests.hostile.mutated_frames import REQUESTS, MutatedFrame, MutatedFrames
from tests.hostile.under_fire import Workload, blast, in_turns, state_of
from tests.support.brokers.limited import limited_broker
from tests.support.lean_child import lean_command

SETTINGS = {
    "offsets.topic.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.ms": "-1",  # the timestamps of the workload are old: its records would be deleted in five minutes
}
#: The memory limit of the broker, which needs 150 MB when idle.
RESIDENT_BYTES = 700_000_000
CHUNK = 640
#: A million in rounds, each with its own seed, broker and twin: a failure needs one round to be repeated.
ROUNDS, FRAMES_A_ROUND = 20, 50_000


def chunks(frames: Iterator[MutatedFrame]) -> Iterator[list[MutatedFrame]]:
    while chunk := list(itertools.islice(frames, CHUNK)):
        yield chunk


@pytest.mark.parametrize(
    ("frames", "seed"),
    [
        pytest.param(10 * len(REQUESTS), 19, id="short"),
        *(
            pytest.param(FRAMES_A_ROUND, 20 + number, id=f"round {number + 1}", marks=pytest.mark.long)
            for number in range(ROUNDS)
        ),
    ],
)
async def test_mutated_frames_of_every_version_stop_nothing_and_change_nothing(
    chroot: str, tmp_path: Path, frames: int, seed: int
) -> None:
    """First send the invalid requests: the twin's whole state must be equal. Then send those that are valid by chance,
    for other topics and groups: the results of the workload must be equal."""
    assert {message.api for message in REQUESTS} == set(SERVED)

    async def fire(port: int, workloads: list[Workload]) -> None:
        clients = [workload.client for workload in workloads]
        requests: list[MutatedFrame] = []
        for number, chunk in enumerate(chunks(MutatedFrames(seed).take(frames))):
            refused = [frame for frame in chunk if frame.is_refused]
            requests += (frame for frame in chunk if not frame.is_refused)
            answers = await asyncio.to_thread(blast, port, refused)
            answered = [frame.name for frame, answer in zip(refused, answers, strict=True) if answer]
            assert not answered, f"seed {seed}, chunk {number}: answered, though they are not requests: {answered}"
            await in_turns(workloads, f"seed {seed}, chunk {number} of invalid requests")
        fired_at, twin = [await state_of(client, of_all=True) for client in clients]
        assert fired_at == twin
        for number, chunk in enumerate(chunks(iter(requests))):
            await asyncio.to_thread(blast, port, chunk)
            await in_turns(workloads, f"seed {seed}, chunk {number} of requests")
        fired_at, twin = [await state_of(client, of_all=False) for client in clients]
        assert fired_at == twin

    twin_chroot = f"{chroot}-twin"
    await ensure_chroot(twin_chroot, tracer=SilentTracer(), name="chroot", connection_timeout_ms=10_000)
    async with (
        limited_broker(chroot, tmp_path / "fired-at", SETTINGS, log=tmp_path / "fired-at.log") as fired_at,
        limited_broker(twin_chroot, tmp_path / "twin", SETTINGS, log=tmp_path / "twin.log") as twin,
    ):
        workloads = [Workload(fired_at), Workload(twin)]
        try:
            for workload in workloads:
                await workload.begin()
            await fire(fired_at.port, workloads)
        finally:
            for workload in workloads:
                await workload.end()
        assert fired_at.peak_bytes() < RESIDENT_BYTES, f"{fired_at.peak_bytes() / 1e6:.0f} MB were in use"


# Mutated responses of every API and version, and mutated batches: our decoders raise only our own errors.


@pytest.mark.parametrize(
    ("answers", "seed"),
    [
        pytest.param(2_500, 21, id="short"),
        pytest.param(1_000_000, 22, id="long", marks=[pytest.mark.long, pytest.mark.timeout(3600)]),
    ],
)
def test_mutated_answers_and_batches_are_decoded_or_refused_within_little_memory(answers: int, seed: int) -> None:
    command = lean_command("tests.hostile.decoded_in_a_child", answers, seed)
    child = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
    assert child.returncode == 0, child.stderr[-3000:]
    output = re.fullmatch(r"(\d+) answers, (\d+) refused; (\d+) batches, (\d+) refused\n", child.stdout)
    assert output is not None, child.stdout
    asked, refused, batches, bad = map(int, output.groups())
    assert (asked, batches) == (answers, answers // 10)
    assert asked / 2 < refused < asked, "most are refused, but not all"
    assert batches / 10 < bad < batches, "some are refused, but not all"
