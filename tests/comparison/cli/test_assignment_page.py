"""`docs/assignment.md`: its commands print what it says."""

from __future__ import annotations

import json
import shlex

from click.testing import CliRunner

from comparison.cli.assign import assign
from docs.generators.assign_blocks import PAGE, commands
from tests.support.pages.typed_commands import commands_in_text

#: The commands in the text, and what it says of the last step: how many moved, and the members' loads.
TOLD = {
    "rebalance-lab assign -s thread-range --members C1:2,C2:2 --topics P=5": (0, [2, 1, 1, 1]),
    "rebalance-lab assign -s thread-range --members C1:3,C2:2 --topics t=3": (0, [1, 1, 1, 0, 0]),
    "rebalance-lab assign -s roundrobin --members C0:T0+T1,C1:T1+T2,C2:T2+T0 --topics T0=3,T1=2,T2=4": (0, [3, 3, 3]),
    "rebalance-lab assign -s roundrobin --members C0,C1,C2 --topics t0=3,t1=3 --then restart C0=C5,C1=C3,C2=C4": (
        6,
        [2, 2, 2],
    ),
    "rebalance-lab assign -s sticky --members C0,C1,C2 --topics t0=3,t1=3 --then restart C0=C5,C1=C3,C2=C4": (
        6,
        [2, 2, 2],
    ),
    "rebalance-lab assign -s cooperative-sticky --members C0,C1 --topics t=2,u=2 --then subscribe C0=t": (2, [2, 2]),
    "rebalance-lab assign -s random,sticky --members C0,C1,C2 --topics t=12 --then leave C2": (7, [6, 6]),
}


def test_page_has_outputs_of_commands_and_tables_of_them() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert len(commands(text)) > 8
    assert text.count("<!-- drawn: ") == 3


def test_commands_in_the_text_do_what_it_says() -> None:
    text = PAGE.read_text(encoding="utf-8")
    drawn = " ".join(part.partition("<!-- end -->")[0] for part in text.split("<!-- drawn: ")[1:])
    found = [each for each in commands_in_text(text) if " assign -s " in each and each not in drawn]
    assert found == list(TOLD)
    for command, (moved, loads) in TOLD.items():
        done = CliRunner().invoke(assign, [*shlex.split(command)[2:], "--format", "json"], standalone_mode=False)
        told = next(iter(json.loads(done.stdout)["strategies"].values()))["moments"][-1]
        owned = [sum(len(numbers) for numbers in topics.values()) for topics in told["owned"].values()]
        assert (told["moved"], owned) == (moved, loads), command
