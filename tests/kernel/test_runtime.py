"""What runs is handed its clock, stopwatch, randomness, threads and sockets: no module takes them by itself."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "kernel",
    "zkconsumer",
    "coordinator",
    *(f"comparison/scenarios/{each}" for each in ("processes", "run", "testbed")),
)
#: Modules and folders that may, and why.
EDGES = {
    "kernel/clock.py": "the clock",
    "kernel/runtime.py": "the machine's own",
    "kernel/platform/threads.py": "the threads",
    "kernel/waiting.py": "blocks a thread, for a lock or a child process",
    "kernel/trace/writer.py": "a lock: kazoo's threads write, too",
    "kernel/broker/loop/measured_loop.py": "the event loop itself",
    "kernel/broker/storage/reading.py": "a connection for each thread of its pool",
    "kernel/broker/storage/epochs.py": "the name of a temporary file",
    "kernel/broker/cluster/identity.py": "a comment in meta.properties",
    "kernel/zookeeper/client.py": "kazoo's thread, behind the bridge",
    "kernel/zookeeper/connection.py": "kazoo's thread, behind the bridge",
    "kernel/zookeeper/event_queue.py": "kazoo's thread, behind the bridge",
    "kernel/zookeeper/counters.py": "asks a server process",
    "kernel/zookeeper/containers": "server processes in containers",
    "kernel/platform/class_archives.py": "child processes",
    "kernel/platform/places.py": "names of temporary files, and several questions to a store at a time",
    "kernel/platform/ports.py": "ports for child processes",
    "kernel/platform/processes.py": "child processes",
    "kernel/platform/swept_folder.py": "the name of a temporary folder",
    "kernel/platform/whole_file.py": "the name of a temporary file",
    "comparison/scenarios/processes/fork_server.py": "the processes",
    "comparison/scenarios/processes/host.py": "a child's own process",
    "comparison/scenarios/run/experiments.py": "an entry point",
    "comparison/scenarios/run/own_code.py": "code of users that may block",
    "comparison/scenarios/testbed/chroot.py": "a ZooKeeper that outlives the run",
    "comparison/scenarios/testbed/given_log.py": "the log of a ZooKeeper that is not the run's",
    "comparison/scenarios/testbed/live_observer.py": "observes a ZooKeeper that is not the run's",
    "comparison/scenarios/testbed/observer.py": "the offsets of a ZooKeeper that is not the run's",
    "comparison/scenarios/testbed/quorum.py": "links between server processes",
}
MODULES = frozenset({"time", "random", "uuid", "secrets", "threading", "queue", "concurrent", "multiprocessing"})
#: Values, flags and seeded sources, which decide nothing by themselves.
HARMLESS = frozenset({"UUID", "Random", "Event"})
CALLS = frozenset(
    {"to_thread", "run_in_executor", "urandom", "uuid1", "uuid4", "gethostname", "SystemClock", "SystemRandom"}
)
#: Made with what the machine offers unless the caller hands it on: the parameter for that.
HANDED_ON = frozenset({"runtime", "bridge"})


@functools.cache
def modules() -> list[tuple[str, ast.Module]]:
    paths = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    named = ((path.relative_to(ROOT).as_posix(), path) for path in paths)
    return [
        (name, ast.parse(path.read_text(encoding="utf-8")))
        for name, path in named
        if not any(name == edge or name.startswith(f"{edge}/") for edge in EDGES)
    ]


def when_run(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes except those of `if TYPE_CHECKING`."""
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            yield node
            yield from when_run(node)


def taken(node: ast.AST) -> str:
    """What a node takes from the machine, or ''."""
    match node:
        case ast.Import(names):
            return next((each.name for each in names if each.name.split(".")[0] in MODULES), "")
        case ast.ImportFrom(module, names) if (module or "").split(".")[0] in MODULES:
            return next((f"{module}.{each.name}" for each in names if each.name not in HARMLESS), "")
        case ast.Call(ast.Name("Random"), [], []):
            return "Random without a seed"
        case ast.Call(ast.Name(name) | ast.Attribute(_, name)) if name in CALLS:
            return name
    return ""


def test_only_edges_take_time_randomness_or_threads_from_the_machine() -> None:
    found = {f"{name}: {what}" for name, tree in modules() for node in when_run(tree) if (what := taken(node))}
    assert not found, "hand it in: see kernel/runtime.py"


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("import time", "time"),
        ("import concurrent.futures", "concurrent.futures"),
        ("from random import choice", "random.choice"),
        ("from random import Random", ""),
        ("Random()", "Random without a seed"),
        ("Random('seed')", ""),
        ("asyncio.to_thread(work)", "to_thread"),
        ("loop.run_in_executor(None, work)", "run_in_executor"),
        ("os.urandom(16)", "urandom"),
        ("socket.gethostname()", "gethostname"),
        ("runtime.edge(socket.gethostname)()", ""),
        ("asyncio.get_running_loop().time()", ""),
    ],
)
def test_what_is_taken_from_the_machine_is_recognised(line: str, what: str) -> None:
    assert [each for node in when_run(ast.parse(line)) if (each := taken(node))] == ([what] if what else [])


def test_the_machines_own_runtime_is_a_default_of_parameters_and_nothing_else() -> None:
    used = []
    for name, tree in modules():
        defaults = {
            id(node)
            for function in ast.walk(tree)
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
            for default in (*function.args.defaults, *function.args.kw_defaults)
            if default is not None
            for node in ast.walk(default)
        }
        used += [
            f"{name}:{node.lineno}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and node.id == "REAL" and id(node) not in defaults
        ]
    assert not used


def defaulted(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(class or function, parameter) of everything that takes the machine's own if nothing is handed on."""
    for scope in ast.walk(tree):
        for function in ast.iter_child_nodes(scope):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                named = (*function.args.args, *function.args.kwonlyargs)
                made = scope.name if isinstance(scope, ast.ClassDef) and function.name == "__init__" else function.name
                for parameter in {each.arg for each in named} & HANDED_ON:
                    yield made, parameter


def name_of(node: ast.expr) -> str:
    match node:
        case ast.Name(name) | ast.Attribute(_, name):
            return name.lstrip("_")
    return ""


def test_everything_made_below_an_entry_point_is_handed_the_runtime() -> None:
    """Or it would silently run by the machine's."""
    takers = dict(pair for _, tree in modules() for pair in defaulted(tree))
    takers.pop("open")  # of sessions, below; `Storage.open` is a file's
    lacking = []
    for name, tree in modules():
        for node in ast.walk(tree):
            match node:
                case ast.Call(ast.Attribute(ast.Name("ZooKeeperSession"), "open")):
                    parameter = "bridge"
                case ast.Call(ast.Name(made) | ast.Attribute(_, made)) if made in takers:
                    parameter = takers[made]
                case _:
                    continue
            if parameter not in {each.arg for each in node.keywords} | {name_of(each) for each in node.args}:
                lacking.append(f"{name}:{node.lineno}")
    assert takers.keys() >= {"Storage", "Cluster", "BrokerServer", "DataFolder", "ensure_chroot"}
    assert not lacking
