"""Ctrl-C and SIGTERM against servers that do not do what they should: each command ends within three seconds, with 130.

A command that gives up by itself before the signal has its own exit code, and one line that says why.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import msgspec
import psutil
import pytest

from comparison.cli.main import cli
from comparison.cli.state import STATE_VARIABLE, ServerState, process_start
from comparison.exits import Exit
from comparison.interrupts import LIMIT_VARIABLE
from kernel.waiting import WaitTimeout, wait_until
from tests.comparison.cli import bad_servers
from tests.comparison.cli.bad_servers import BadServer
from tests.support.commands.ended import all_ended
from tests.support.commands.forked import ForkedCommand, Streams

Leaf = tuple[str, ...]

PROMISED_S, PATIENCE_S = 3.0, 240
AT_ONCE = 6
OWN_TASK = Path("/proc/thread-self")
#: The servers, and those of them that only a ZooKeeper can be.
SERVERS: dict[str, Callable[[], AbstractContextManager[BadServer]]] = {
    "silent": lambda: BadServer(bad_servers.silent),
    "full": bad_servers.full,
    "slow": lambda: BadServer(bad_servers.slow),
    "closing": lambda: BadServer(bad_servers.closing),
    "garbage": lambda: BadServer(bad_servers.garbage),
    "huge": lambda: BadServer(bad_servers.huge),
    "endless": lambda: BadServer(bad_servers.endless),
}
ZOOKEEPERS = {**SERVERS, "unread": lambda: BadServer(bad_servers.unread)}

#: Of each command that asks ZooKeeper, its arguments.
TO_ZOOKEEPER: dict[Leaf, Sequence[str]] = {
    ("run",): ["run join --design eager --zookeeper {}"],
    ("compare",): ["compare --smoke --zookeeper {}"],
    ("sweep",): ["sweep --grid scenario=join --grid design=eager --zookeeper {}"],
    ("zookeeper", "status"): ["zookeeper status"],
    ("zookeeper", "znodes"): ["zookeeper znodes / --zookeeper {}"],
    ("broker",): ["broker --port 0 --zookeeper {}", "broker --port 0 --zookeeper {} --detach"],
    ("consume",): ["consume --design zookeeper --group g --topic t --zookeeper {}"],
    ("watch",): ["watch --group g --zookeeper {}", "watch --group g --once --zookeeper {}"],
}
#: The same of those that ask a broker.
TO_BROKER: dict[Leaf, Sequence[str]] = {
    ("broker", "coordinator"): ["broker coordinator g --bootstrap-server {}"],
    ("topic", "add-partitions"): ["topic add-partitions t 1 --bootstrap-server {}"],
    ("topic", "recreate"): ["topic recreate t --bootstrap-server {}"],
    ("topic", "create"): ["topic create t --bootstrap-server {}"],
    ("topic", "delete"): ["topic delete t --bootstrap-server {}"],
    ("topic", "describe"): ["topic describe t --bootstrap-server {}"],
    ("topic", "list"): ["topic list --bootstrap-server {}"],
    ("consume",): [
        f"consume --design {design} --group g --topic t --bootstrap-server {{}}" for design in ("eager", "consumer")
    ],
    ("produce",): ["produce --topic t --bootstrap-server {}"],
    ("watch",): ["watch --group g --bootstrap-server {}"],
    ("doctor",): ["doctor --broker {}"],
    ("analyze",): ["analyze analysed --master spark://{}", "analyze hdfs://{}/runs --output copied"],
}
#: Of those that start processes. They are interrupted when the first has begun.
WITH_CHILDREN: dict[Leaf, Sequence[str]] = {
    ("run",): ["run join --design zookeeper"],
    ("compare",): ["compare --smoke"],
    ("sweep",): ["sweep --grid scenario=join --grid design=eager"],
    ("fuzz",): ["fuzz --schedules 1"],
    ("playground",): ["playground"],
    ("analyze",): ["analyze analysed"],
    ("zookeeper", "start"): ["zookeeper start --port 0", "zookeeper start --port 0 --detach"],
}
#: Those that wait for a process that does not end.
TO_STUBBORN: dict[Leaf, Sequence[str]] = {
    ("zookeeper", "stop"): ["zookeeper stop"],
    ("broker", "stop"): ["broker stop"],
}
#: Those that only read files, and wait for nobody.
LOCAL: set[Leaf] = {
    *(
        (name,)
        for name in (
            *("scenarios", "settings", "report", "diff", "diagram", "trace", "describe", "assign"),
            *("choose", "completion"),
        )
    ),
    ("broker", "status"),
}
SIGNALS = ((signal.SIGINT, os.killpg), (signal.SIGINT, os.kill), (signal.SIGTERM, os.kill))


def leaves(command: click.Command, path: Leaf = ()) -> Iterator[Leaf]:
    """All commands that do something."""
    if not isinstance(command, click.Group):
        yield path
        return
    if command.invoke_without_command:
        yield path
    for name in command.list_commands(click.Context(command)):
        found = command.get_command(click.Context(command), name)
        assert found is not None
        yield from leaves(found, (*path, name))


def test_every_command_has_its_row() -> None:
    rows = {*TO_ZOOKEEPER, *TO_BROKER, *WITH_CHILDREN, *TO_STUBBORN, *LOCAL}
    assert rows == set(leaves(cli))


class Watch:
    """Measures how long a process takes to end, without what it and its descendants wait for a processor."""

    def __init__(self, pid: int, descendants: Sequence[psutil.Process]) -> None:
        self._tasks = [Path(f"/proc/{each}/task") for each in (pid, *(process.pid for process in descendants))]
        self._began_s = time.monotonic()
        self._waited_ns = self._delays_ns()
        self._late_ns = delay_ns(OWN_TASK)

    def wait(self, child: ForkedCommand) -> None:
        """Raises `WaitTimeout` if it takes longer than promised."""
        latest_ns = dict(self._waited_ns)
        while child.poll() is None:
            for task, now_ns in self._delays_ns().items():
                latest_ns[task] = max(now_ns, latest_ns.get(task, 0))  # of one that has just ended, 0 may be read
            waited_ns = sum(now_ns - self._waited_ns.get(task, 0) for task, now_ns in latest_ns.items())
            took_s = time.monotonic() - self._began_s - (waited_ns + delay_ns(OWN_TASK) - self._late_ns) / 1e9
            if took_s > PROMISED_S:
                raise WaitTimeout(f"it has not ended {took_s:.1f} s after the signal")
            time.sleep(0.02)

    def _delays_ns(self) -> dict[Path, int]:
        found: dict[Path, int] = {}
        for tasks in self._tasks:
            with contextlib.suppress(OSError):
                found |= {task: delay_ns(task) for task in tasks.iterdir()}
        return found


def delay_ns(task: Path) -> int:
    """How long a thread has been ready to run without running."""
    with contextlib.suppress(OSError):
        return int((task / "schedstat").read_text().split()[1])
    return 0


@dataclass
class Cell:
    """A command, how it is interrupted, and its own folder."""

    folder: Path
    arguments: str
    by: signal.Signals
    send: Callable[[int, int], None]

    def start(self) -> ForkedCommand:
        environment = {**os.environ, STATE_VARIABLE: str(self.folder), "TMPDIR": str(self.folder)}
        del environment[LIMIT_VARIABLE]
        streams = Streams(self._output, self._output)
        # It leads a group of processes, as when a terminal starts it.
        return ForkedCommand(tuple(self.arguments.split()), self.folder, environment, streams, leads_group=True)

    def judged(self, child: ForkedCommand, is_stuck: Callable[[], object]) -> str:
        """Interrupt the command as soon as it is stuck: what is wrong with its end, or ''."""
        try:
            wait_until(
                lambda: is_stuck() or child.poll() is not None, PATIENCE_S, "the command to get there", every_s=0.1
            )
            began = descendants(child)
            ended_before = child.poll() is not None
            if not ended_before:
                with contextlib.suppress(ProcessLookupError):  # it has ended by itself since
                    watch = Watch(child.pid, began)
                    self.send(child.pid, self.by)
                    watch.wait(child)
            wait_until(lambda: all_ended(began), PATIENCE_S, lambda: f"{began} to end")
        except WaitTimeout as error:
            child.kill()
            child.wait(PATIENCE_S)
            return f"{self}: {error}: {self._output.read_text()}"
        output = self._output.read_text()
        # It may have given up just before the signal.
        gave_up = output.rpartition("Error: ")[1] and child.returncode in (Exit.USAGE, Exit.INTERNAL)
        if "Traceback" in output or not (gave_up or (child.returncode == Exit.INTERRUPTED and not ended_before)):
            return f"{self}: {child.returncode}, {output}"
        return ""

    @property
    def _output(self) -> Path:
        return self.folder / "output.txt"

    def __str__(self) -> str:
        return f"{self.arguments} ({self.by.name} by {self.send.__name__})"


def descendants(child: ForkedCommand) -> list[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(child.pid).children(recursive=True)
    return []


def has_children(child: ForkedCommand) -> bool:
    with contextlib.suppress(OSError):
        return any(file.read_text() for file in Path(f"/proc/{child.pid}/task").glob("*/children"))
    return False


def clients_of(port: int) -> set[bytes]:
    """The addresses that have a connection to this port or are about to have one, in the kernel's notation."""
    rows = [row.split() for name in ("tcp", "tcp6") for row in Path("/proc/net", name).read_bytes().splitlines()[1:]]
    return {local for _, local, remote, *_ in rows if int(remote.rpartition(b":")[2], 16) == port}


