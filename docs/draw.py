"""Fill the marked places of the pages beside this file with diagrams of real traces: `make draw`.

A place is `<!-- drawn: NAME -->` up to `<!-- end -->`. What is drawn comes from runs made here and now, so every
drawing differs a little from the last one; what must not differ is held by tests, not by pictures.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).parent
PAGE = DOCS / "zookeeper-consumer.md"
COMMAND = Path(sys.executable).with_name("rebalance-lab")
#: Name of an SVG: the scenario that it shows, the change, seconds before and after it (None: its rebalance), in words.
DRAWINGS = {
    "join.svg": ("join", None, "a join: phases of the members, owners and deliveries of the partitions"),
    "split-brain.svg": ("split-brain", ("cut", 1.5, 12.0), "a member that is cut off delivers on beside the new owner"),
}
STEPS = ("--show", "steps", "--member", "m1")


def main() -> None:
    page = PAGE.read_text()
    with tempfile.TemporaryDirectory() as scratch:
        scenarios = sorted({scenario for scenario, _, _ in DRAWINGS.values()})
        _call("run", *scenarios, "--design", "zookeeper", "--seed", "1", "--quiet", "--output", scratch)
        run = (Path(scratch) / "latest").resolve()
        for name, (scenario, around, words) in DRAWINGS.items():
            window = () if around is None else _window(run, scenario, *around)
            asked = ("--show", "timeline", "--format", "svg", *window, "--output", DOCS / "diagrams" / name)
            _call("diagram", run / scenario / "zookeeper", *asked)
            page = _filled(page, name, f"![{words}](diagrams/{name})")
        steps = _call("diagram", run / "join" / "zookeeper", *STEPS)
        page = _filled(page, "steps", steps[steps.index("| ms ") :].strip())
    PAGE.write_text(page)


def _window(run: Path, scenario: str, change: str, before: float, after: float) -> tuple[object, ...]:
    runs = json.loads((run / "result.json").read_text())["runs"]
    changes = next(each["changes"] for each in runs if each["scenario"] == scenario)
    at = next(each["from_ms"] for each in changes if each["change"] == change) / 1000
    return ("--from", round(at - before, 1), "--to", round(at + after, 1))


def _call(*arguments: object) -> str:
    return subprocess.run([COMMAND, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def _filled(page: str, name: str, content: str) -> str:
    place = re.compile(rf"(<!-- drawn: {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
    filled, places = place.subn(lambda found: f"{found[1]}{content}\n{found[2]}", page)
    assert places == 1, f"{PAGE.name} has {places} places for {name}"
    return filled


if __name__ == "__main__":
    main()
