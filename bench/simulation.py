"""What simulated runs cost: CPU seconds of a scenario of five members, of groups of 100 and 1,000, and memory.

Each figure is of a process of its own. There is no peer, so a plain loop is timed beside it: on a busy
machine it takes longer by the same share.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from bench.figures import spread, table
from kernel.designs import DESIGN_NAMES, EAGER

if TYPE_CHECKING:
    from bench.bench import Bench

SCENARIO, GROUP = "simulated scenario", "simulated group"
_OURS = "ours"
_SEED = 7
#: A crash in a group of five, as a user would write it.
_FIVE = """
name = "crash-of-five"
symptom = "A consumer died."
[defaults]
members = 5
[[steps]]
step = "form"
[[steps]]
step = "steady"
[[steps]]
step = "kill-owner"
"""
#: {members: (partitions, goal in CPU seconds for form, join and crash)}
GOALS = {100: (200, 3.0), 1_000: (2_000, 40.0)}
_SMALL = {10: (20, 1.0)}
SCENARIO_CPU_S_MAX, AIM_CPU_S, MB_A_MEMBER_MAX = 2.5, 1.5, 0.5
#: How long one group may take: 1,000 members of zookeeper read millions of znodes.
_TIMEOUT_S = 900.0


def run(bench: Bench) -> None:
    """Measure all designs, print both tables."""
    bench.state(f"a loop of two million dictionary writes takes {_loop_cpu_s():.2f} CPU s on this machine now")
    _scenarios(bench)
    sizes = _SMALL if bench.smoke else {size: GOALS.get(size, (2 * size, 0.0)) for size in bench.sizes or GOALS}
    for members, (partitions, goal) in sizes.items():
        _groups(bench, members, partitions, goal)


def _scenarios(bench: Bench) -> None:
    file = bench.folder / "crash-of-five.toml"
    file.write_text(_FIVE, encoding="utf-8")
    made = table(
        f"A simulated crash among five members: CPU s, start included (goal {SCENARIO_CPU_S_MAX}, aim {AIM_CPU_S})",
        "design", "CPU s", "goal", left=(0, 2),
    )  # fmt: skip
    for design in (EAGER,) if bench.smoke else DESIGN_NAMES:
        for number in range(bench.runs or (1 if bench.smoke else 3)):
            folder = bench.folder / f"simulated-{design}-{number}"
            cpu_s, _ = _child("tests.support.runs.one_simulated_run", folder, file, design, _SEED)
            bench.figures.add(SCENARIO, _OURS, {"members": 5}, {f"{design} cpu_s": cpu_s})
        values = bench.figures.values(SCENARIO, _OURS, {"members": 5}, f"{design} cpu_s")
        made.add_row(design, spread(values, ".2f"), _verdict(statistics.median(values), SCENARIO_CPU_S_MAX))
    bench.console.print(made)


def _groups(bench: Bench, members: int, partitions: int, goal: float) -> None:
    made = table(
        f"{members:,} members with {partitions:,} partitions: CPU s (goal {goal:g} together), "
        f"MB a member (goal {MB_A_MEMBER_MAX:g})",
        "design", "form", "join", "crash", "together", "goal", "MB a member", "goal", left=(0, 5, 7),
    )  # fmt: skip
    for design in (EAGER,) if bench.smoke else DESIGN_NAMES:
        try:
            _, found = _child("bench.simulation_group", design, members, partitions)
        except subprocess.TimeoutExpired:
            bench.leave_out(f"{members:,} members of {design}", f"not done after {_TIMEOUT_S:.0f} s")
            continue
        bench.figures.add(
            GROUP, _OURS, {"members": members}, {f"{design} {name}": value for name, value in found.items()}
        )
        each = [found[f"{name} cpu_s"] for name in ("form", "join", "crash")]
        mb = found["mb a member"]
        made.add_row(
            design, *(f"{cpu_s:.2f}" for cpu_s in (*each, sum(each))), _verdict(sum(each), goal),
            f"{mb:.2f}", _verdict(mb, MB_A_MEMBER_MAX),
        )  # fmt: skip
    bench.console.print(made)


def _verdict(found: float, goal: float) -> str:
    return "" if not goal else "met" if found <= goal else "[bold]not met[/]"


def _child(module: str, *arguments: object) -> tuple[float, dict[str, Any]]:
    """CPU seconds of a Python process, and what its last line says."""
    before = _children_cpu_s()
    printed = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)], stdout=subprocess.PIPE, check=True, timeout=_TIMEOUT_S
    ).stdout
    said: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return _children_cpu_s() - before, said


def _children_cpu_s() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _loop_cpu_s() -> float:
    began = time.process_time()
    written: dict[int, tuple[int, object]] = {}
    for number in range(2_000_000):
        written[number & 1023] = (number, written)
    return time.process_time() - began
