"""A temporary folder is removed when its user has ended, however it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kernel.platform.swept_folder import swept_folder
from kernel.waiting import wait_until

_USER = """
import sys, time
from kernel.platform.swept_folder import swept_folder
with swept_folder("swept-test-") as (folder, _):
    (folder / "below").mkdir()
    (folder / "below" / "file").write_text("x")
    print(folder, flush=True)
    time.sleep(600)
"""


def test_folder_is_removed_after_its_block(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with swept_folder("swept-test-") as (folder, _):
        (folder / "file").write_text("x")
        assert folder.parent == tmp_path
    wait_until(lambda: not folder.exists(), 60, lambda: f"{folder} to be removed")


def test_folder_is_removed_after_kill_9(tmp_path: Path) -> None:
    user = subprocess.Popen(
        [sys.executable, "-c", _USER], stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    assert user.stdout is not None
    folder = Path(user.stdout.readline().strip())
    assert (folder / "below" / "file").is_file()
    user.send_signal(signal.SIGKILL)
    user.wait()
    user.stdout.close()
    wait_until(lambda: not folder.exists(), 60, lambda: f"{folder} to be removed")
    assert list(tmp_path.iterdir()) == []
