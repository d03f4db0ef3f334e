"""A coordinator is stopped (SIGSTOP) during pipelined commits, replaced and continued: which of its answers are late?

An acknowledgement may arrive after the successor's first: the process was stopped between its check of the publications
and its write to the socket. That is harmless as long as the commit had been stored before the successor read what it
took over. So each round decides from what is stored, not from the order in which answers arrive: whatever the old
coordinator has acknowledged, whenever that arrived, is among what its successor took over.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
from asyncio.subprocess import Process
from pathlib import Path
from typing import NamedTuple

import pytest

from coordinator.groups.placement import partition_of
from coordinator.groups.records import OffsetKey, OffsetRecord
from coordinator.service.record_codec import decode_all, encode
from kernel.waiting import until
from kernel.wire.versions import Api
from tests.coordinator.failover.test_stopped import (
    PARTITIONS,
    Member,
    another_group_in_the_partition_of,
    coordinates,
    doomed_coordinator,
)
from tests.support.coordinators.child import BEFORE_THE_LOOK, BEHIND_THE_LOOK, FREEZE
from tests.support.coordinators.log import commit
from tests.support.zookeeper.proxy import ZooKeeperProxy
from tests.support.zookeeper.sessions import end_session

#: Seed of the moments at which processes are stopped.
SEED = 20121019
PIPELINED = 300


class Kept(NamedTuple):
    """A group's commit as stored in a file: its number (its offset), its offset in the log, and its term."""

    number: int
    at_offset: int
    term_start: int


def kept(data_dir: Path, node_id: int, group_id: str) -> Kept:
    """In the newest term of the only incarnation of a broker."""
    (file,) = (data_dir / "incarnations").glob(f"broker-{node_id}-*.sqlite")
    key, _ = encode((OffsetKey(group_id, "t", 0), OffsetRecord(0, -1, "", 0)))
    reader = sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)
    try:
        rows = reader.execute(
            "SELECT value, at_offset, start FROM pair JOIN term USING (term) WHERE key = ? AND partition = ?"
            " ORDER BY term DESC LIMIT 1",
            (key, partition_of(group_id, PARTITIONS)),
        ).fetchall()
    finally:
        reader.close()
    ((value, at_offset, start),) = rows
    ((_, record),) = decode_all([(key, value)])
    assert isinstance(record, OffsetRecord)
    return Kept(record.offset, at_offset, start)


async def standing_still(process: Process) -> None:
    status = Path(f"/proc/{process.pid}/stat")
    await until(lambda: status.read_text().rsplit(")", 1)[1].split()[0] == "T", 60, "the process to be stopped")


async def round_of_pipelined_commits(chroot: str, link: ZooKeeperProxy, folder: Path, choose: random.Random) -> int:
    """How many acknowledgements of the old coordinator came after the successor's first."""
    async with doomed_coordinator(chroot, link, folder) as (process, member, old, new):
        group_id = member.group["group_id"]
        identity = {"generation_id_or_member_epoch": 1, "member_id": member.id}
        waiting = [
            old.send(Api.OffsetCommit, 8, commit(group_id, {0: number}, **identity)) for number in range(PIPELINED)
        ]
        many = choose.randrange(1, PIPELINED // 2)
        await until(waiting[many].done, 60, f"{many} commits to be answered", every_s=0.0005)
        os.kill(process.pid, signal.SIGSTOP)
        await standing_still(process)
        await asyncio.to_thread(end_session, chroot, link.credentials())
        await until(lambda: coordinates(member, new), 60, "the successor to coordinate")
        taken_over = await member.committed(new)
        # In another group, so that what was taken over stays as it is.
        other = Member(another_group_in_the_partition_of(group_id))
        answer = await new.send(Api.OffsetCommit, 8, commit(other.group["group_id"], {0: 1}))
        assert answer.topics[0].partitions[0].error_code.name == "none"
        before = {number for number, future in enumerate(waiting) if future.done()}
        os.kill(process.pid, signal.SIGCONT)
        answers = await asyncio.wait_for(asyncio.gather(*waiting), 60)
        errors = [answer.topics[0].partitions[0].error_code.name for answer in answers]
        acknowledged = {number for number, error in enumerate(errors) if error == "none"}
        successors, olds = kept(folder, 2, group_id), kept(folder, 1, group_id)
        assert successors.at_offset < successors.term_start, "it was taken over, and not written since"
        assert successors.number == taken_over
        assert max(acknowledged) <= successors.number <= olds.number, (SEED, sorted(acknowledged)[-3:])
        assert set(errors) <= {"none", "not_coordinator"}
        assert acknowledged == set(range(len(acknowledged))), "they are stored in order"
        assert await member.committed(new) == taken_over
        return len(acknowledged - before)


def rounds(chroot: str, folder: Path, number: int) -> int:
    """Late acknowledgements in all."""
    choose, late = random.Random(SEED), 0
    for count in range(number):
        own = f"{chroot}-{count}"
        with ZooKeeperProxy(own) as link:
            late += asyncio.run(round_of_pipelined_commits(own, link, folder / str(count), choose))
    return late


def test_successor_takes_over_every_commit_that_a_stopped_coordinator_acknowledged(chroot: str, tmp_path: Path) -> None:
    rounds(chroot, tmp_path, 2)


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_successor_takes_over_every_commit_that_a_stopped_coordinator_acknowledged_200_times(
    chroot: str, tmp_path: Path
) -> None:
    rounds(chroot, tmp_path, 200)


@pytest.mark.parametrize(("where", "late_answer"), [(BEHIND_THE_LOOK, "none"), (BEFORE_THE_LOOK, "not_coordinator")])
async def test_successor_takes_over_a_commit_stored_by_a_coordinator_frozen_before_its_answer(
    chroot: str, tmp_path: Path, where: str, late_answer: str, link: ZooKeeperProxy
) -> None:
    """After the check of the publications the answer is late and true; before it, the check refuses it."""
    async with doomed_coordinator(chroot, link, tmp_path) as (process, member, old, new):
        group_id = member.group["group_id"]
        assert await member.commit(old, 10) == "none"
        (tmp_path / FREEZE).write_text(where)
        late = asyncio.create_task(member.commit(old, 11))
        await standing_still(process)
        await asyncio.to_thread(end_session, chroot, link.credentials())
        await until(lambda: coordinates(member, new), 60, "the successor to coordinate")
        assert await member.committed(new) == 11, "it was stored before the successor looked"
        successors = kept(tmp_path, 2, group_id)
        assert (successors.number, successors.at_offset < successors.term_start) == (11, True)
        assert await member.commit(new, 12) == "none"
        assert not late.done()
        os.kill(process.pid, signal.SIGCONT)
        assert await late == late_answer
        assert await member.commit(old, 13) == "not_coordinator"
        assert await member.committed(new) == 12
