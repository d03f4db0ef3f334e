"""The README's commands, each in its own terminal, lose nothing when they are stopped or killed.

There are ZooKeeper, one broker without broker.id, a consumer of each kind of group, and a producer. In each round
some of them are stopped (Ctrl-C) or killed (`kill -9`) and started again with the same command, and more records are
produced. In the end every record is stored once, both groups have received all of them, and no committed offset has
changed.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest
from kazoo.client import KazooClient

from comparison.cli.state import STATE_VARIABLE
from kernel.client.connection import BrokerConnection
from kernel.platform.ports import free_ports
from kernel.waiting import wait_until
from kernel.wire.errors import error_name
from kernel.wire.versions import Api
from kernel.zookeeper import paths
from tests.support.commands.ended import all_ended
from tests.support.commands.forked import ForkedCommand, Streams

TOPIC = "orders"
RECORDS = 660
#: The two consumers' terminals, which are also the names of their groups.
CONSUMERS = ("watching", "joining")
EVERYTHING = ("zookeeper", "broker", *CONSUMERS)
STOP, KILL = signal.SIGINT, signal.SIGKILL
#: Which commands end, and how; they are started again in this order.
SHORT = ((("broker",), STOP), (("broker",), KILL), (EVERYTHING, KILL))
LONG = (
    *SHORT,
    (("zookeeper", "broker"), STOP),
    (("zookeeper",), STOP),
    (("zookeeper",), KILL),
    (EVERYTHING, STOP),
    (("zookeeper", "broker"), KILL),
    (("broker", "joining"), KILL),
    (("zookeeper", *CONSUMERS), KILL),
)
#: Long enough for busy machines, and for a killed consumer's session of six seconds to end.
PATIENCE_S = 60.0

Offsets = dict[str, dict[int, int]]


class Terminal:
    """One command that runs until it is stopped or killed; `output` has the output of all its runs."""

    def __init__(self, folder: Path, name: str, arguments: tuple[str, ...]) -> None:
        self.output = folder / f"{name}.out"
        self._folder = folder
        self._arguments = arguments
        self._environment = {**os.environ, STATE_VARIABLE: str(folder / "state")}
        self._process: ForkedCommand | None = None
        self._starts = 0

    def start(self) -> None:
        self._starts += 1
        streams = Streams(self.output, self.output)
        self._process = ForkedCommand(self._arguments, self._folder, self._environment, streams)

    def end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            began = psutil.Process(process.pid).children(recursive=True)
            process.send_signal(how)
            process.wait(PATIENCE_S)
            wait_until(lambda: all_ended(began), PATIENCE_S, lambda: f"{began} to end")  # and to leave their ports

    def serves(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.said()
        return self.said().count("stop with Ctrl-C") == self._starts

    def said(self) -> str:
        return self.output.read_text(encoding="utf-8", errors="replace")

    def given(self) -> set[str]:
        """The values of the records that a consumer received; a kill may truncate its last line."""
        lines = [line for line in self.said().splitlines() if '"event":"record"' in line and line.endswith("}")]
        return {json.loads(line)["value"] for line in lines}

    def until_given(self, values: set[str]) -> None:
        def described() -> str:
            return f"{len(values - self.given())} records to come: {self.said()[-2000:]}"

        wait_until(lambda: values <= self.given(), PATIENCE_S, described, every_s=0.1)

    def run(self, given: str) -> str:
        """Run a command to its end with this standard input."""
        self._starts += 1
        output, errors, typed = (self.output.with_suffix(f".{self._starts}.{kind}") for kind in ("out", "err", "in"))
        typed.write_text(given)
        streams = Streams(output, errors, typed)
        code = ForkedCommand(self._arguments, self._folder, self._environment, streams).wait(PATIENCE_S)
        assert code == 0, errors.read_text()
        return output.read_text()


class ByHand:
    """The terminals of one user."""

    def __init__(self, folder: Path) -> None:
        zookeeper_port, self._port = free_ports(2)
        self._zookeeper = f"127.0.0.1:{zookeeper_port}"
        consume: tuple[str, ...] = ("consume", "--topic", TOPIC, "--print", "records", "--format", "json")
        consume += ("--set", "auto.commit.interval.ms=300")
        commands = {
            "zookeeper": ("zookeeper", "start", "--port", str(zookeeper_port)),
            "broker": ("broker", "--zookeeper", self._zookeeper, "--port", str(self._port)),
            "watching": (
                *(*consume, "--design", "zookeeper", "--group", "watching", "--set", "auto.offset.reset=smallest"),
                *("--zookeeper", self._zookeeper),
            ),
            "joining": (
                *(*consume, "--design", "eager", "--group", "joining", "--set", "auto.offset.reset=earliest"),
                *("--set", "session.timeout.ms=6000", "--bootstrap-server", f"127.0.0.1:{self._port}"),
            ),
            "produce": ("produce", "--topic", TOPIC, "--stdin", "--format", "json"),
        }
        self.terminals = {name: Terminal(folder, name, arguments) for name, arguments in commands.items()}
        self.sent: set[str] = set()
        self.stored: list[tuple[int, int]] = []

    def start(self, *names: str) -> None:
        for name in names:
            terminal = self.terminals[name]
            terminal.start()
            if name not in CONSUMERS:
                wait_until(
                    terminal.serves, PATIENCE_S, lambda terminal=terminal: f"the server to serve: {terminal.said()}"
                )

    def end(self, how: signal.Signals, *names: str) -> None:
        for name in names:
            self.terminals[name].end(how)

    def produce(self, count: int) -> None:
        values = [f"order {number}" for number in range(len(self.sent), len(self.sent) + count)]
        said = self.terminals["produce"].run("".join(f"{value}\n" for value in values))
        self.stored += [(row["partition"], row["offset"]) for row in map(json.loads, said.splitlines())]
        self.sent.update(values)

    def ends(self) -> dict[int, int]:
        ends: dict[int, int] = {}
        for partition, offset in self.stored:
            ends[partition] = max(ends.get(partition, 0), offset + 1)
        return ends

    def until_all_is_given_and_committed(self) -> None:
        for name in CONSUMERS:
            self.terminals[name].until_given(self.sent)
        self.until_committed(dict.fromkeys(CONSUMERS, self.ends()))

    def until_committed(self, wanted: Offsets) -> None:
        wait_until(
            lambda: self.committed() == wanted,
            PATIENCE_S,
            lambda: f"commits of {wanted}, got {self.committed()}",
            every_s=0.2,
        )

    def committed(self) -> Offsets:
        """The offsets of both groups, from ZooKeeper and from the broker."""
        ends = self.ends()
        client = KazooClient(self._zookeeper)
        client.start()
        try:
            nodes = {partition: client.exists(paths.offset("watching", TOPIC, partition)) for partition in ends}
            watching = {
                partition: int(client.get(paths.offset("watching", TOPIC, partition))[0])
                for partition, stat in nodes.items()
                if stat is not None
            }
        finally:
            client.stop()
            client.close()
        return {"watching": watching, "joining": asyncio.run(self._fetched(sorted(ends)))}

    async def _fetched(self, partitions: list[int]) -> dict[int, int]:
        connection = await BrokerConnection.open("127.0.0.1", self._port, "test")
        try:
            asked = {"group_id": "joining", "topics": [{"name": TOPIC, "partition_indexes": tuple(partitions)}]}
            answer = await connection.call(Api.OffsetFetch, asked, version=5)
            assert error_name(answer.error_code) in ("", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"), answer
            found = [partition for topic in answer.topics for partition in topic.partitions]
            return {one.partition_index: one.committed_offset for one in found if one.committed_offset >= 0}
        finally:
            connection.close()


@pytest.fixture
def by_hand(tmp_path: Path) -> Iterator[ByHand]:
    user = ByHand(tmp_path)
    yield user
    user.end(KILL, *reversed(EVERYTHING))


@pytest.mark.parametrize(
    "faults", [pytest.param(SHORT, id="short"), pytest.param(LONG, id="long", marks=pytest.mark.long)]
)
def test_commands_of_the_readme_lose_nothing_when_any_of_them_is_stopped_or_killed(
    by_hand: ByHand, faults: Sequence[tuple[tuple[str, ...], signal.Signals]]
) -> None:
    by_hand.start("zookeeper", "broker")
    share = RECORDS // (len(faults) + 1)
    by_hand.produce(RECORDS - share * len(faults))
    by_hand.start(*CONSUMERS)
    by_hand.until_all_is_given_and_committed()
    for who, how in faults:
        before = by_hand.committed()
        by_hand.end(how, *reversed(who))
        by_hand.start(*who)
        by_hand.until_committed(before)
        by_hand.produce(share)
        by_hand.until_all_is_given_and_committed()
    assert len(by_hand.sent) == RECORDS
    assert sorted(by_hand.stored) == [(partition, o) for partition, end in by_hand.ends().items() for o in range(end)]
    assert {name: by_hand.terminals[name].given() for name in CONSUMERS} == dict.fromkeys(CONSUMERS, by_hand.sent)
