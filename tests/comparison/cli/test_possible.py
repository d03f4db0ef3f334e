"""What can be run on a ZooKeeper that is not ours to cut apart."""

from __future__ import annotations

import pytest

from comparison.cli_experiments import possible_on
from kernel.errors import ConfigurationError

FOREIGN = "127.0.0.1:2181"


def test_an_embedded_zookeeper_can_have_every_scenario() -> None:
    assert possible_on("embedded", ["herd", "split-brain"]) == ["herd", "split-brain"]


def test_a_running_zookeeper_has_no_servers_to_cut_and_that_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert possible_on(FOREIGN, ["herd", "split-brain", "crash"]) == ["herd", "crash"]
    assert "left out, for they cut servers from one another: split-brain" in capsys.readouterr().err


def test_nothing_that_can_be_run_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="leave out --zookeeper"):
        possible_on(FOREIGN, ["split-brain"])
