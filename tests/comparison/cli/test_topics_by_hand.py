"""`rebalance-lab topic`, two sets of servers side by side, and servers on ports that the system chooses."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from comparison.exits import Exit
from kernel.platform.ports import free_ports
from kernel.waiting import wait_until
from tests.support.commands.terminals import Terminals, beside_servers


@pytest.fixture(scope="module")
def terminals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminals]:
    with beside_servers(tmp_path_factory.mktemp("topics")) as terminals:
        yield terminals


def test_a_topic_is_created_listed_described_and_deleted(terminals: Terminals) -> None:
    created = terminals.run("topic", "create", "orders", "--partitions", "3", "--set", "retention.ms=60000")
    assert (created.stdout, created.stderr) == ("created orders with 3 partitions\n", "")
    assert terminals.run("produce", "--topic", "orders", "--count", "4", "--rate", "1000").returncode == 0
    assert "orders: 3 partitions" in terminals.run("topic", "list").stdout
    described = json.loads(terminals.run("topic", "describe", "orders", "--format", "json").stdout)
    assert [(row["number"], row["begin_offset"], row["end_offset"]) for row in described["partitions"]] == [
        (0, 0, 2),
        (1, 0, 1),
        (2, 0, 1),
    ]
    stdout = terminals.run("topic", "describe", "orders").stdout
    assert ", offsets 0 to 2" in stdout
    assert "  retention.ms=60000\n" in stdout
    assert described["settings"] == [{"name": "retention.ms", "value": "60000", "note": ""}]
    assert terminals.run("topic", "delete", "orders").stdout == "deleted orders\n"
    assert "orders" not in terminals.run("topic", "list").stdout


def test_a_topic_grows_and_is_recreated_as_it_was(terminals: Terminals) -> None:
    terminals.run("topic", "create", "grown", "--partitions", "2", "--set", "retention.ms=60000")
    assert terminals.run("produce", "--topic", "grown", "--count", "4", "--rate", "1000").returncode == 0
    assert terminals.run("topic", "add-partitions", "grown", "3").stdout == "grown has 5 partitions now\n"
    before = json.loads(terminals.run("topic", "describe", "grown", "--format", "json").stdout)
    assert sum(row["end_offset"] for row in before["partitions"]) == 4
    assert terminals.run("topic", "recreate", "grown").stdout == "recreated grown with 5 partitions\n"
    after = json.loads(terminals.run("topic", "describe", "grown", "--format", "json").stdout)
    assert [row["end_offset"] for row in after["partitions"]] == [0] * 5
    assert after["settings"] == before["settings"]
    assert after["topic_id"] != before["topic_id"]
    again = terminals.run("topic", "recreate", "grown", "--partitions", "1", "--format", "json")
    assert json.loads(again.stdout) == {"topic": "grown", "partitions": 1}


def test_a_setting_without_effect_is_reported_when_its_topic_is_created_and_described(terminals: Terminals) -> None:
    settings = ("--set", "cleanup.policy=compact", "--set", "segment.bytes=2000000", "--set", "retention.ms=60000")
    created = terminals.run("topic", "create", "quiet", *settings)
    assert (created.returncode, created.stdout) == (0, "created quiet with 6 partitions\n")
    assert created.stderr.splitlines() == [
        "warning: cleanup.policy=compact (partly applied on this broker: no record is compacted away)",
        "warning: segment.bytes=2000000 (no effect on this broker)",
    ]
    stdout = terminals.run("topic", "describe", "quiet").stdout
    assert "  cleanup.policy=compact (partly applied on this broker: no record is compacted away)\n" in stdout
    assert "  segment.bytes=2000000 (no effect on this broker)\n" in stdout


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("create", "taken"), "topic 'taken' was not created: TOPIC_ALREADY_EXISTS"),
        (("create", "no", "--set", "retention.ms=abc"), "topic 'no' was not created: INVALID_CONFIG"),
        (("create", "no/slash"), "topic 'no/slash' was not created: INVALID_TOPIC_EXCEPTION"),
        (("create", "no", "--replication-factor", "2"), "topic 'no' was not created: INVALID_REPLICATION_FACTOR"),
        (("describe", "no"), "topic 'no' cannot be described: UNKNOWN_TOPIC_OR_PARTITION"),
        (("delete", "no"), "topic 'no' was not deleted: UNKNOWN_TOPIC_OR_PARTITION. `rebalance-lab topic list`"),
        (("add-partitions", "no", "2"), "topic 'no' got no more partitions: UNKNOWN_TOPIC_OR_PARTITION"),
        (("recreate", "no"), "topic 'no' cannot be described: UNKNOWN_TOPIC_OR_PARTITION"),
        (("describe", "tken"), "UNKNOWN_TOPIC_OR_PARTITION. Did you mean 'taken'?"),
    ],
)
def test_a_refused_operation_on_a_topic_is_reported_and_changes_nothing(
    terminals: Terminals, arguments: tuple[str, ...], complaint: str
) -> None:
    terminals.run("topic", "create", "taken")
    before = terminals.run("topic", "list").stdout
    refused = terminals.run("topic", *arguments)
    assert refused.returncode == Exit.USAGE
    assert complaint in refused.stderr
    assert terminals.run("topic", "list").stdout == before


def test_an_auto_created_topic_has_partitions_for_several_members(terminals: Terminals) -> None:
    assert terminals.run("produce", "--topic", "demanded", "--count", "1").returncode == 0
    assert "demanded: 6 partitions" in terminals.run("topic", "list").stdout


def test_a_member_that_gets_nothing_says_so(terminals: Terminals) -> None:
    assert terminals.run("topic", "create", "single", "--partitions", "1").returncode == 0
    arguments = ("consume", "--design", "zookeeper", "--group", "g", "--topic", "single")
    members = []
    for _ in range(2):
        member, output = terminals.open(*arguments)
        wait_until(
            lambda output=output: "assigned" in output.read_text(),
            60,
            lambda output=output: f"an assignment: {output.read_text()}",
        )
        members.append((member, output))
    wait_until(
        lambda: any("assigned: nothing" in output.read_text() for _, output in members),
        60,
        lambda: f"a member to own nothing: {[output.read_text() for _, output in members]}",
    )
    for member, _ in members:
        member.send_signal(signal.SIGINT)
    assert [member.wait(120) for member, _ in members] == [0, 0]


def test_a_second_set_of_servers_has_its_own_folder(terminals: Terminals, tmp_path: Path) -> None:
    second = ("--state", str(tmp_path / "second"))
    refused = terminals.run("zookeeper", "start", "--detach", "--port", "0")
    assert refused.returncode == Exit.USAGE
    assert "--state" in refused.stderr
    try:
        assert terminals.run("zookeeper", "start", "--detach", "--port", "0", *second).returncode == 0
        broker = terminals.run("broker", "--detach", "--port", "0", *second)
        assert broker.returncode == 0, broker.stderr
        assert broker.stdout.strip() in terminals.run("broker", "status", *second).stdout
        assert broker.stdout.strip() not in terminals.run("broker", "status").stdout
        assert terminals.run("topic", "create", "only-there", *second).returncode == 0
        assert "only-there" not in terminals.run("topic", "list").stdout
    finally:
        terminals.run("broker", "stop", *second)
        terminals.run("zookeeper", "stop", *second)


def test_a_broker_without_zookeeper_says_so_and_can_be_stopped(terminals: Terminals) -> None:
    (nobody,) = free_ports(1)
    broker, output = terminals.open("broker", "--zookeeper", f"127.0.0.1:{nobody}", "--port", "0")
    wait_until(
        lambda: "no ZooKeeper answers at" in output.read_text(), 120, lambda: f"the warning: {output.read_text()}"
    )
    broker.send_signal(signal.SIGINT)
    assert broker.wait(15) == Exit.INTERRUPTED  # the default of zookeeper.connection.timeout.ms is 18 s
    impatient = (
        "broker",
        "--zookeeper",
        f"127.0.0.1:{nobody}",
        "--port",
        "0",
        "-c",
        "zookeeper.connection.timeout.ms=300",
    )
    for where in ((), ("--detach",)):
        alone = terminals.run(*impatient, "--port", "0", *where)
        assert alone.returncode == Exit.INTERNAL
        assert "accepted a session within 300 ms" in alone.stderr
    garbage = terminals.run("broker", "--zookeeper", "garbage", "--port", "0")
    assert garbage.returncode == Exit.USAGE
    assert "'garbage' has no port" in garbage.stderr
