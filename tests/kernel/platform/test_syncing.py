"""Syncing files to disk, which processes that are spent with a simulated world do not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

#: Creates an incarnation's file, and prints how often something is synced, and what SQLite is told about it.
CREATES = """
import os, sys
from pathlib import Path
from kernel.broker.storage.files import SqliteTransaction, create_file
from kernel.platform.syncing import forgo_syncing
if sys.argv[2] == "simulated":
    forgo_syncing()
synced = []
os.fsync = synced.append
connection = create_file(Path(sys.argv[1]) / "one.sqlite")
levels = [connection.execute("PRAGMA synchronous").fetchone()[0]]
with SqliteTransaction(connection, sync=True):
    levels.append(connection.execute("PRAGMA synchronous").fetchone()[0])
levels.append(connection.execute("PRAGMA synchronous").fetchone()[0])
print(len(synced), levels)
"""


def _printed(folder: Path, kind: str) -> str:
    command = [sys.executable, "-c", CREATES, str(folder), kind]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()


def test_claim_of_a_broker_and_what_terms_build_on_are_synced(tmp_path: Path) -> None:
    normal, full = 1, 2
    assert _printed(tmp_path, "real") == f"2 {[normal, full, normal]}"


def test_nothing_is_synced_in_a_simulated_world(tmp_path: Path) -> None:
    assert _printed(tmp_path, "simulated") == "0 [0, 0, 0]"
