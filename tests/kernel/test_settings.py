"""Settings: Kafka's names, our table, and names that are in neither."""

from __future__ import annotations

import pytest

from kernel.errors import ConfigurationError
from kernel.settings import Range, Setting, boolean, one_of, resolve, split_pairs

TABLE = {
    s.name: s
    for s in (
        Setting(name="session.timeout.ms", parse=int, default=45000, doc="", valid=Range(1, 100_000)),
        Setting(name="enable.auto.commit", parse=boolean, default=True, doc=""),
        Setting(name="auto.offset.reset", parse=str, default="latest", doc="", valid=one_of("earliest", "latest")),
    )
}


def test_a_setting_that_is_not_given_has_its_default() -> None:
    assert resolve(TABLE, {}) == (
        {"session.timeout.ms": 45000, "enable.auto.commit": True, "auto.offset.reset": "latest"},
        [],
    )


def test_a_given_setting_is_parsed() -> None:
    values, _ = resolve(TABLE, {"session.timeout.ms": "300", "enable.auto.commit": "False"})
    assert (values["session.timeout.ms"], values["enable.auto.commit"]) == (300, False)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"session.timeout.ms": "soon"}, "session.timeout.ms='soon': must be a whole number"),
        ({"session.timeout.ms": "0"}, "must be between 1 and 100000"),
        ({"enable.auto.commit": "yes"}, "must be true or false"),
        ({"auto.offset.reset": "smallest"}, "must be one of earliest, latest"),
        ({"session.timeout": "1"}, "unknown setting 'session.timeout'. Did you mean 'session.timeout.ms'?"),
        ({"zebra": "1"}, "unknown setting 'zebra'. `rebalance-lab settings` lists them$"),
    ],
)
def test_a_wrong_setting_is_refused_and_the_message_says_why(given: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint.replace("?", r"\?")):
        resolve(TABLE, given)


def test_a_kafka_setting_that_we_do_not_implement_warns_and_is_left_out() -> None:
    values, warnings = resolve(TABLE, {"ssl.key.password": "x"}, known_elsewhere=frozenset({"ssl.key.password"}))
    assert "ssl.key.password" not in values
    assert warnings == ["ssl.key.password is a Kafka setting that rebalance-lab does not implement: ignored"]


def test_pairs_are_split_at_the_first_equals_sign_and_the_last_wins() -> None:
    assert split_pairs(["a=1=2", " b = x ", "a=3"]) == {"a": "3", "b": "x"}


@pytest.mark.parametrize("pair", ["a", "=1", " =1"])
def test_text_without_an_equals_sign_is_refused(pair: str) -> None:
    with pytest.raises(ConfigurationError, match="Use key=value"):
        split_pairs([pair])
