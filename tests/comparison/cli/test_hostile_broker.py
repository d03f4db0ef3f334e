"""A broker that announces absurd lengths: each command ends with an error that names the broker and its response."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack

from kernel.wire.versions import Api
from tests.comparison.cli.hostile_broker import hostile_broker

#: The request that the broker gets first, or after ApiVersions; and the command.
COMMANDS = [
    (Api.ApiVersions, ["doctor", "--broker", "{}"]),
    (Api.DescribeLoop, ["doctor", "--broker", "{}"]),
    (Api.Metadata, ["produce", "--topic", "t", "--count", "1", "--bootstrap-server", "{}"]),
    (Api.Metadata, ["consume", "--design", "eager", "--group", "g", "--topic", "t", "--bootstrap-server", "{}"]),
]
#: An unchecked count would allocate 16 GB or more, and abort the process.
LIMITED = (
    "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (3_000_000_000,) * 2);"
    " from comparison.cli.main import main; main()"
)


def test_absurd_response_ends_a_command_with_one_line_that_names_broker_and_request() -> None:
    with ExitStack() as stack:
        running = []
        for bad, arguments in COMMANDS:
            address = stack.enter_context(hostile_broker(bad=bad))
            command = [sys.executable, "-c", LIMITED, *(argument.format(address) for argument in arguments)]
            child = stack.enter_context(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
            stack.callback(child.kill)
            running.append((bad, address, child))
        for bad, address, child in running:
            _, error = child.communicate(timeout=120)
            assert child.returncode in (254, 255), f"{bad.name}: {child.returncode} {error}"
            assert error.startswith(f"Error: {address} answered {bad.name} with nonsense: "), error
            assert "announces 2147483647 elements" in error
            assert error.count("\n") == 1, "no traceback"
