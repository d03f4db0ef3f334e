"""The analysis of a game, which is a command in a process of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from comparison.cli import playground
from comparison.exits import Exit
from kernel.errors import Unavailable


def ending(code: int, *, writes: Path | None = None) -> list[str]:
    """A command that ends with that code, perhaps after it has written a report."""
    write = "" if writes is None else f"open({str(writes / 'report.html')!r}, 'x');"
    return [sys.executable, "-c", f"import sys; {write} sys.exit({code})"]


@pytest.mark.parametrize("code", [Exit.NOT_AS_EXPECTED, Exit.INTERNAL])
async def test_a_game_s_report_is_shown_even_if_it_lacks_a_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(playground, "module_command", lambda *_: ending(code, writes=tmp_path))
    assert await playground._analysed(tmp_path) == tmp_path / "report.html"


async def test_a_game_without_a_report_has_failed_with_the_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(playground, "module_command", lambda *_: ending(Exit.INTERNAL))
    with pytest.raises(Unavailable, match=r"analyze .* ended with exit code 255"):
        await playground._analysed(tmp_path)
