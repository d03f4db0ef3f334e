"""Commands for use by hand say why nothing happens, once for each reason, and when that is over: real processes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from comparison.exits import Exit
from kernel.waiting import wait_until
from tests.support.commands.terminals import Command, Terminals, beside_servers

LONG_S = 120
#: What a member says is decided in one place, from what ZooKeeper or a coordinator tells: most changes need no more
#: than one design for each of the two.
_OTHER_DESIGNS = [
    pytest.param(design, marks=pytest.mark.long)
    for design in ("server", "static", "cooperative", "delayed", "consumer")
]


@pytest.fixture(scope="module")
def terminals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminals]:
    quick = ("--set", "auto.create.topics.enable=false", "--set", "group.initial.rebalance.delay.ms=0")
    with beside_servers(tmp_path_factory.mktemp("idle"), *quick) as terminals:
        for topic in ("orders-eu", "bills-eu"):
            assert terminals.run("topic", "create", topic, "--partitions", "2").returncode == 0
        yield terminals


def _consuming(terminals: Terminals, design: str, group: str, *arguments: str) -> tuple[Command, Path]:
    named = ("--set", "group.instance.id=first") if design == "static" else ()
    return terminals.open("consume", "--design", design, "--group", group, *arguments, *named)


def _says(output: Path, words: str) -> None:
    wait_until(lambda: words in output.read_text(), LONG_S, lambda: f"{words!r} in: {output.read_text()}")


def _ended(child: Command, code: Exit = Exit.AS_EXPECTED) -> None:
    child.send_signal(signal.SIGINT)
    assert child.wait(120) == code


@pytest.mark.parametrize("design", ["zookeeper", "eager", *_OTHER_DESIGNS])
def test_mistyped_topic_is_named_until_it_exists(terminals: Terminals, design: str) -> None:
    """In the classic designs the member sees a new topic when its metadata is old enough."""
    topic = f"orders-{design}"
    age = () if design in ("zookeeper", "server") else ("--set", "metadata.max.age.ms=500")
    child, output = _consuming(terminals, design, f"named-{design}", "--topic", topic, *age)
    _says(output, f"waiting: topic '{topic}' does not exist. Did you mean 'orders-")
    assert terminals.run("topic", "create", topic, "--partitions", "1").returncode == 0
    if design != "zookeeper":  # which looks at its topics when the group changes
        _says(output, "over: this consumer owns 1 partition")
    said = output.read_text()
    assert said.count(f"topic '{topic}' does not exist") == 1
    _ended(child)


@pytest.mark.parametrize(
    ("design", "pattern", "meant"),
    [
        ("zookeeper", "bills-e*", "bills-e.*"),
        pytest.param("eager", "bills", "bills.*", marks=pytest.mark.long),
        pytest.param("consumer", "bills-eu,x", "bills-eu|x", marks=pytest.mark.long),
    ],
)
def test_pattern_that_matches_nothing_is_shown_as_an_expression(
    terminals: Terminals, design: str, pattern: str, meant: str
) -> None:
    child, output = _consuming(terminals, design, f"pattern-{design}", "--whitelist", pattern)
    _says(output, f"waiting: pattern '{pattern}' matches no topic of ")
    _says(output, f"did you mean '{meant}', which matches 'bills-eu'?")
    _ended(child)


@pytest.mark.parametrize(
    "design",
    [pytest.param("zookeeper", marks=pytest.mark.long), pytest.param("server", marks=pytest.mark.long), "cooperative"],
)
def test_streams_without_partitions_are_counted_and_stdout_keeps_its_lines(terminals: Terminals, design: str) -> None:
    child, output = _consuming(terminals, design, f"many-{design}", "--topic", "orders-eu:3")
    _says(
        output,
        f"waiting: 2 partitions of 'orders-eu' are shared by 3 streams of group 'many-{design}', which leaves 1 of the "
        "3 streams of this consumer with nothing",
    )
    watched = terminals.run("watch", "--group", f"many-{design}", "--once")
    if design != "zookeeper":  # there a member has all its streams
        assert f"shared by 3 streams of group 'many-{design}', which leaves member " in watched.stdout, watched.stdout
    _ended(child)


@pytest.mark.parametrize("command", ["consume", "watch"])
def test_chroot_that_does_not_exist_is_named(terminals: Terminals, command: str) -> None:
    address = terminals.run("zookeeper", "status").stdout.split()[0]
    arguments = ("--design", "zookeeper", "--topic", "t") if command == "consume" else ("--once",)
    refused = terminals.run(command, "--group", "g", "--zookeeper", f"{address}/consumers/nope", *arguments)
    assert refused.returncode == (Exit.USAGE if command == "consume" else Exit.INTERNAL), refused.stderr
    assert "the chroot /consumers/nope does not exist (only /consumers does). Correct it" in refused.stderr


def test_zookeeper_without_brokers_is_said(terminals: Terminals) -> None:
    child, output = _consuming(terminals, "zookeeper", "g", "--topic", "t", *_empty_chroot(terminals))
    _says(output, "waiting: no broker is registered in ZooKeeper. Start one with `rebalance-lab broker`")
    _ended(child)


def test_coordinator_in_another_chroot_is_said_in_the_server_design(terminals: Terminals) -> None:
    elsewhere = _empty_chroot(terminals)
    child, output = _consuming(terminals, "server", "elsewhere", "--topic", "orders-eu", *elsewhere)
    _says(output, "does not see this consumer's znode. Give --zookeeper with the servers and the chroot of the brokers")
    _ended(child, Exit.INTERRUPTED)  # before it has joined


def test_producer_says_that_its_topic_does_not_exist_and_goes_on(terminals: Terminals) -> None:
    child, output = terminals.open("produce", "--topic", "order-new", "--count", "1")
    _says(output, "waiting: topic 'order-new' does not exist, and the brokers do not create it")
    assert terminals.run("topic", "create", "order-new").returncode == 0
    _says(output, "over: topic 'order-new' has leaders")
    assert child.wait(60) == 0
    assert "stored: order-new-0 @0" in output.read_text()


def test_broker_says_why_its_group_has_no_coordinator_and_another_reason_follows(tmp_path: Path) -> None:
    terminals = Terminals(tmp_path)
    try:
        assert terminals.run("zookeeper", "start", "--detach", "--port", "0").returncode == 0
        three = ("--set", "offsets.topic.replication.factor=3", "--set", "num.partitions=1")
        assert terminals.run("broker", "--detach", "--port", "0", *three).returncode == 0
        why = (
            "COORDINATOR_NOT_AVAILABLE (__consumer_offsets could not be created: replication factor 3 needs as many "
            "live brokers, but there are 1"
        )
        remedy = "offsets.topic.replication.factor says, and 1 broker can be reached. Start more, or set a smaller"
        child, output = _consuming(terminals, "eager", "g", "--topic", "t")
        _says(output, f"waiting: group 'g' has no coordinator: {why}")
        _says(output, remedy)
        watched = terminals.run("watch", "--group", "g", "--once", "--bootstrap-server", _broker(terminals))
        assert why in watched.stderr
        assert remedy in watched.stderr
        looked_up = terminals.run("broker", "coordinator", "g")
        assert (looked_up.returncode, looked_up.stdout.startswith(f"g: none: {why}")) == (Exit.NOT_AS_EXPECTED, True)
        port = _broker(terminals).rpartition(":")[2]
        assert terminals.run("broker", "stop").returncode == 0
        _says(output, f"waiting: no broker answers at 127.0.0.1:{port}: ")
        assert terminals.run("broker", "--detach", "--port", port, "--set", "num.partitions=1").returncode == 0
        _says(output, "over: this consumer owns 1 partition")
        said = output.read_text()
        assert [said.count(words) for words in ("has no coordinator", "waiting: no broker answers")] == [1, 1]
        _ended(child)
    finally:
        terminals.close()


def _empty_chroot(terminals: Terminals) -> tuple[str, str]:
    """A part of the brokers' own ZooKeeper that exists, and in which there is neither a broker nor a member."""
    address = terminals.run("zookeeper", "status").stdout.split()[0]
    return "--zookeeper", f"{address}/brokers"


def _broker(terminals: Terminals) -> str:
    return terminals.run("broker", "status").stdout.split()[0]
