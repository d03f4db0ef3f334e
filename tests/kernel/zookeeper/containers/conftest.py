"""A Docker engine and the local image of ZooKeeper, for tests of the mark `docker`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kernel.errors import EnvironmentFault
from kernel.zookeeper.containers import engine as docker_engine

ROOT = Path(__file__).parents[4]
IMAGE = "rebalance-lab/zookeeper:test"
LAB_IMAGE = "rebalance-lab/lab:test"


@pytest.fixture(scope="session")
def engine():
    """A client of the Docker engine; without one the test is skipped with a reason."""
    try:
        client = docker_engine.engine()
    except EnvironmentFault as fault:
        pytest.skip(str(fault))
    yield client
    client.close()


@pytest.fixture(scope="session")
def image(engine):
    """The local image, built without a registry; removed afterwards."""
    subprocess.run([sys.executable, ROOT / "docker" / "build_image.py", "--tag", IMAGE], check=True, timeout=120)
    yield IMAGE
    engine.images.remove(IMAGE, force=True)


@pytest.fixture(scope="session")
def lab_image(engine):
    """The lab's image, from what is installed here; removed afterwards."""
    subprocess.run(
        [sys.executable, ROOT / "docker" / "build_image.py", "--lab", "--tag", LAB_IMAGE], check=True, timeout=300
    )
    yield LAB_IMAGE
    engine.images.remove(LAB_IMAGE, force=True)


@pytest.fixture
def local_image(image, monkeypatch):
    """The same as the image of `--zookeeper docker`."""
    monkeypatch.setenv(docker_engine.IMAGE_VARIABLE, image)
    return image
