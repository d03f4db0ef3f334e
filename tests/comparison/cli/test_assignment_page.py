"""`docs/assignment.md`: its commands print what it says."""

from __future__ import annotations

import difflib

from docs.generators.assign_blocks import PAGE, commands, page


def test_commands_of_the_page_print_what_it_says() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert len(commands(text)) > 10
    assert text.count("<!-- drawn: ") == 3
    wrong = "\n".join(difflib.unified_diff(text.splitlines(), page().splitlines(), "the page", "true", lineterm=""))
    assert not wrong, f"{wrong}\n`make names` writes the page"
