"""Where a command finds itself."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from comparison.cli import analysis
from comparison.cli.state import STATE_VARIABLE
from tests.support.runs.inline_spark import InlineSpark


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder is the test's own, and so is the state of servers by hand."""
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    return tmp_path


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """What commands in this process analyse, a stand-in for Spark does."""
    session = SimpleNamespace(session=lambda: InlineSpark(2))
    monkeypatch.setattr(analysis, "session_of_command", lambda *_, **__: nullcontext(session))


@pytest.fixture
def taken_port() -> Iterator[int]:
    """Something listens there and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]
