"""What a virtual second of a played world costs, in a process of its own: DESIGN MEMBERS RATE [SECONDS].

The group forms, and then nothing but records flows. Prints CPU seconds for each virtual second, with what a page is
sent, and the speed which that allows.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time

from kernel.platform.lean_imports import collect_seldom, import_lean

collect_seldom()
import_lean()  # before what loads kio

import msgspec  # noqa: E402

from comparison.playground import messages  # noqa: E402
from comparison.playground.commands import SetRate  # noqa: E402
from comparison.playground.simulated.exchange import Begin  # noqa: E402
from comparison.playground.simulated.played_world import PlayedWorld  # noqa: E402
from comparison.scenarios.plan.played import PLAYGROUND  # noqa: E402
from comparison.scenarios.processes.fork_server import prepare  # noqa: E402
from kernel.clock import NS_PER_S  # noqa: E402
from kernel.platform.syncing import forgo_syncing  # noqa: E402

_SEED, _FORMED_S, _SECONDS = 7, 15, 30
#: How far the page lets a fast world go at once.
_STRETCH_NS = NS_PER_S


def main(design: str, members: int, rate: int, seconds: int = _SECONDS) -> None:
    prepare()
    forgo_syncing()
    parameters = PLAYGROUND.parameters({"members": members, "seed": _SEED, "rate": max(rate, 1)})
    with tempfile.TemporaryDirectory(prefix="rebalance-lab-bench-") as folder:
        begin = Begin(
            design=design, parameters=parameters.as_json(), bundle=folder, provenance={}, limits=messages.Limits()
        )
        world = PlayedWorld(begin)
        world.go_on(_FORMED_S * NS_PER_S)
        world.give(SetRate(per_second=rate))
        _sent(world)
        began, sent = time.process_time(), 0
        for _ in range(seconds):
            world.go_on(world.now_ns + _STRETCH_NS)
            sent += _sent(world)
        cpu_s = (time.process_time() - began) / seconds
    sys.stdout.write(
        f"{design}, {members} members, {rate} records a second: {cpu_s:.4f} CPU s for each virtual second, "
        f"{1 / cpu_s:.0f} x at most; {sent / seconds / 1000:.1f} kB to the page\n"
    )
    sys.stdout.flush()
    os._exit(0)  # what the world has left undone stays so


def _sent(world: PlayedWorld) -> int:
    """How many bytes the game is told."""
    return sum(len(msgspec.json.encode(reply)) for reply in world.replies())


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
