"""Conversations with the rebalance table: a member's requests to ZooKeeper, the answers, and its actions, line by line.

Each file in `conversations/` holds prose, commands (`> ...`) and, below each command, the table's effects and the
answers of the model of ZooKeeper. `REWRITE_CONVERSATIONS=1` records the answers again: read the diff. The commands are
in `tests/support/rebalance/conversations.py`.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.rebalance.conversations import FILES, play


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_conversation(path: Path) -> None:
    recorded = path.read_text(encoding="utf-8")
    played = play(recorded)
    if os.environ.get("REWRITE_CONVERSATIONS"):
        path.write_text(played, encoding="utf-8")
    assert played.splitlines() == recorded.splitlines()