def cells(folder: Path, rows: Sequence[str]) -> list[Cell]:
    made = []
    for number, (row, (by, send)) in enumerate(zip(rows, itertools.cycle(SIGNALS), strict=False)):
        own = folder / str(number)
        (own / "analysed").mkdir(parents=True)
        (own / "analysed" / "run.json").write_text("{}")
        made.append(Cell(own, row, by, send))
    return made


def all_rows(rows: dict[Leaf, Sequence[str]]) -> list[str]:
    return [arguments for each in rows.values() for arguments in each]


def remember(cell: Cell, name: str, address: str, pid: int) -> None:
    """As if this command had started a server."""
    started = process_start(pid)
    assert started is not None
    state = ServerState(name=name, pid=pid, started=started, address=address, folder=str(cell.folder))
    (cell.folder / f"{name}.json").write_bytes(msgspec.json.encode(asdict(state)))


def interrupted_at(cell: Cell, opened: AbstractContextManager[BadServer]) -> str:
    with opened as server:
        if cell.arguments == "zookeeper status":
            remember(cell, "zookeeper", server.address, os.getpid())
        cell.arguments = cell.arguments.format(server.address)
        others = clients_of(server.port)
        return cell.judged(cell.start(), lambda: server.peers or clients_of(server.port) - others)


