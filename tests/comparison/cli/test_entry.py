"""Ctrl-C and SIGTERM while a command loads modules: it ends with the documented exit code, and without a traceback."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from comparison.exits import Exit
from comparison.interruptible import run, run_reacting
from comparison.interrupts import LIMIT_VARIABLE, Interrupted, interrupts_wait, reacting

#: Runs the rest of its arguments as a command, and signals itself when the given module is imported.
PROGRAM = """
import os, sys
from comparison.cli.entry import main

class Signalling:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == wanted:
            exec("os.kill(os.getpid(), int(number))")  # as a dataclass makes its methods

_, wanted, number, *arguments = sys.argv
sys.argv = ["rebalance-lab", *arguments]
sys.meta_path.insert(0, Signalling)
main()
"""


@pytest.mark.parametrize(
    ("module", "number", "message"),
    [
        ("click", signal.SIGINT, ""),
        ("comparison.cli.scenarios", signal.SIGTERM, ""),
        ("comparison.scenarios.plan.catalogue", signal.SIGINT, ""),
        # Imported by the command at work.
        ("comparison.screen.text_table", signal.SIGINT, "rebalance-lab: interrupted"),
        ("comparison.screen.text_table", signal.SIGTERM, "rebalance-lab: interrupted"),
    ],
)
def test_a_signal_ends_a_command_that_is_starting(number: signal.Signals, module: str, message: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, module, str(int(number)), "scenarios"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.returncode, ended.stderr.strip(), ended.stdout) == (Exit.INTERRUPTED, message, "")


@pytest.mark.parametrize(
    ("module", "number"),
    [("pyspark", signal.SIGTERM), ("comparison.pipeline.written", signal.SIGINT)],
    ids=["before the JVM is started", "while the JVM starts"],
)
def test_a_signal_ends_an_analysis_that_loads_modules(tmp_path: Path, number: signal.Signals, module: str) -> None:
    """As a module: interrupted in `exec`, Python would die of SIGINT in spite of the exit code."""
    (tmp_path / "signalled.py").write_text(PROGRAM)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("{}")
    ended = subprocess.run(
        [sys.executable, "-m", "signalled", module, str(int(number)), "analyze", "run"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=tmp_path,
    )
    assert (ended.returncode, ended.stderr.strip(), ended.stdout) == (
        Exit.INTERRUPTED,
        "rebalance-lab: interrupted",
        "",
    )


def test_signals_wait_until_the_modules_are_loaded() -> None:
    loaded = []

    def load() -> None:
        with interrupts_wait():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            loaded.append("modules")

    with pytest.raises(KeyboardInterrupt):
        load()
    assert loaded == ["modules"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


#: Ends as a command does, and waits where no signal handler is called: in a C function.
STUCK = """
import ctypes
from comparison.interrupts import end_at_once, last_words, reacting

end_at_once()
libc, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(64)
libc.pthread_mutex_lock(mutex)
with last_words(lambda: print("kept", flush=True)), reacting(lambda: None):
    print("stuck", flush=True)
    libc.pthread_mutex_lock(mutex)  # no signal interrupts it
"""
#: Waits for a thread of its own when it has ended, as after `asyncio.to_thread`.
JOINING = """
import concurrent.futures, threading
from comparison.interrupts import end_at_once, ending

end_at_once()
pool = concurrent.futures.ThreadPoolExecutor(1)
pool.submit(threading.Event().wait)
ending(7)
print("stuck", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
@pytest.mark.parametrize(("program", "code", "words"), [(STUCK, Exit.INTERRUPTED, "kept\n"), (JOINING, 7, "")])
def test_command_that_is_stuck_is_ended_by_one_signal(
    number: signal.Signals, program: str, code: int, words: str
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env={**os.environ, LIMIT_VARIABLE: "0.2"}
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "stuck\n"
        child.send_signal(number)
        output, _ = child.communicate(timeout=120)
    assert (child.returncode, output) == (code, words)


#: Says when the interpreter takes itself apart.
TAKEN_APART = """
import sys
from comparison.interrupts import to_the_end

class Last:
    def __del__(self, write=sys.stderr.write):
        write("taken apart")

def command():
    print("said")
    raise SystemExit(7)

last = Last()
to_the_end(command)
"""


@pytest.mark.parametrize(("before", "errors"), [("", "taken apart"), ("import fsspec", "")])
def test_process_that_has_used_a_store_ends_without_taking_itself_apart(before: str, errors: str) -> None:
    """A thread of a library that came back just then ended a good analysis with SIGABRT."""
    ended = subprocess.run(
        [sys.executable, "-c", before + TAKEN_APART], capture_output=True, text=True, timeout=300, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (7, "said\n", errors)


def test_signal_cancels_what_a_command_runs_and_is_raised_after_its_cleanup() -> None:
    cleaned = []

    async def work() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
            await asyncio.Event().wait()
        finally:
            signal.raise_signal(signal.SIGTERM)  # a shell and a parent may both send one
            await asyncio.sleep(0.01)
            cleaned.append("up")

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted):
        run(work())
    assert cleaned == ["up"]
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("begin", [run, run_reacting])
def test_signal_waits_until_the_loop_is_made_and_what_it_was_made_for_never_begins(begin: Callable[..., None]) -> None:
    made: list[asyncio.AbstractEventLoop] = []

    def loop() -> asyncio.AbstractEventLoop:
        signal.raise_signal(signal.SIGINT)
        made.append(asyncio.new_event_loop())
        return made[0]

    work = asyncio.sleep(60)
    with pytest.raises(KeyboardInterrupt):
        begin(work, loop=loop)
    assert made[0].is_closed()
    assert inspect.getcoroutinestate(work) == inspect.CORO_CLOSED


def test_command_that_ends_in_order_when_it_is_cancelled_has_its_own_result() -> None:
    async def work() -> int:
        try:
            signal.raise_signal(signal.SIGINT)
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass
        return 7

    assert run(work()) == 7


def test_reactions_are_those_of_the_innermost_block_and_handlers_are_put_back() -> None:
    reacted: list[str] = []
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with reacting(lambda: reacted.append("outer")):
        with reacting(lambda: reacted.append("inner")):
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
    assert reacted == ["inner", "outer"]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
