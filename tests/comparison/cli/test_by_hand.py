"""A session by hand in several terminals: ZooKeeper, a broker, consumers of both designs, a producer."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from comparison.cli.state import process_start
from comparison.exits import Exit
from comparison.interrupts import LIMIT_VARIABLE
from kernel.platform.ports import free_ports
from kernel.waiting import wait_until
from tests.support.commands.terminals import Terminals

PARTITIONS = 4


def all_events(output: Path) -> list[dict[str, Any]]:
    """The JSON lines printed so far, except one that is still being written."""
    whole, _, _ = output.read_text().rpartition("\n")
    return [json.loads(line) for line in whole.splitlines() if line.startswith("{")]


def events(output: Path, kind: str) -> list[dict[str, Any]]:
    return [event for event in all_events(output) if event["event"] == kind]


def completed(output: Path) -> list[dict[str, Any]]:
    """The rebalances that came to an end. One that the departure of the other member set off may not have."""
    return [rebalance for rebalance in events(output, "rebalance") if rebalance["outcome"] == "ok"]


def owned(output: Path) -> set[int]:
    """The partitions that the consumer's lines show as its own; empty until the last rebalance has ended."""
    now: set[int] = set()
    ended = False
    for event in all_events(output):
        kind = event["event"]
        partitions = {row["partition"] for row in event.get("partitions", [])}
        if kind == "assigned":
            now |= partitions
        elif kind in {"revoked", "lost"}:
            now -= partitions
        # The line of a rebalance comes after those of what it revoked and assigned.
        if kind in {"assigned", "revoked", "lost", "rebalance"}:
            ended = kind == "rebalance" and event["outcome"] == "ok"
    return now if ended else set()


@pytest.fixture(scope="module")
def terminals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminals]:
    terminals = Terminals(tmp_path_factory.mktemp("by-hand"))
    zookeeper_port, broker_port = free_ports(2)
    started = terminals.run("zookeeper", "start", "--detach", "--port", str(zookeeper_port))
    assert started.stdout.strip() == f"127.0.0.1:{zookeeper_port}", started.stderr
    settings = ("num.partitions=4", "group.initial.rebalance.delay.ms=0", "group.min.session.timeout.ms=1000")
    arguments = [part for setting in settings for part in ("--set", setting)]
    broker = terminals.run("broker", "--detach", "--port", str(broker_port), *arguments)
    assert broker.stdout.strip() == f"127.0.0.1:{broker_port}", broker.stderr
    yield terminals
    terminals.close()


@pytest.mark.parametrize(
    ("design", "settings"),
    [
        (
            "zookeeper",
            (
                "auto.offset.reset=smallest",
                "rebalance.backoff.ms=300",
                "rebalance.max.retries=30",
                "zookeeper.session.timeout.ms=30000",
            ),
        ),
        ("server", ("auto.offset.reset=earliest", "zookeeper.session.timeout.ms=30000")),
        ("eager", ("auto.offset.reset=earliest", "heartbeat.interval.ms=300")),
    ],
)
def test_two_consumers_share_a_topic_and_show_what_they_read(
    terminals: Terminals, design: str, settings: tuple[str, ...]
) -> None:
    topic = f"by-{design}"
    produced = terminals.run("produce", "--topic", topic, "--count", "8", "--rate", "1000", "--format", "json")
    assert produced.returncode == 0, produced.stderr
    stored = [json.loads(line) for line in produced.stdout.splitlines()]
    assert sorted((row["partition"], row["offset"]) for row in stored) == [(p, o) for p in range(4) for o in range(2)]

    arguments = ["consume", "--design", design, "--group", f"g-{design}", "--topic", topic]
    arguments += ["--print", "records", "--format", "json"]
    arguments += [part for setting in settings for part in ("--set", setting)]
    first, first_output = terminals.open(*arguments)
    wait_until(lambda: len(events(first_output, "record")) == 8, 120, lambda: f"8 records: {first_output.read_text()}")
    second, second_output = terminals.open(*arguments)
    wait_until(
        lambda: len(owned(first_output)) == len(owned(second_output)) == 2,
        120,
        lambda: f"two partitions each: {first_output.read_text()}{second_output.read_text()}",
    )
    assert owned(first_output) | owned(second_output) == set(range(PARTITIONS))

    for child in (first, second):
        child.send_signal(signal.SIGINT)
    assert [child.wait(120) for child in (first, second)] == [0, 0]
    assert events(first_output, "left")[0]["records"] == 8
    for output in (first_output, second_output):
        rebalances = events(output, "rebalance")
        assert {rebalance["outcome"] for rebalance in rebalances} <= {"ok", "superseded"}
        last = completed(output)[-1]
        assert last["member"]
        assert last["took_ms"] > 0
        assert last["phases_ms"]
        assert bool(last["coordinator"]) is (design != "zookeeper")
        assert (last["generation"] is None) is (design == "zookeeper")
    both = [{r["generation"]: r["leader"] for r in completed(output)} for output in (first_output, second_output)]
    members = {completed(output)[-1]["member"] for output in (first_output, second_output)}
    assert len(members) == 2
    if design == "eager":
        # In the last rebalance of both: when one has left, the other may have one more.
        last_of_both = max(both[0].keys() & both[1].keys())
        assert both[0][last_of_both] == both[1][last_of_both]
        assert both[0][last_of_both] in members
    else:
        assert {leader for leaders in both for leader in leaders.values()} == {""}
    assert events(first_output, "revoked")
    assert [event["serial"] for event in events(first_output, "record") if event["partition"] == 0] == [0, 1]


