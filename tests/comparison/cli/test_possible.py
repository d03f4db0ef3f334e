"""The scenarios that can run on an external ZooKeeper, which cannot be partitioned."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from comparison.cli.foreign_zookeeper import not_judged_on, possible_on, require_zookeeper
from comparison.scenarios.run.experiments import plan
from kernel.errors import ConfigurationError
from kernel.zookeeper.embedded import EmbeddedZooKeeper

if TYPE_CHECKING:
    from pathlib import Path

FOREIGN = "127.0.0.1:2181"


def test_every_scenario_can_run_on_an_embedded_zookeeper() -> None:
    assert possible_on("embedded", ["herd", "split-brain"]) == ["herd", "split-brain"]


def test_scenarios_that_cut_servers_are_skipped_with_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    assert possible_on(FOREIGN, ["herd", "split-brain", "crash"]) == ["herd", "crash"]
    assert "skipped (needs an embedded ensemble): split-brain" in capsys.readouterr().err


def test_no_runnable_scenario_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="leave out --zookeeper"):
        possible_on(FOREIGN, ["split-brain"])


def test_checks_that_an_external_zookeeper_rules_out_are_named_before_the_run() -> None:
    (message,) = not_judged_on(FOREIGN, ["herd", "crash"], ["zookeeper", "eager"])
    assert "the servers' own counters are not compared in herd" in message
    assert not_judged_on(FOREIGN, ["crash"], ["zookeeper"]) == []
    assert not_judged_on(FOREIGN, ["herd"], ["eager"]) == []
    assert not_judged_on("embedded", ["herd"], ["zookeeper"]) == []


def test_an_external_zookeeper_with_other_session_limits_is_refused_with_the_session_to_use(tmp_path: Path) -> None:
    with EmbeddedZooKeeper(tmp_path, tick_ms=2000, min_session_ms=4000, max_session_ms=40_000) as server:
        address = server.connect_string
        with pytest.raises(ConfigurationError, match=r"grants sessions of 4000 ms where 3000 .* use --session-timeout"):
            require_zookeeper(address, plan(["crash"], ["zookeeper"], {}))
        require_zookeeper(address, plan(["crash"], ["zookeeper"], {"session_timeout_ms": 4000}))
        require_zookeeper(address, plan(["crash"], ["eager"], {}))  # its members have no sessions there
