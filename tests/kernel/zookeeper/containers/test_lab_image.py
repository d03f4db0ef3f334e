"""The lab's local image: what a user plugs in works there too."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]

pytestmark = [pytest.mark.docker, pytest.mark.long]


def test_the_image_of_the_lab_loads_an_own_fault_and_a_strategy_that_is_plugged_in(engine, lab_image):
    """With the embedded ZooKeeper. Both are loaded by way of `rebalance_lab`, the public package."""
    command = ["run", "/examples/own-faults.toml", "--design", "eager", "-c", "partition.assignment.strategy=random"]
    examples = {str(ROOT / "docs" / "examples"): {"bind": "/examples", "mode": "ro"}}
    container = engine.containers.run(lab_image, command, volumes=examples, init=True, detach=True)
    try:
        ended = container.wait(timeout=180)
        assert ended["StatusCode"] == 0, container.logs().decode()
        assert b"as the model says" in container.logs()
    finally:
        container.remove(force=True, v=True)
