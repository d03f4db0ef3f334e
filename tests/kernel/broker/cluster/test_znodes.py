"""Our znodes compared with those recorded from Kafka 3.9.1: the same bytes, and read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernel.broker.cluster import znodes
from kernel.values import BrokerAddress

RECORDED = json.loads((Path(__file__).parent / "znodes-3.9.1.json").read_text(encoding="utf-8"))


def recorded(suffix: str) -> list[bytes]:
    """Every recorded content of znodes whose path ends so."""
    return [
        node["data"].encode()
        for step in RECORDED["steps"]
        for path, node in step["changed"].items()
        if path.endswith(suffix) and node["data"] is not None
    ]


def topics() -> list[bytes]:
    return [
        node["data"].encode()
        for step in RECORDED["steps"]
        for path, node in step["changed"].items()
        if path.count("/") == 3 and path.startswith("/brokers/topics/")
    ]


@pytest.mark.parametrize("data", recorded("/ids/1") + recorded("/ids/2"))
def test_broker_node_has_the_bytes_of_3_9_1(data: bytes) -> None:
    fields = json.loads(data)
    address = znodes.parse_broker(1, data)
    assert address == BrokerAddress(1, "127.0.0.1", fields["port"])
    assert znodes.broker_node(address, int(fields["timestamp"])) == data


@pytest.mark.parametrize("data", topics())
def test_topic_node_has_the_bytes_of_3_9_1(data: bytes) -> None:
    node = znodes.parse_topic(data)
    assert node.topic_id is not None
    assert znodes.topic_node(node) == data


@pytest.mark.parametrize("data", recorded("/state"))
def test_state_node_has_the_bytes_of_3_9_1(data: bytes) -> None:
    assert znodes.state_node(znodes.parse_state(data)) == data


@pytest.mark.parametrize("data", recorded("/controller"))
def test_controller_node_has_the_bytes_of_3_9_1(data: bytes) -> None:
    assert znodes.controller_node(znodes.parse_controller(data), int(json.loads(data)["timestamp"])) == data


def test_single_nodes_have_the_bytes_of_3_9_1() -> None:
    (cluster,) = recorded("/cluster/id")
    assert znodes.cluster_id_node(znodes.parse_cluster_id(cluster)) == cluster
    assert [znodes.controller_epoch_node(epoch) for epoch in (1, 2)] == recorded("/controller_epoch")
    assert [znodes.feature_node()] == recorded("/feature")
    (block,) = recorded("/latest_producer_id_block")
    assert znodes.producer_id_block_node(znodes.next_producer_id_block(b"", 2)) == block
    assert znodes.next_producer_id_block(block, 1) == znodes.ProducerIdBlock(1, 1000, 1999)
    assert znodes.topic_config_node({}) in recorded("/config/topics/plain")
    configured = {"retention.ms": "1000", "cleanup.policy": "compact"}
    assert recorded("/config/topics/configured") == [znodes.topic_config_node(configured)]


def test_nodes_of_older_brokers_are_read() -> None:
    old = b'{"jmx_port":-1,"timestamp":"1416000000000","host":"h1","version":1,"port":9092}'
    assert znodes.parse_broker(7, old) == BrokerAddress(7, "h1", 9092)
    only_endpoints = json.dumps(
        {
            "listener_security_protocol_map": {"IN": "PLAINTEXT", "OUT": "SSL"},
            "endpoints": ["OUT://h2:1", "IN://[::1]:9093"],
            "host": None,
            "port": -1,
            "version": 4,
        }
    ).encode()
    assert znodes.parse_broker(7, only_endpoints) == BrokerAddress(7, "::1", 9093)
    topic = znodes.parse_topic(b'{"version":1,"partitions":{"1":[2,1],"0":[1,2]}}')
    assert topic == znodes.TopicNode(((1, 2), (2, 1)), None)


@pytest.mark.parametrize(
    ("parse", "data"),
    [
        (lambda data: znodes.parse_broker(1, data), b'{"host":null,"port":-1,"endpoints":["SSL://h:1"]}'),
        (lambda data: znodes.parse_broker(1, data), b'{"endpoints":["PLAINTEXT://h:port"]}'),
        (znodes.parse_topic, b"nonsense"),
        (znodes.parse_topic, b"[]"),
        (znodes.parse_topic, b'{"partitions":{"0":[1],"2":[1]}}'),
        (znodes.parse_topic, b'{"partitions":{"0":["x"]}}'),
        (znodes.parse_topic, b'{"partitions":{"0":[1]},"topic_id":"short"}'),
        (znodes.parse_state, b'{"leader":1}'),
        (znodes.parse_state, b'{"leader":true,"leader_epoch":0,"controller_epoch":1,"isr":[]}'),
        (znodes.parse_controller, b"{}"),
        (znodes.parse_controller_epoch, b"-1"),
        (znodes.parse_cluster_id, b"\xff"),
        (lambda data: znodes.next_producer_id_block(data, 1), b'{"block_end":7}'),
    ],
)
def test_nonsense_in_a_node_is_named(parse: Any, data: bytes) -> None:
    with pytest.raises(znodes.MalformedNode):
        parse(data)
