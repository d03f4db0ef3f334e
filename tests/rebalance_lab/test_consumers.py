"""`consumer` refuses what cannot work before anything is connected, and says what can."""

from __future__ import annotations

from typing import Any

import pytest

from kernel.consumer import SilentListener
from kernel.designs import DESIGN_NAMES
from kernel.errors import ConfigurationError, Unavailable, UserError
from kernel.values import TopicPartition
from rebalance_lab import consumer

EAGER: dict[str, Any] = {"design": "eager", "group": "g", "bootstrap": "127.0.0.1:1"}
ZOOKEEPER: dict[str, Any] = {"design": "zookeeper", "group": "g", "zookeeper": "127.0.0.1:1"}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({**EAGER, "design": "eagr"}, "unknown design 'eagr'. Did you mean 'eager'"),
        ({**EAGER, "group": ""}, "Name the group"),
        ({**EAGER, "bootstrap": ""}, "The eager design needs bootstrap='HOST:PORT'"),
        ({**EAGER, "bootstrap": "here"}, "'here' is not an address"),
        ({**EAGER, "design": "server"}, "The server design needs zookeeper='HOST:PORT'"),
        ({**EAGER, "design": "static"}, "group.instance.id="),
        ({**EAGER, "settings": {"sesion.timeout.ms": 1}}, "Did you mean 'session.timeout.ms'"),
        ({**EAGER, "settings": {"session.timeout.ms": "soon"}}, "session.timeout.ms='soon': must be a whole number"),
        ({**EAGER, "settings": {"enable.auto.commit": 1}}, "enable.auto.commit='1': must be true or false"),
        ({**EAGER, "settings": {"group.id": "x"}}, "group.id is not among the settings. Write group='x'"),
        (
            {**ZOOKEEPER, "settings": {"session.timeout.ms": 1}},
            "the zookeeper design has no setting 'session.timeout.ms', as eager, .* have. "
            "Did you mean 'zookeeper.session.timeout.ms'",
        ),
        ({**EAGER, "listener": SilentListener()}, "a listener needs a subscription"),
    ],
)
def test_what_cannot_work_is_refused_with_what_to_do(arguments: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        consumer(**arguments)


def test_setting_of_kafka_that_nobody_implements_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    consumer(**EAGER, settings={"check.crcs": True})
    assert caplog.messages == ["check.crcs is a Kafka setting that rebalance-lab does not implement: ignored"]


@pytest.mark.parametrize("design", DESIGN_NAMES)
def test_servers_that_a_design_does_not_need_are_ignored(design: str) -> None:
    settings = {"group.instance.id": "first"} if design == "static" else {}
    made = consumer(**{**EAGER, **ZOOKEEPER, "design": design}, settings=settings)
    assert made.assignment() == frozenset()
    assert made.position(TopicPartition("t", 0)) is None
    assert made.capabilities.seek is (design != "zookeeper")


async def test_server_that_does_not_answer_is_named_and_the_consumer_is_closed() -> None:
    made = consumer(**EAGER, topics="t", settings={"socket.connection.setup.timeout.ms": 100})
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1"):
        async with made:
            pass
    with pytest.raises(UserError, match="the consumer of g is closed"):
        await made.getmany()
