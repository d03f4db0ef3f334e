"""No container and no network outlives its run, however that ends."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from kernel.waiting import wait_until
from kernel.zookeeper.containers.ownership import LABEL, owner, remove_abandoned

pytestmark = pytest.mark.docker

#: Servers that nobody uses; it prints their owner's label once they serve.
RUN = """
import signal, sys
from pathlib import Path
from kernel.zookeeper.containers.ownership import owner
from kernel.zookeeper.containers.zookeeper import DockerZooKeeper
signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts in the background would ignore it
with DockerZooKeeper(Path(sys.argv[1]), servers=int(sys.argv[2])):
    print(owner(), flush=True)
    signal.pause()
"""


def owned(engine, label):
    filters = {"label": f"{LABEL}={label}"}
    return [
        *engine.containers.list(all=True, filters=filters, ignore_removed=True),
        *engine.networks.list(filters=filters),
    ]


@pytest.mark.parametrize(
    ("number", "servers", "made"),
    [(signal.SIGINT, 1, 1), (signal.SIGTERM, 1, 1), (signal.SIGKILL, 3, 4)],
    ids=["SIGINT", "SIGTERM", "SIGKILL"],
)
def test_an_ended_run_leaves_no_container_and_no_network(engine, local_image, tmp_path, number, servers, made):
    command = [sys.executable, "-c", RUN, tmp_path, str(servers)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        label = run.stdout.readline().strip()
        assert len(owned(engine, label)) == made
        run.send_signal(number)
        run.wait(30)
    wait_until(lambda: not owned(engine, label), 30, lambda: f"{owned(engine, label)} to be removed")


def test_what_a_killed_run_and_its_guard_left_behind_is_removed_by_the_next(engine, image):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    boot = owner().split("/", maxsplit=1)[0]
    labels = {LABEL: f"{boot}/{gone.pid}/1.00"}
    abandoned = [
        engine.containers.create(image, labels=labels),
        engine.networks.create(f"rebalance-lab-{gone.pid}", labels=labels),
    ]
    elsewhere = engine.containers.create(image, labels={LABEL: f"another-boot/{gone.pid}/1.00"})
    try:
        assert remove_abandoned(engine) == [each.id for each in abandoned]
    finally:
        elsewhere.remove(force=True, v=True)
