"""Pages and pictures are as the code and the records say that they are generated from."""

from __future__ import annotations

from typing import Any

import pytest

from docs.generators.__main__ import GENERATORS


@pytest.mark.parametrize("generator", GENERATORS, ids=lambda each: each.__name__.rpartition(".")[2])
def test_kept_files_are_what_their_generator_writes(generator: Any) -> None:
    for path, content in generator.files().items():
        assert path.read_text(encoding="utf-8") == content, f"{path.name} is out of date: run `make names`"
