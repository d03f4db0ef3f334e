"""State files identify their process by its id and start time together."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from comparison.cli.state import (
    STATE_VARIABLE,
    ServerState,
    forget,
    process_start,
    read_state,
    state_dir,
    states,
    stop_server,
    this_process,
    write_state,
)
from kernel.errors import EnvironmentFault


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield child
    child.kill()
    child.wait()


def state_of(child: subprocess.Popen[bytes]) -> ServerState:
    started = process_start(child.pid)
    assert started is not None
    return ServerState(name="zookeeper", pid=child.pid, started=started, address="127.0.0.1:1", folder="")


def test_a_state_can_be_read_and_names_this_process(tmp_path: Path) -> None:
    state = this_process("broker-9092", "127.0.0.1:9092", tmp_path, zookeeper="z")
    write_state(state)
    assert read_state("broker-9092") == state
    assert states("broker-") == [state]
    assert state.running
    assert state.pid == os.getpid()


def test_stop_ends_the_process_that_wrote_the_state(sleeper: subprocess.Popen[bytes]) -> None:
    state = state_of(sleeper)
    write_state(state)
    assert stop_server(state)
    assert sleeper.wait(30) != 0
    assert read_state("zookeeper") is None


def test_stop_spares_a_process_with_the_same_id_and_another_start_time(sleeper: subprocess.Popen[bytes]) -> None:
    state = replace(state_of(sleeper), started="an earlier one")
    write_state(state)
    assert not stop_server(state)
    assert sleeper.poll() is None
    assert read_state("zookeeper") is None


def test_an_ended_process_is_not_running(sleeper: subprocess.Popen[bytes]) -> None:
    state = state_of(sleeper)
    sleeper.kill()
    sleeper.wait()
    assert not state.running


def test_removing_a_state_spares_that_of_a_successor(tmp_path: Path) -> None:
    state = this_process("zookeeper", "127.0.0.1:1", tmp_path)
    write_state(replace(state, pid=1))
    forget(state)
    assert read_state("zookeeper") is not None


def test_an_unreadable_state_is_ignored() -> None:
    state_dir().mkdir()
    (state_dir() / "zookeeper.json").write_text('{"pid": "many"}')
    assert read_state("zookeeper") is None


def test_a_state_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "file"))
    with pytest.raises(EnvironmentFault, match="Set REBALANCE_LAB_STATE to a folder of your own"):
        write_state(this_process("zookeeper", "", tmp_path))
