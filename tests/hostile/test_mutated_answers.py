"""Mutated responses of every API and version, and mutated batches: our decoders raise only our own errors."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.support.lean_child import lean_command


@pytest.mark.parametrize(
    ("answers", "seed"),
    [
        pytest.param(2_500, 21, id="short"),
        pytest.param(1_000_000, 22, id="long", marks=[pytest.mark.long, pytest.mark.timeout(3600)]),
    ],
)
def test_mutated_answers_and_batches_are_decoded_or_refused_within_little_memory(answers: int, seed: int) -> None:
    command = lean_command("tests.hostile.decoded_in_a_child", answers, seed)
    child = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
    assert child.returncode == 0, child.stderr[-3000:]
    output = re.fullmatch(r"(\d+) answers, (\d+) refused; (\d+) batches, (\d+) refused\n", child.stdout)
    assert output is not None, child.stdout
    asked, refused, batches, bad = map(int, output.groups())
    assert (asked, batches) == (answers, answers // 10)
    assert asked / 2 < refused < asked, "most are refused, but not all"
    assert batches / 10 < bad < batches, "some are refused, but not all"
