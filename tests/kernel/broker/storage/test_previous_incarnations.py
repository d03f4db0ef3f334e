"""What a broker finds of its earlier incarnations: a damaged write-ahead log, removed publications, empty files."""

from __future__ import annotations

import asyncio
import logging
import random
import shutil
from pathlib import Path

import pytest

from kernel.broker.storage.errors import StorageFailed
from kernel.broker.storage.previous_incarnations import clean_up_previous_incarnations
from kernel.broker.storage.wal import damage
from tests.support.brokers.stored import TOPIC_ID, TP, batch, cells, opened

RECORDS = 40


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """The folder of a broker that was killed: records in its write-ahead log only, one transaction each."""

    async def body() -> None:
        async with opened(tmp_path / "live", life="first") as storage:
            log = await storage.take_over(TP, TOPIC_ID, 0)
            for number in range(RECORDS):
                await log.append([batch(str(number))])
            shutil.copytree(tmp_path / "live", tmp_path / "killed")

    asyncio.run(body())
    return tmp_path / "killed"


def wal_of(folder: Path) -> Path:
    return folder / "incarnations/broker-1-first.sqlite-wal"


async def stored(folder: Path) -> int:
    async with opened(folder, life="second") as storage:
        log = await storage.take_over(TP, TOPIC_ID, 1)
        return len(cells(await log.read(0, 10**7)))


def frame_starts(log: bytes) -> range:
    page = int.from_bytes(log[8:12], "big")
    return range(32, len(log) - page - 23, page + 24)


def test_intact_log_is_accepted_at_any_length(killed: Path) -> None:
    log = wal_of(killed).read_bytes()
    assert damage(log) is None
    assert damage(b"") is None
    rng = random.Random(5)
    for cut in (1, 31, 32, 40, len(log) - 1, *(rng.randrange(len(log)) for _ in range(10))):
        assert damage(log[:cut]) is None, cut


def test_every_damaged_byte_that_loses_a_transaction_is_found(killed: Path) -> None:
    log = wal_of(killed).read_bytes()
    starts = frame_starts(log)
    assert len(starts) > RECORDS
    rng = random.Random(6)
    for number in rng.sample(range(len(starts) - 1), 12):
        at = starts[number] + rng.randrange(starts.step)
        broken = log[:at] + bytes([log[at] ^ 0x40]) + log[at + 1 :]
        found = damage(broken)
        assert found is not None, at
        assert found.frame == number + 1
        assert found.frames == len(starts)
        assert 0 < found.commits <= len(starts) - number
    header = damage(b"\0" + log[1:])
    assert header is not None
    assert header.frame == 0
    # The last record that was acknowledged.
    last = damage(log[:-1] + bytes([log[-1] ^ 1]))
    assert last is not None
    assert (last.frame, last.commits) == (len(starts), 1)


def test_error_of_a_damaged_log_says_how_much_is_lost(killed: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert asyncio.run(stored(shutil.copytree(killed, killed.parent / "sound"))) == RECORDS
    clean_up_previous_incarnations(killed, 1)
    assert caplog.messages == []
    wal = wal_of(killed)
    log = wal.read_bytes()
    at = frame_starts(log)[-5]
    wal.write_bytes(log[:at] + b"\0" * 100 + log[at + 100 :])
    found = damage(wal.read_bytes())
    assert found is not None
    with caplog.at_level(logging.ERROR):
        clean_up_previous_incarnations(killed, 1)
    (said,) = caplog.messages
    assert str(wal) in said
    assert f"{found.commits} transactions from there on are lost" in said
    left = asyncio.run(stored(killed))
    assert RECORDS - found.commits - 1 <= left < RECORDS, "as many are lost as the error says"


@pytest.mark.parametrize("removed", ["epochs", f"epochs/{TOPIC_ID.hex}", f"epochs/{TOPIC_ID.hex}/{TP.partition}"])
def test_partition_without_its_publications_is_refused(killed: Path, removed: str) -> None:
    kept = shutil.copytree(killed, killed.parent / "kept")
    shutil.rmtree(killed / removed)

    async def refused() -> None:
        async with opened(killed, life="second") as storage:
            for _ in range(2):
                with pytest.raises(
                    StorageFailed, match=r"is missing or empty.*Put the folder back, or delete the topic"
                ):
                    await storage.take_over(TP, TOPIC_ID, 1)

    asyncio.run(refused())
    assert not (killed / "epochs" / TOPIC_ID.hex / str(TP.partition)).exists(), "nothing was published"
    shutil.copytree(kept / "epochs", killed / "epochs", dirs_exist_ok=True)
    (killed / "incarnations/broker-1-second.sqlite").unlink()
    (killed / "incarnations/broker-1-second.claim").unlink()
    assert asyncio.run(stored(killed)) == RECORDS


async def test_new_partition_begins_at_any_epoch(killed: Path) -> None:
    async with opened(killed, life="second") as storage:
        log = await storage.take_over(TP._replace(partition=9), TOPIC_ID, 4)
        assert log.end_offset == 0


def test_file_of_an_earlier_incarnation_is_removed_once_unreferenced(killed: Path) -> None:
    def files() -> set[str]:
        return {path.name.removesuffix(".sqlite") for path in (killed / "incarnations").glob("*.sqlite")}

    async def idle(life: str, epoch: int) -> None:
        async with opened(killed, life=life) as storage:
            assert (await storage.take_over(TP, TOPIC_ID, epoch)).end_offset == RECORDS

    asyncio.run(idle("second", 1))
    clean_up_previous_incarnations(killed, 1)
    assert files() == {"broker-1-first", "broker-1-second"}, "the second is still the newest that has led"
    asyncio.run(idle("third", 2))
    clean_up_previous_incarnations(killed, 2)
    assert files() == {"broker-1-first", "broker-1-second", "broker-1-third"}, "another broker's file"
    clean_up_previous_incarnations(killed, 1)
    assert files() == {"broker-1-first", "broker-1-third"}
    assert sorted(path.name for path in (killed / "incarnations").glob("*second*")) == []
    # Publications decide this, not links, which a copy of the folder does not keep.
    copy = shutil.copytree(killed, killed.parent / "copy")
    clean_up_previous_incarnations(copy, 1)
    assert {path.name for path in (copy / "incarnations").glob("*.sqlite")} == {
        "broker-1-first.sqlite",
        "broker-1-third.sqlite",
    }
    asyncio.run(idle("fourth", 3))
