"""Answers of Kafka 4.1.1's UniformAssignor and RangeAssignor: chains of groups that live on from step to step."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.support.groups.targets import answer

with gzip.open(Path(__file__).parent / "recorded.jsonl.gz", "rt", encoding="utf-8") as lines:
    CHAINS = [json.loads(line) for line in lines]


@pytest.mark.parametrize("chain", [pytest.param(chain, id=chain["id"]) for chain in CHAINS])
def test_target_assignors_answer_as_kafkas_classes(chain):
    for step in chain["steps"]:
        expected = {member: {(t, p) for t, ps in runs for p in ps} for member, runs in step["expect"].items()}
        assert answer(step, chain["assignor"]) == expected


def test_recorded_targets_are_all_here():
    steps = [(chain["assignor"], step) for chain in CHAINS for step in chain["steps"]]
    assert [sum(name == wanted for name, _ in steps) for wanted in ("uniform", "range")] == COUNTS
    mixed = [step for _, step in steps if len({frozenset(topics) for _, topics, *_ in step["members"]}) > 1]
    assert len(mixed) > 100


COUNTS = [264, 101]