def test_a_group_s_znodes_and_the_broker_that_coordinates_it_are_shown(terminals: Terminals) -> None:
    terminals.run("topic", "create", "shown", "--partitions", "2")
    consuming, output = terminals.open("consume", "--design", "zookeeper", "--group", "shown", "--topic", "shown")
    wait_until(lambda: "rebalance" in output.read_text(), 120, output.read_text)
    assert f"started: pid {consuming.pid}" in output.read_text()
    znodes = terminals.run("zookeeper", "znodes", "/consumers/shown/owners").stdout.splitlines()
    assert [line.partition(" = ")[0] for line in znodes] == [f"/consumers/shown/owners/shown/{n}" for n in range(2)]
    assert all(line.endswith("-0 (ephemeral)") for line in znodes)
    consuming.send_signal(signal.SIGINT)
    assert consuming.wait(120) == 0
    missing = terminals.run("zookeeper", "znodes", "/consumers/nobody")
    assert (missing.returncode, missing.stderr) == (Exit.NOT_AS_EXPECTED, "no znode /consumers/nobody\n")
    # The hash code of "e" is 101.
    found = terminals.run("broker", "coordinator", "e")
    assert found.stdout.startswith("e: partition 1 of 50, broker 1001 at 127.0.0.1:"), found.stderr


def test_a_consumer_by_pattern_reads_all_topics_that_match(terminals: Terminals) -> None:
    for topic in ("salt-1", "salt-2", "pepper"):
        produced = terminals.run("produce", "--topic", topic, "--count", "4", "--rate", "1000")
        assert produced.returncode == 0, produced.stderr
    read = terminals.run(
        *("consume", "--design", "zookeeper", "--group", "p", "--whitelist", "salt-.", "--streams", "2"),
        *("--max-records", "8", "--set", "auto.offset.reset=smallest", "--set", "fix.claim.before.offsets=true"),
        *("--print", "records"),
    )
    assert read.returncode == 0, read.stderr
    assert "assigned: salt-1-0, salt-1-1, salt-2-0, salt-2-1 (stream 0)" in read.stdout
    assert "assigned: salt-1-2, salt-1-3, salt-2-2, salt-2-3 (stream 1)" in read.stdout
    assert read.stdout.count("record: salt-") == 8
    assert "pepper" not in read.stdout
    for design, option in (("eager", "--whitelist"), ("cooperative", "--regex"), ("consumer", "--regex")):
        read = terminals.run(
            *("consume", "--design", design, "--group", f"by-{design}", option, "salt-.", "--max-records", "8"),
            *("--set", "auto.offset.reset=earliest", "--print", "records"),
        )
        assert read.returncode == 0, read.stderr
        assert read.stdout.count("record: salt-") == 8
        assert "pepper" not in read.stdout


def test_a_regex_is_read_by_the_rule_of_the_designs_time(terminals: Terminals) -> None:
    """A lookahead is Java's; RE2 has none, and the coordinator of KIP-848 says so."""
    for topic in ("oil", "oats"):
        assert terminals.run("produce", "--topic", topic, "--count", "1").returncode == 0
    lookahead = ("--regex", "o(?!il).*", "--set", "auto.offset.reset=earliest", "--max-records", "1")
    read = terminals.run("consume", "--design", "eager", "--group", "java", *lookahead)
    assert "assigned: oats-0" in read.stdout, read.stderr
    refused = terminals.run("consume", "--design", "consumer", "--group", "re2", *lookahead)
    assert refused.returncode == Exit.USAGE
    assert "INVALID_REGULAR_EXPRESSION" in refused.stderr


