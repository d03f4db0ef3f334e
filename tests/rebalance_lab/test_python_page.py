"""The examples of docs/python.md run as they are printed; only the servers' addresses are the tests' own."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from coordinator.service.mount import mount
from kernel.assignors.registry import ENTRY_POINTS
from kernel.trace.writer import SilentTracer
from kernel.zookeeper.chroot import ensure_chroot
from kernel.zookeeper.embedded import EmbeddedZooKeeper
from tests.support.brokers.live import broker_thread
from tests.support.commands.forked import ForkedProgram, Streams
from tests.support.commands.installed import installed
from tests.support.consumers.consuming import producing
from tests.support.runs.seen_runs import analysed_cut

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
EXAMPLES = {name: source for source, name in re.findall(r"```python\n(# ([\w.]+)\n.*?)```", PAGE, re.DOTALL)}
PARTITIONS, RECORDS = 2, 6
LIMIT_S = 300


class Servers:
    """ZooKeeper and a broker with the topic `orders`, and programs that use them."""

    def __init__(self, zookeeper: str, bootstrap: str) -> None:
        self.addresses = {"127.0.0.1:2181": zookeeper, "127.0.0.1:9092": bootstrap}

    @contextmanager
    def running(self, name: str, folder: Path, environment: Mapping[str, str] = os.environ) -> Iterator[Program]:
        source = EXAMPLES[name]
        for printed, address in self.addresses.items():
            source = source.replace(printed, address)
        (folder / name).write_text(source, encoding="utf-8")
        with Program(name, folder, environment) as program:
            yield program

    def send(self, number: int) -> None:
        """Send this many records to each partition."""

        async def send() -> None:
            async with producing(self.addresses["127.0.0.1:9092"]) as producer:
                await producer.send("orders", number)

        asyncio.run(send())


class Program:
    """A process that runs a file in a folder."""

    def __init__(self, file: str, folder: Path, environment: Mapping[str, str]) -> None:
        self._errors = folder / f"{file}.err"
        self._reader, writer = multiprocessing.Pipe(duplex=False)
        with writer:
            self._child = ForkedProgram(file, folder, environment, Streams(writer, self._errors))
        self._output = os.fdopen(self._reader.fileno(), closefd=False)

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._reader.close()

    def lines(self, number: int) -> list[str]:
        """The next lines that it prints."""
        found = [line for _ in range(number) if (line := self._output.readline())]
        assert len(found) == number, f"it ended after {found}: {self._errors.read_text()}"
        return [line.rstrip("\n") for line in found]

    def interrupt(self) -> str:
        """Press Ctrl-C; what else it printed."""
        self._child.send_signal(signal.SIGINT)
        output, code = self._output.read(), self._child.wait(LIMIT_S)
        errors = self._errors.read_text()
        assert code in (-signal.SIGINT, 130), errors
        assert errors.rstrip().endswith("KeyboardInterrupt"), errors
        return output

    def kill(self) -> None:
        self._child.kill()
        self._child.wait(LIMIT_S)


@pytest.fixture(scope="module")
def servers(zookeeper: EmbeddedZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """`orders` has 2 partitions with 3 records each."""
    chroot = f"{zookeeper.connect_string}/python-page"
    asyncio.run(ensure_chroot(chroot, tracer=SilentTracer(), name="chroot", connection_timeout_ms=10_000))
    folder = tmp_path_factory.mktemp("python-page")
    with broker_thread(chroot, folder, mount=(mount,), topics={"orders": PARTITIONS}) as bootstrap:
        found = Servers(chroot, bootstrap)
        found.send(RECORDS // PARTITIONS)
        yield found


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two analysed runs."""
    return analysed_cut(tmp_path_factory.mktemp("runs"))


def test_every_example_of_the_page_is_run_by_a_test() -> None:
    tests = Path(__file__).read_text(encoding="utf-8").split("def test_every_example")[-1]
    assert [name for name in EXAMPLES if f'"{name}"' not in tests] == []
    assert PAGE.count("```python") == len(EXAMPLES), "every example begins with the name of its file"


@pytest.mark.parametrize("name", ["consume.py", "consume_with_zookeeper.py", "consume_as_in_kafka_4.py"])
def test_program_consumes_until_it_is_interrupted(servers: Servers, tmp_path: Path, name: str) -> None:
    with servers.running(name, tmp_path) as program:
        lines = program.lines(RECORDS)
        assert {tuple(line.split()[:2]) for line in lines} == {
            (f"orders-{partition}", str(offset)) for partition in (0, 1) for offset in (0, 1, 2)
        }
        assert program.interrupt() == ""


