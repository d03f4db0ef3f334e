"""Whole runs on ZooKeeper in containers: the same verdicts as on the embedded one, by the same transaction log."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.runs.experiments import Laboratory

pytestmark = pytest.mark.docker

SEED = 20120517

#: One scenario for each way to break servers, their links, their clients' links and sessions, with designs it is for.
BROKEN = {
    "quorum-loss": ("zookeeper", "eager"),
    "zk-leader-kill": ("zookeeper", "eager"),
    "slow-link": ("zookeeper", "eager"),
    "asymmetric-cut": ("zookeeper", "eager"),
    "double-owner-no-broker": ("zookeeper",),
    "session-expiry": ("zookeeper",),
}


@pytest.mark.parametrize(
    ("scenario", "design", "zookeeper"),
    [
        ("split-brain", "zookeeper", "docker"),
        pytest.param("herd", "zookeeper", "docker:3", marks=pytest.mark.long),
        pytest.param("stale-view", "zookeeper", "docker", marks=pytest.mark.long),
        pytest.param("split-brain", "server", "docker", marks=pytest.mark.long),
        *(
            pytest.param(scenario, design, "docker:3", marks=pytest.mark.long)
            for scenario, designs in BROKEN.items()
            for design in designs
        ),
    ],
)
def test_run_on_containers_ends_with_every_verdict_as_expected(
    scenario: str, design: str, zookeeper: str, local_image: str, laboratory: Laboratory, tmp_path: Path
) -> None:
    found = laboratory.unexpected(tmp_path, scenario, design, seed=SEED, zookeeper=zookeeper, time_limit_s=240)
    assert not found, f"seed {SEED}"
