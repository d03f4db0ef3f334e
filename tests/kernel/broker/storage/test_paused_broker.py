"""Real processes: a broker is stopped (SIGSTOP) or killed while it writes, another one leads, the first goes on.

Invariants, wherever it is stopped: nothing acknowledged is lost, the old one acknowledges nothing after the successor's
take-over, and their logs never diverge.
"""

from __future__ import annotations

import itertools
import json
import random
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.brokers.stored import TOPIC_ID, StorageProcess
from tests.support.properties import examples

#: Of the stops two of three are repeated until they hit an open transaction, the others happen at any moment.
STOPS, KILLS = 12, 4
SEED = 20120716


def write_lock_is_held(data_dir: Path, file: str) -> bool:
    """Whether a process is inside a write transaction on this file."""
    connection = sqlite3.connect(data_dir / "incarnations" / file, timeout=0, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except sqlite3.OperationalError:  # "database is locked"
        return True
    finally:
        connection.close()
    return False


def files(data_dir: Path) -> set[str]:
    return {path.name for path in (data_dir / "incarnations").glob("*.sqlite")}


def acknowledged_until_refused(broker: StorageProcess) -> tuple[list[tuple[int, str]], dict[str, str]]:
    acknowledged = []
    while "acknowledged" in (answer := broker.answer()):
        acknowledged.append((answer["acknowledged"][0], answer["acknowledged"][1]))
    return acknowledged, answer


@pytest.mark.hypothesis  # its rounds are examples: `make test-long` tries more of them
def test_stopped_and_replaced_broker_cannot_acknowledge_and_its_successor_is_intact(tmp_path: Path) -> None:
    for round_number in range(examples(STOPS)):
        data_dir = tmp_path / str(round_number)
        with StorageProcess(data_dir, "--linger", "4") as old:
            assert old.ask(do="lead", epoch=0) == {"ok": 0}
            (old_file,) = files(data_dir)
            old.command(do="flood", prefix="a")
            seen = [old.answer()["acknowledged"] for _ in range(3)]
            old.stop()
            while round_number % 3 and not write_lock_is_held(data_dir, old_file):
                old.go_on()
                seen.append(old.answer()["acknowledged"])
                old.stop()
            with StorageProcess(data_dir) as new:
                taken_over_at = new.ask(do="lead", epoch=1)["ok"]
                assert new.ask(do="write", texts=["b0", "b1"])["ok"] == [taken_over_at, taken_over_at + 1]
                old.go_on()
                acknowledged, refusal = acknowledged_until_refused(old)
                assert refusal["refused"] == "Fenced"
                acknowledged = [(offset, text) for offset, text in seen] + acknowledged
                # Some acknowledgements may have been in flight when it was stopped; none is after the cut.
                assert all(offset < taken_over_at for offset, _ in acknowledged)
                assert old.ask(do="write", texts=["zombie"])["refused"] == "Fenced"
                assert new.ask(do="write", texts=["b2"])["ok"] == [taken_over_at + 2]
                expected = [[n, 0, f"a{n}"] for n in range(taken_over_at)]
                expected += [[taken_over_at + n, 1, f"b{n}"] for n in range(3)]
                assert new.ask(do="read")["ok"] == expected
                assert [(n, f"a{n}") for n, _ in acknowledged] == acknowledged
                # The next successor sees the same.
                assert old.ask(do="lead", epoch=2) == {"ok": len(expected)}
                assert old.ask(do="read")["ok"] == expected


@pytest.mark.hypothesis
def test_killed_broker_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    for round_number in range(examples(KILLS)):
        data_dir = tmp_path / str(round_number)
        with StorageProcess(data_dir) as old:
            old.ask(do="lead", epoch=0)
            old.command(do="flood", prefix="a")
            seen = [old.answer()["acknowledged"] for _ in range(50)]
            old.process.kill()
            with StorageProcess(data_dir) as new:
                end = new.ask(do="lead", epoch=1)["ok"]
                assert end >= len(seen)
                assert new.ask(do="read")["ok"] == [[n, 0, f"a{n}"] for n in range(end)]


class Collector(threading.Thread):
    """Reads a process's answers as they arrive, so that it never blocks on us."""

    def __init__(self, process: StorageProcess) -> None:
        super().__init__(daemon=True)
        self.answers: list[dict[str, Any]] = []
        self.process = process
        self.start()

    def run(self) -> None:
        assert self.process.process.stdout is not None
        self.answers.extend(json.loads(line) for line in self.process.process.stdout)

    @property
    def acknowledged(self) -> list[tuple[int, str]]:
        return [(a["acknowledged"][0], a["acknowledged"][1]) for a in list(self.answers) if "acknowledged" in a]


def test_moving_leadership_under_load_loses_nothing_and_assigns_no_offset_twice(tmp_path: Path) -> None:
    """Three processes write until they are fenced, and become leader again and again, mostly too late."""
    choose = random.Random(SEED)
    with StorageProcess(tmp_path) as one, StorageProcess(tmp_path) as two, StorageProcess(tmp_path) as three:
        collectors = [Collector(process) for process in (one, two, three)]
        led = -1
        # Thirty times, and on a busy machine until something has been written in between.
        for epoch in itertools.count():
            if epoch >= 30 and sum(len(collector.acknowledged) for collector in collectors) > 100:
                break
            led = choose.choice([number for number in range(3) if number != led])
            collectors[led].process.command(do="lead", epoch=epoch)
            collectors[led].process.command(do="flood", prefix=f"{epoch}:")
            time.sleep(choose.uniform(0.005, 0.03))
        with StorageProcess(tmp_path) as last:
            end = last.ask(do="lead", epoch=1_000_000)["ok"]
            stored = last.ask(do="read")["ok"]
        for collector in collectors:
            collector.process.command(do="bye")
            collector.join(20)
            assert not collector.is_alive()
    acknowledged = [pair for collector in collectors for pair in collector.acknowledged]
    assert len(acknowledged) > 100, SEED
    assert [offset for offset, _, _ in stored] == list(range(end)), SEED
    at = {offset: text for offset, _, text in stored}
    assert all(at.get(offset) == text for offset, text in acknowledged), SEED
    assert len({offset for offset, _ in acknowledged}) == len(acknowledged), SEED
    epochs = [epoch for _, epoch, _ in stored]
    assert epochs == sorted(epochs), SEED


def test_pairs_survive_kill_9_and_a_stopped_holder_cannot_change_them(tmp_path: Path) -> None:
    with StorageProcess(tmp_path) as old:
        old.ask(do="pairs", epoch=0)
        assert old.ask(do="upsert", pairs=[["g", "1"], ["h", "1"], ["h", None]]) == {"ok": None}
        old.stop()
        with StorageProcess(tmp_path) as new:
            new.ask(do="pairs", epoch=1)
            assert new.ask(do="items") == {"ok": [["g", "1"]]}
            assert new.ask(do="upsert", pairs=[["g", "2"]]) == {"ok": None}
            old.go_on()
            assert old.ask(do="upsert", pairs=[["g", "zombie"]])["refused"] == "Fenced"
            new.process.kill()
        assert old.ask(do="pairs", epoch=2) == {"ok": None}
        assert old.ask(do="items") == {"ok": [["g", "2"]]}


def test_full_disk_is_refused_clearly_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    with StorageProcess(tmp_path) as broker:
        broker.ask(do="lead", epoch=0)
        assert broker.ask(do="write", texts=["a"] * 20)["ok"] == list(range(20))
        refused = broker.ask(do="write", texts=["big"], size=5_000, file_limit=100_000)
        assert refused["refused"] == "StorageFailed"
        assert "ulimit -f" in refused["message"]
        assert len(broker.ask(do="read")["ok"]) == 20
        # There is room again: it goes on without a gap.
        assert broker.ask(do="write", texts=["b"], file_limit=10**9)["ok"] == [20]
        broker.process.kill()
        with StorageProcess(tmp_path) as successor:
            assert successor.ask(do="lead", epoch=1) == {"ok": 21}
            assert [cell[2] for cell in successor.ask(do="read")["ok"]] == ["a"] * 20 + ["b"]


@pytest.mark.parametrize("limit", [200, 5_000])
def test_successor_that_cannot_write_its_term_fails_clearly_and_the_next_one_has_everything(
    tmp_path: Path, limit: int
) -> None:
    with StorageProcess(tmp_path) as old, StorageProcess(tmp_path, "--file-limit", str(limit)) as poor:
        old.ask(do="lead", epoch=0)
        assert old.ask(do="write", texts=["a"])["ok"] == [0]
        refused = poor.ask(do="lead", epoch=1)
        if "refused" in refused:
            assert refused["refused"] == "StorageFailed"
        assert old.ask(do="write", texts=["b"])["refused"] == "Fenced"
        # The refused "b" was stored before the refusal, and no successor took over without it: it may be read or not.
        assert old.ask(do="lead", epoch=2)["ok"] in (1, 2)
        assert old.ask(do="read")["ok"][0] == [0, 0, "a"]
        assert (tmp_path / "epochs" / TOPIC_ID.hex).is_dir()


RECORDS = ("lead", {"do": "write", "texts": ["a"]}, {"do": "read"})
PAIRS = ("pairs", {"do": "upsert", "pairs": [["g", "1"]]}, {"do": "items"})


@pytest.mark.parametrize(("lead", "write", "read"), [RECORDS, PAIRS], ids=["records", "pairs"])
def test_file_without_room_refuses_as_a_full_disk_does_until_there_is_room(
    tmp_path: Path, lead: str, write: dict[str, Any], read: dict[str, Any]
) -> None:
    with StorageProcess(tmp_path) as broker:
        broker.ask(do=lead, epoch=0)
        assert "ok" in broker.ask(**write)
        stored = broker.ask(**read)
        for _ in range(2):
            assert broker.ask(do="fill_up", full=True) == {"ok": None}
            refused = broker.ask(**write)
            assert refused["refused"] == "StorageFailed"
            assert "database or disk is full" in refused["message"]
        assert broker.ask(**read) == stored
        assert broker.ask(do=lead, epoch=1)["refused"] == "StorageFailed"
        assert broker.ask(do="fill_up", full=False) == {"ok": None}
        broker.ask(do=lead, epoch=2)
        assert broker.ask(**read) == stored
        assert "ok" in broker.ask(**write)
        stored = broker.ask(**read)
        broker.ask(do="fill_up", full=True)
        broker.process.kill()
        with StorageProcess(tmp_path) as successor:
            successor.ask(do=lead, epoch=3)
            assert successor.ask(**read) == stored
            assert "ok" in successor.ask(**write)