def test_listener_commits_what_was_processed_before_its_partitions_go(servers: Servers, tmp_path: Path) -> None:
    with servers.running("commit_first.py", tmp_path) as program:
        assert all(line.startswith("processed orders-") for line in program.lines(RECORDS))
        assert program.interrupt() == "committed [3, 3] refused {}\n"


def test_pause_is_asked_for_again_in_a_rebalance(servers: Servers, tmp_path: Path) -> None:
    with servers.running("pausing.py", tmp_path) as first:
        assert first.lines(1) == ["paused"]
        processed = {f"processed orders-{partition} {offset}" for partition in (0, 1) for offset in (0, 1)}
        assert set(first.lines(4)) == processed
        with servers.running("pausing.py", tmp_path) as second:
            said, taken_over = second.lines(2)
            number = int(taken_over.split()[1].removeprefix("orders-"))
            assert (said, taken_over) == ("paused", f"processed orders-{number} 2")
            assert first.lines(1) == [f"paused orders-{1 - number}"]
            second.interrupt()
        first.kill()


def test_offsets_kept_with_the_results_survive_a_kill(servers: Servers, tmp_path: Path) -> None:
    """Also that of a program which has stored a record and said so to nobody."""
    for _ in range(10):
        for file in tmp_path.glob("totals.db*"):  # with its journal
            file.unlink()
        with servers.running("totals.py", tmp_path) as program:
            program.lines(2)
            program.kill()
        with closing(sqlite3.connect(tmp_path / "totals.db")) as stored:
            (before,) = stored.execute("SELECT count(*) FROM processed").fetchone()
        if before < RECORDS:
            break  # killed too late, it has stored everything, and nothing is left to go on with
    assert before < RECORDS, "ten programs stored everything before they were killed"
    with servers.running("totals.py", tmp_path) as program, closing(sqlite3.connect(tmp_path / "totals.db")) as stored:
        program.lines(RECORDS - before)
        program.interrupt()
        found = stored.execute("SELECT partition, record_offset FROM processed ORDER BY 1, 2").fetchall()
    assert found == [(partition, offset) for partition in (0, 1) for offset in (0, 1, 2)]


def test_batch_is_saved_before_partitions_go_and_not_by_a_process_that_is_killed(
    servers: Servers, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "batches.db")) as stored:
        with servers.running("batches.py", tmp_path) as program:
            program.lines(RECORDS)
            program.kill()
        assert stored.execute("SELECT * FROM processed").fetchall() == []
        with servers.running("batches.py", tmp_path) as program:
            assert all(line.startswith("processed orders-") for line in program.lines(RECORDS))
            assert program.interrupt() == f"saved {RECORDS}\n"
        found = stored.execute("SELECT partition, record_offset FROM processed ORDER BY 1, 2").fetchall()
        assert found == [(partition, offset) for partition in (0, 1) for offset in (0, 1, 2)]
        assert stored.execute("SELECT next_offset FROM offsets").fetchall() == [(3,), (3,)]


def test_group_uses_the_strategy_of_an_installed_package(servers: Servers, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "writing-an-assignor.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(\w*)\n(.*?)```", page, re.DOTALL)
    source, project = (next(text for kind, text in blocks if kind == wanted) for wanted in ("python", "toml"))
    entries = tomllib.loads(project)["project"]["entry-points"][ENTRY_POINTS]
    environment = installed(tmp_path / "site", "standby", source, ENTRY_POINTS, entries)
    with servers.running("standby_group.py", tmp_path, environment) as program:
        assert program.lines(1) == [f"assigned {PARTITIONS}"]
        program.interrupt()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("how_long.py", r"zookeeper +g_host-1-aa-0 +1 +3\.7"),
        ("commits.py", r"zookeeper .* accepted"),
        pytest.param("busiest.py", r"\|m[12] +\|\d+ *\|records_delivered", marks=pytest.mark.long),
    ],
)
def test_analysis_of_the_tables(run_folder: Path, tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / name).write_text(EXAMPLES[name], encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    output = subprocess.check_output(
        [sys.executable, name, str(run_folder)], cwd=tmp_path, env=environment, text=True, timeout=LIMIT_S
    )
    assert re.search(said, output), output
