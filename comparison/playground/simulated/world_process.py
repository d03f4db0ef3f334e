"""The process of a world: it does what it is asked for on standard input, and answers on standard output."""

from __future__ import annotations

import os
import sys

import msgspec

from comparison.logs import set_inherited_level
from comparison.playground.simulated.exchange import Asked, Begin, Finish, Give, GoOn
from comparison.playground.simulated.played_world import PlayedWorld
from kernel.platform.lean_imports import collect_seldom
from kernel.platform.syncing import forgo_syncing


def main() -> None:
    set_inherited_level()
    collect_seldom()
    forgo_syncing()
    world: PlayedWorld | None = None
    for line in sys.stdin.buffer:
        asked = msgspec.json.decode(line, type=Asked)
        match asked:
            case Begin():
                world = PlayedWorld(asked)
            case GoOn():
                _begun(world).go_on(asked.until_ns, to_event=asked.to_event)
            case Give():
                _begun(world).give(asked.command)
            case Finish():
                _begun(world).finish()
        for reply in _begun(world).replies():
            _write(msgspec.json.encode(reply) + b"\n")


def _begun(world: PlayedWorld | None) -> PlayedWorld:
    assert world is not None, "it begins with `Begin`"
    return world


def _write(line: bytes) -> None:
    data = memoryview(line)
    while data:
        data = data[os.write(sys.stdout.fileno(), data) :]
