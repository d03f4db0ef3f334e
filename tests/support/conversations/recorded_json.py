"""The layout of recorded JSON: one step, znode or record per line, so that a diff shows what a recording changed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any


def conversations_text(document: Mapping[str, Any]) -> str:
    """A recording of conversations (`tests.support.conversations.recorded`), one step per line."""
    entries = []
    for name, value in document.items():
        if name == "conversations":
            text = _lines("[", map(_conversation_text, value), "]")
        else:
            text = entries_text(value) if isinstance(value, dict) else json.dumps(value)
        entries.append(f"{json.dumps(name)}: {text}")
    return _lines("{", entries, "}") + "\n"


def _conversation_text(conversation: Mapping[str, Any]) -> str:
    head = "".join(f"{json.dumps(k)}: {json.dumps(v)}, " for k, v in conversation.items() if k != "steps")
    return f'{{{head}"steps": {entries_text(conversation["steps"])}}}'


def entries_text(container: Mapping[str, Any] | list[Any]) -> str:
    """An object or a list, one entry per line."""
    if isinstance(container, list):
        return _lines("[", map(json.dumps, container), "]")
    return _lines("{", (f"{json.dumps(name)}: {json.dumps(value)}" for name, value in container.items()), "}")


def _lines(opening: str, entries: Iterable[str], closing: str) -> str:
    text = ",\n".join(entries)
    return f"{opening}\n{text}\n{closing}" if text else opening + closing
