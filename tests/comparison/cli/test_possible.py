"""The scenarios that can run on an external ZooKeeper, which cannot be partitioned."""

from __future__ import annotations

from pathlib import Path

import pytest

from comparison.cli.foreign_zookeeper import not_judged_on, possible_on, require_logs, require_zookeeper
from comparison.scenarios.run.experiments import plan
from kernel.errors import ConfigurationError
from kernel.zookeeper.embedded import EmbeddedZooKeeper
from kernel.zookeeper.servers import Limits

FOREIGN = "127.0.0.1:2181"


@pytest.mark.parametrize("ours", ["embedded", "docker", "docker:3"])
def test_every_scenario_can_run_on_a_zookeeper_that_the_run_starts(ours: str) -> None:
    assert possible_on(ours, ["herd", "split-brain"]) == ["herd", "split-brain"]
    assert not_judged_on(ours, ["herd"], ["zookeeper"]) == []


def test_scenarios_that_cut_servers_are_skipped_with_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    assert possible_on(FOREIGN, ["herd", "split-brain", "crash"]) == ["herd", "crash"]
    assert "skipped (needs a ZooKeeper of its own): split-brain" in capsys.readouterr().err


def test_several_skipped_scenarios_are_named_in_the_plural(capsys: pytest.CaptureFixture[str]) -> None:
    assert possible_on(FOREIGN, ["split-brain", "quorum-loss", "crash"]) == ["crash"]
    assert "skipped (need ZooKeepers of their own): split-brain, quorum-loss" in capsys.readouterr().err
    with pytest.raises(ConfigurationError, match="split-brain, quorum-loss need ZooKeepers of their own, since they"):
        possible_on(FOREIGN, ["split-brain", "quorum-loss"])


def test_no_runnable_scenario_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="Leave out --zookeeper"):
        possible_on(FOREIGN, ["split-brain"])


def test_checks_that_an_external_zookeeper_rules_out_are_named_before_the_run() -> None:
    (message,) = not_judged_on(FOREIGN, ["herd", "crash"], ["zookeeper", "eager"])
    assert "the servers' own counters are not compared in herd" in message
    assert not_judged_on(FOREIGN, ["crash"], ["zookeeper"]) == []
    assert not_judged_on(FOREIGN, ["herd"], ["eager"]) == []


def test_a_log_is_refused_that_is_none_or_is_read_anyway(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no folder version-2 in it, .* dataLogDir"):
        require_logs(FOREIGN, [tmp_path])
    (tmp_path / "version-2").mkdir()
    require_logs(FOREIGN, [tmp_path, tmp_path / "version-2"])
    with pytest.raises(ConfigurationError, match=r"with docker:3 the log is read without it"):
        require_logs("docker:3", [tmp_path])


def test_an_external_zookeeper_with_other_session_limits_is_refused_with_the_session_to_use(tmp_path: Path) -> None:
    with EmbeddedZooKeeper(tmp_path, limits=Limits(tick_ms=2000, min_session_ms=4000, max_session_ms=40_000)) as server:
        address = server.connect_string
        with pytest.raises(ConfigurationError, match=r"grants sessions of 4000 ms where 3000 .* Use --session-timeout"):
            require_zookeeper(address, plan(["crash"], ["zookeeper"], {}))
        require_zookeeper(address, plan(["crash"], ["zookeeper"], {"session_timeout_ms": 4000}))
        require_zookeeper(address, plan(["crash"], ["eager"], {}))  # its members have no sessions there
