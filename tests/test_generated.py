"""Pages and pictures are as the code and the records say that they are generated from."""

from __future__ import annotations

from typing import Any

import pytest

from docs.generators.__main__ import GENERATORS
from docs.generators.pages import DOCS

NAMES = {each.__name__.rpartition(".")[2]: each for each in GENERATORS}


def test_every_generator_is_named() -> None:
    modules = (DOCS / "generators").glob("*.py")
    assert {each.stem for each in modules if "\ndef files(" in each.read_text(encoding="utf-8")} == NAMES.keys()


@pytest.mark.parametrize("generator", NAMES.values(), ids=NAMES)
def test_kept_files_are_what_their_generator_writes(generator: Any) -> None:
    made = generator.files()
    assert made
    for path, content in made.items():
        assert path.read_text(encoding="utf-8") == content, f"{path.name} is out of date: run `make names`"
