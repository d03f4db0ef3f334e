"""Users' code in a run: what it raises ends the run, with a traceback; what blocks the event loop is interrupted."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from comparison.scenarios.run import own_code as module
from comparison.scenarios.run.changes import Changes
from comparison.scenarios.run.own_code import TRACEBACK, Heart, OwnCodeFailed, guarded, own_code
from comparison.scenarios.run.performer import Performer
from kernel.errors import ConfigurationError
from kernel.waiting import WaitTimeout


def changes_in(folder: Path) -> Changes:
    """The part of a run that own code is told of here."""
    testbed = SimpleNamespace(request=SimpleNamespace(run_dir=folder))
    return cast("Changes", SimpleNamespace(testbed=testbed, members=SimpleNamespace()))


@pytest.mark.parametrize("raised", [ValueError("boom"), ConfigurationError("boom")])
def test_what_own_code_raises_ends_the_run_and_is_kept(tmp_path: Path, raised: Exception) -> None:
    async def run() -> None:
        with own_code("hiccups", changes_in(tmp_path)):
            raise raised

    with pytest.raises(OwnCodeFailed) as failed:
        asyncio.run(run())
    line = run.__code__.co_firstlineno + 2
    assert str(failed.value) == (
        f"hiccups failed: {type(raised).__name__}: boom ({os.path.relpath(__file__)}:{line}, traceback in own-code.txt)"
    )
    assert "in run\n    raise raised" in (tmp_path / TRACEBACK).read_text()


def test_place_is_the_last_line_of_the_users_own_code(tmp_path: Path) -> None:
    async def run() -> None:
        with own_code("hiccups", changes_in(tmp_path)):
            json.loads("no JSON")

    with pytest.raises(OwnCodeFailed, match=rf"test_own_code\.py:{run.__code__.co_firstlineno + 2}, traceback"):
        asyncio.run(run())


def test_a_wait_that_times_out_is_reported_as_ours_are(tmp_path: Path) -> None:
    async def run() -> None:
        with own_code("hiccups", changes_in(tmp_path)):
            raise WaitTimeout("timed out")

    with pytest.raises(WaitTimeout):
        asyncio.run(run())
    assert not (tmp_path / TRACEBACK).exists()


def test_code_that_keeps_the_event_loop_is_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCKED_S", 0.2)
    monkeypatch.setattr(module, "_LOOK_S", 0.05)

    async def run() -> None:
        with own_code("hiccups", changes_in(tmp_path)):
            await asyncio.sleep(0)
            while True:
                pass

    with pytest.raises(OwnCodeFailed, match=r"Blocked: it kept the event loop for 0\.2 s: await"):
        asyncio.run(run())


def test_loop_of_a_process_that_was_stopped_is_not_kept_by_anybody() -> None:
    heart = Heart(0.0, 0.0)
    assert not heart.has_stopped(module.BLOCKED_S * 3, 0.1)
    heart.beat(module.BLOCKED_S * 3 + 0.1, 0.1)
    assert not heart.has_stopped(module.BLOCKED_S * 3 + 1, 0.1)


def test_loop_is_kept_by_code_that_sleeps_or_computes() -> None:
    sleeping = Heart(0.0, 0.0)
    assert not sleeping.has_stopped(module.BLOCKED_S + 1, 0.1)
    assert sleeping.has_stopped(module.BLOCKED_S + 2, 0.1)
    computing = Heart(0.0, 0.0)
    assert computing.has_stopped(module.BLOCKED_S + 1, module.BLOCKED_S)


def test_a_fault_that_fails_while_a_run_is_broken_off_keeps_nothing_from_being_undone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Performer):
        async def setup(self) -> None:
            self.target = "m2"

        async def inject(self) -> None:
            raise KeyError("parameter")

        def abandon(self) -> None:
            raise KeyError("nothing to undo")

    async def run() -> list[Any]:
        made: Any = guarded(Broken, "broken")
        fault = made(changes_in(tmp_path), "owner", {})
        await fault.setup()
        with pytest.raises(OwnCodeFailed, match="broken failed: KeyError: 'parameter'"):
            await fault.inject()
        fault.abandon()
        return [fault.target]

    with caplog.at_level("WARNING"):
        assert asyncio.run(run()) == ["m2"]
    assert not caplog.messages, "the run's outcome says it once"
    kept = (tmp_path / TRACEBACK).read_text()
    assert 0 < kept.index("KeyError: 'parameter'") < kept.index("KeyError: 'nothing to undo'")