@pytest.mark.parametrize(
    ("design", "reset"), [("zookeeper", "smallest"), ("server", "earliest"), ("eager", "earliest")]
)
def test_a_consumer_leaves_after_exactly_as_many_records_as_asked_for(
    terminals: Terminals, design: str, reset: str
) -> None:
    """The next one reads the others: none is taken without being printed."""
    topic = f"counted-{design}"
    produced = terminals.run("produce", "--topic", topic, "--count", "20", "--rate", "1000")
    assert produced.returncode == 0, produced.stderr
    records: list[tuple[int, int]] = []
    for number in (3, 6, 11):
        read = terminals.run(
            *("consume", "--design", design, "--group", topic, "--topic", topic, "--max-records", str(number)),
            *("--set", f"auto.offset.reset={reset}", "--print", "records", "--format", "json"),
        )
        assert read.returncode == 0, read.stderr
        rows = [event for line in read.stdout.splitlines() if (event := json.loads(line))["event"] == "record"]
        assert len(rows) == number
        records += [(row["partition"], row["offset"]) for row in rows]
    assert sorted(records) == [(partition, offset) for partition in range(4) for offset in range(5)]


def test_lines_of_standard_input_are_produced_and_read_as_text(terminals: Terminals) -> None:
    produced = terminals.run("produce", "--topic", "words", "--stdin", given="salt\npepper\n")
    assert produced.returncode == 0, produced.stderr
    read = terminals.run(
        *("consume", "--design", "eager", "--group", "w", "--topic", "words:2", "--max-records", "2"),
        *("--set", "auto.offset.reset=earliest", "--print", "records"),
    )
    assert read.returncode == 0, read.stderr
    assert "words-0 @0 salt" in read.stdout
    # Two streams are two members whose ids the coordinator generates: either may come first, and briefly own all.
    assigned = {line.partition(" (")[0] for line in read.stdout.splitlines() if line.startswith("assigned")}
    halves = {"assigned: words-0, words-1", "assigned: words-2, words-3"}
    assert assigned - halves <= {"assigned: words-0..3"}
    assert assigned >= halves or assigned - halves


def test_a_producer_that_waits_for_input_ends_on_sigint(terminals: Terminals) -> None:
    producing, output = terminals.type_into("produce", "--topic", "typed", "--stdin")
    assert producing.stdin is not None
    producing.stdin.write("typed by hand\n")
    producing.stdin.flush()
    wait_until(lambda: "stored" in output.read_text(), 120, "the first line to be stored")
    producing.send_signal(signal.SIGINT)
    assert producing.wait(120) == 0


def test_a_file_is_produced_line_by_line(terminals: Terminals, tmp_path: Path) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("one\ntwo\n")
    produced = terminals.run("produce", "--topic", "filed", "--stdin", given=lines)
    assert produced.stdout.count("stored") == 2, produced.stderr


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (
            ("--set", "rebalance.backoff.ms=1"),
            "rebalance.backoff.ms is a setting of members of zookeeper",
        ),
        (("--set", "rebalance.back=1"), "rebalance.back"),
        (("--zookeeper", "127.0.0.1:1"), "members of eager do not speak to ZooKeeper. Leave out --zookeeper"),
    ],
)
def test_what_does_not_apply_is_refused(terminals: Terminals, given: tuple[str, ...], complaint: str) -> None:
    made = terminals.run("consume", "--design", "eager", "--group", "s", "--topic", "words", *given)
    assert (made.returncode, made.stdout) == (Exit.USAGE, "")
    assert complaint in made.stderr


def test_status_and_stop_find_the_running_servers(tmp_path: Path) -> None:
    terminals = Terminals(tmp_path)
    (port,) = free_ports(1)
    assert terminals.run("zookeeper", "start", "--detach", "--port", str(port)).returncode == 0
    # A server that is paused for three seconds counts as one that does not answer.
    status: Any = wait_until(
        lambda: (told := terminals.run("zookeeper", "status")).returncode == 0 and told, 120, "the server to answer"
    )
    assert "standalone" in status.stdout
    again = terminals.run("zookeeper", "start", "--detach", "--port", "0")
    assert again.returncode == Exit.USAGE
    assert "runs already" in again.stderr
    pid = int(status.stdout.split("pid=")[1].split()[0])
    assert terminals.run("zookeeper", "stop").returncode == 0
    assert process_start(pid) is None
    assert terminals.run("zookeeper", "status").returncode == Exit.NOT_AS_EXPECTED


def test_a_consumer_whose_broker_is_gone_says_when_the_group_notices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "0.3")  # it gives up by itself after two seconds
    zookeeper_port, broker_port = free_ports(2)
    with closing(Terminals(tmp_path)) as terminals:
        assert terminals.run("zookeeper", "start", "--detach", "--port", str(zookeeper_port)).returncode == 0
        assert terminals.run("broker", "--detach", "--port", str(broker_port)).returncode == 0
        consumer, output = terminals.open("consume", "--design", "eager", "--group", "g", "--topic", "t")
        wait_until(lambda: "\nassigned: t-0" in output.read_text(), 120, output.read_text)
        assert terminals.run("broker", "stop").returncode == 0
        consumer.send_signal(signal.SIGINT)
        assert consumer.wait(120) == Exit.INTERRUPTED
        assert output.read_text().endswith("before it could leave; the group notices when its session ends\n")
