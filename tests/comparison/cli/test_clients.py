"""The defaults of `consume`, and how it shows a member's partitions."""

from __future__ import annotations

from pathlib import Path

import pytest

from comparison.cli.clients import STREAMS_MAX, topics_of, zookeeper_of
from comparison.cli.printing import Printer
from comparison.cli.state import STATE_VARIABLE, this_process, write_state
from kernel.errors import ConfigurationError
from kernel.values import TopicPartition


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ZooKeeper with a broker registered under a chroot; this process counts as both."""
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path))
    write_state(this_process("zookeeper", "127.0.0.1:2181", tmp_path))
    write_state(this_process("broker-9092", "127.0.0.1:9092", tmp_path, zookeeper="127.0.0.1:2181/lab"))
    return tmp_path


@pytest.mark.parametrize(
    ("design", "given", "bootstrap", "taken"),
    [
        ("server", None, None, "127.0.0.1:2181/lab"),  # or its coordinator would never see it
        ("server", None, "elsewhere:9092", "127.0.0.1:2181"),
        ("server", "zk:1/a", None, "zk:1/a"),
        ("zookeeper", None, None, "127.0.0.1:2181"),
        ("eager", "zk:1/a", None, ""),
    ],
)
@pytest.mark.usefixtures("started")
def test_member_of_the_server_design_registers_in_its_brokers_chroot(
    design: str, given: str | None, bootstrap: str | None, taken: str
) -> None:
    assert zookeeper_of(design, given, bootstrap) == taken


def test_brokers_registered_in_two_places_need_a_choice(started: Path) -> None:
    write_state(this_process("broker-9093", "127.0.0.1:9093", started, zookeeper="127.0.0.1:2181/other"))
    with pytest.raises(ConfigurationError, match=r"2181/lab and 127\.0\.0\.1:2181/other. Choose with --zookeeper"):
        zookeeper_of("server", None, None)


async def test_partitions_that_a_member_keeps_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    t = [TopicPartition("t", number) for number in range(5)]
    printer = Printer("text")
    printer.assignment = lambda: {0: frozenset(t)}
    await printer.on_assigned(0, frozenset(t))
    await printer.on_assigned(0, frozenset({t[0], *t[2:]}))
    printer.assignment = lambda: {0: frozenset(t[:2])}
    await printer.on_assigned(0, frozenset(t[:2]))
    await printer.on_assigned(0, frozenset(t[1:2]))
    await printer.on_assigned(0, frozenset())
    await printer.on_assigned(1, frozenset())
    assert capsys.readouterr().out.splitlines() == [
        "assigned: t-0..4 (stream 0)",
        "assigned: t-0, t-2..4 (stream 0), keeps t-1",
        "assigned: t-0, t-1 (stream 0)",
        "assigned: t-1 (stream 0), keeps t-0",
        "assigned: nothing (stream 0), keeps t-0, t-1",
        "assigned: nothing (stream 1)",
    ]


def test_topic_argument_may_have_a_number_of_streams() -> None:
    assert topics_of(["t", "u:3", f"v:{STREAMS_MAX}"]) == {"t": 1, "u": 3, "v": STREAMS_MAX}


@pytest.mark.parametrize("streams", ["0", "1001", "99999999999", "9" * 5_000, "-1", "two", "²", ""])
def test_impossible_number_of_streams_is_refused_before_anything_starts(streams: str) -> None:
    with pytest.raises(ConfigurationError, match="with 1 to 1,000 streams"):
        topics_of([f"t:{streams}"])