def assert_all_end(folder: Path, rows: dict[Leaf, Sequence[str]], kinds: Sequence[str]) -> None:
    """All commands, each at a server of the next kind."""
    made = zip(cells(folder, all_rows(rows)), itertools.cycle(kinds), strict=False)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        judged = list(pool.map(lambda each: interrupted_at(each[0], ZOOKEEPERS[each[1]]()), made))
    assert not any(judged), "\n".join(filter(None, judged))


def test_commands_end_at_a_bad_zookeeper(tmp_path: Path) -> None:
    assert_all_end(tmp_path, TO_ZOOKEEPER, [*ZOOKEEPERS])


def test_commands_end_at_a_bad_broker(tmp_path: Path) -> None:
    assert_all_end(tmp_path, TO_BROKER, [*SERVERS])


@pytest.mark.long
@pytest.mark.parametrize("kind", ZOOKEEPERS)
def test_all_commands_end_at_each_bad_zookeeper(tmp_path: Path, kind: str) -> None:
    assert_all_end(tmp_path, TO_ZOOKEEPER, [kind])


@pytest.mark.long
@pytest.mark.parametrize("kind", SERVERS)
def test_all_commands_end_at_each_bad_broker(tmp_path: Path, kind: str) -> None:
    assert_all_end(tmp_path, TO_BROKER, [kind])


def test_commands_end_while_what_they_need_starts(tmp_path: Path) -> None:
    def interrupted(cell: Cell) -> str:
        child = cell.start()
        return cell.judged(child, lambda: has_children(child))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        judged = list(pool.map(interrupted, cells(tmp_path, all_rows(WITH_CHILDREN))))
    assert not any(judged), "\n".join(filter(None, judged))


def test_commands_end_while_they_wait_for_a_process_that_does_not(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; signal.signal(signal.SIGTERM, lambda *_: os.write(1, b'!'));"
        "os.write(1, b'.'); sys.stdin.read()"
    )
    stubborn = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with stubborn:
        assert stubborn.stdout is not None
        asked = stubborn.stdout.fileno()
        assert os.read(asked, 1) == b"."
        for cell in cells(tmp_path, all_rows(TO_STUBBORN)):
            remember(cell, cell.arguments.split()[0].replace("broker", "broker-1"), "127.0.0.1:1", stubborn.pid)
            assert not cell.judged(cell.start(), lambda: select.select([asked], [], [], 0)[0])
            assert os.read(asked, 1) == b"!"
