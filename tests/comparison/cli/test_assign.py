"""`rebalance-lab assign`: its tables, its JSON, what it refuses, and what it does without."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from comparison.cli.assign import assign
from comparison.exits import Exit
from kernel.errors import UserError
from tests.support.commands.called import output_of
from tests.support.commands.installed import installed

GROUP = ("--members", "C0,C1,C2", "--topics", "t0=2,t1=2,t2=2,t3=2")


def test_strategies_are_side_by_side_and_moves_are_marked() -> None:
    lines = output_of(assign, "-s", "sticky", "-s", "roundrobin", *GROUP, "--then", "leave", "C1").splitlines()
    assert lines[0] == "3 members, 8 partitions of 4 topics"
    after = lines[next(n for n, line in enumerate(lines) if line.startswith("leave C1 ")) :]
    assert next(line.split() for line in after if line.startswith("C0")) == [
        *("C0", "t0-0", "t0-1*", "t1-1", "t3-0"),
        *("t0-0", "t1-0*", "t2-0*", "t3-0"),
    ]
    rows = [line.split() for line in after if line.startswith(("sticky", "roundrobin"))]
    assert rows == [
        ["sticky", "4", "4", "0", "3", "3", "3", "0", "5"],
        ["roundrobin", "4", "4", "0", "5", "3", "3", "2", "5"],
    ]
    assert lines[-1] == "* moved from another owner"


def test_step_may_be_quoted() -> None:
    assert (
        output_of(assign, *GROUP, "--then", "leave C1")
        == output_of(assign, *GROUP, "--then", "leave", "C1")
        == output_of(assign, *GROUP, "--then=leave C1")
    )


def test_every_line_fits_80_columns_and_ends_without_blanks() -> None:
    steps = ("--then", "join C3,C4:t1", "--then", "leave C0", "--then", "add-partitions t0=30")
    for line in output_of(assign, "-s", "all,thread-range,thread-roundrobin-1.1", *GROUP, *steps).splitlines():
        assert len(line) <= 80
        assert line == line.rstrip()


def test_both_rounds_of_a_cooperative_rebalance_are_shown() -> None:
    output = output_of(assign, "-s", "cooperative-sticky", "--members", "C0,C1", "--topics", "t=6", "--then", "join C2")
    assert "cooperative-sticky, round 1: C0 gives up t-4; C1 gives up t-5\n" in output
    assert "cooperative-sticky, round 2: C2 gets t-4 t-5\n" in output


def test_large_group_is_cut_short_and_json_has_all_of_it() -> None:
    arguments = ("-s", "roundrobin", "--members", ",".join(f"m{n}" for n in range(100)), "--topics", "t=10000")
    output = output_of(assign, *arguments)
    assert "and 60 more" in output
    assert "and 84 more" in output
    found = json.loads(output_of(assign, *arguments, "--format", "json"))
    owned = found["strategies"]["roundrobin"]["moments"][0]["owned"]
    assert len(owned) == 100
    assert owned["m1"]["t"] == list(range(1, 10_000, 100))
    assert owned["m10"]["t"] == list(range(2, 10_000, 100)), "ids sort as texts"


def test_json_has_rounds_moves_and_figures() -> None:
    output = output_of(
        assign,
        "-s",
        "cooperative-sticky",
        "--members",
        "C0@I,C1:t",
        "--topics",
        "t=3",
        "--then",
        "leave C1",
        "--format",
        "json",
    )
    found = json.loads(output)
    assert found["members"][0] == {"member": "C0", "instance": "I", "streams": 1, "topics": ["t"]}
    start, after = found["strategies"]["cooperative-sticky"]["moments"]
    assert (start["step"], start["owned"]) == (None, {"C0": {"t": [0, 2]}, "C1": {"t": [1]}})
    assert (after["step"], after["owned"], after["unowned"]) == ("leave C1", {"C0": {"t": [0, 1, 2]}}, {})
    assert after["moves"] == [{"topic": "t", "partition": 1, "from": "C1"}]
    assert after["rounds"] == [{"revoked": {}, "given": {"C0": {"t": [1]}}}]
    names = ("fewest", "most", "balance", "moved", "forced", "minimum", "unnecessary", "stopped")
    assert [after[name] for name in names] == [3, 3, 0, 1, 1, 1, 0, 0]


def test_file_gives_the_group_and_options_add_to_it(tmp_path: Path) -> None:
    path = tmp_path / "group.toml"
    path.write_text(
        'strategies = ["sticky"]\nthen = ["join C2"]\n[topics]\nt = 4\n[[members]]\nname = "C"\ncount = 2\n'
    )
    found = json.loads(output_of(assign, str(path), "--format", "json", "--then", "leave C2"))
    assert list(found["strategies"]) == ["sticky"]
    assert found["steps"] == ["join C2", "leave C2"]
    assert list(json.loads(output_of(assign, str(path), "--format", "json", "-s", "range"))["strategies"]) == ["range"]
    with pytest.raises(UserError, match="has members and topics"):
        output_of(assign, str(path), "--topics", "t=1")


def test_strategy_that_refuses_the_group_is_told_and_the_others_are_shown() -> None:
    output = output_of(
        assign,
        "-s",
        "range,thread-roundrobin-0.8.2",
        "--members",
        "a:t,b",
        "--topics",
        "t=1,u=1",
        code=Exit.NOT_AS_EXPECTED,
    )
    assert "thread-roundrobin-0.8.2 fails: round robin of 0.8.2 needs the same topics" in output
    assert "range " in output


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--members", "C0"), "no group is given"),
        ((*GROUP, "-s", "stiky"), "Did you mean 'sticky'"),
        ((*GROUP, "--then", "fly C0"), "unknown step 'fly'"),
        (("--members", "C0", "--topics", ","), "names no topic"),
        ((*GROUP, *("--then", "add-partitions t0=1") * 51), "51 steps are too many"),
        ((*GROUP, "--subscribe", "C0=t9"), "unknown topic 't9'"),
        (("--members", "C0:101", "--topics", "t=1"), "between 1 and 100"),
        (("--members", ",".join(f"m{n}:100" for n in range(21)), "--topics", "t=1"), "2100 streams are too many"),
    ],
)
def test_mistakes_are_refused(arguments: tuple[str, ...], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        output_of(assign, *arguments)


def test_own_strategy_is_found_by_its_entry_point_and_nothing_heavy_is_loaded(tmp_path: Path) -> None:
    """In a process of its own, which the package is installed for; it says what it has loaded."""
    source = "def assign(sizes, group):\n    return {member: [] for member in group}\n"
    environment = installed(
        tmp_path, "lazy_assignor", source, "rebalance_lab.assignors", {"lazy": "lazy_assignor:assign"}
    )
    code = (
        "import sys\n"
        "from comparison.cli.main import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "finally:\n    print(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "assign", "-s", "all", *GROUP, "--then", "leave", "C0"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "lazy: nobody owns t0-0 t0-1 t1-0 t1-1 t2-0 t2-1 t3-0 t3-1" in done.stdout
    loaded = set(done.stderr.split())
    assert "numpy._core" in loaded
    assert not loaded & {"pyspark", "kazoo", "kio", "pandas", "pyarrow", "aiohttp", "asyncio", "msgspec"}
