"""The group machine tested by conversations, `conversations/*.txt`; `tests.coordinator.groups.group_script` has their
form."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.coordinator.groups.group_script import Script
from tests.support.kafka_names.markers import named_in_prose

FILES = sorted((Path(__file__).parent / "conversations").glob("*.txt"))


def marks(path: Path) -> list[pytest.MarkDecorator]:
    names = named_in_prose(path.read_text(encoding="utf-8"))
    return [pytest.mark.kafka(*names)] if names else []


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem, marks=marks(path)) for path in FILES])
def test_conversation_equals_the_recording(path: Path):
    text = path.read_text(encoding="utf-8")
    played = Script().play(text)
    if os.environ.get("REWRITE"):
        path.write_text(played, encoding="utf-8")
    else:
        assert played == text, f"{path.name} differs now; REWRITE=1 records it again"


def test_conversations_exist():
    assert len(FILES) >= 10
