"""A broker that announces absurd lengths: each command ends with an error that names the broker and its response."""

from __future__ import annotations

import random
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from kernel.wire.codec import encode_response
from kernel.wire.tags import uvarint
from kernel.wire.versions import SERVED, Api
from tests.support.wire.marked_frames import Kind, Message, marks, random_body


@contextmanager
def hostile_broker(*, bad: Api | None = None) -> Iterator[str]:
    """Yields "host:port". `bad` is the API answered in this way, all others then get no answer; None: all APIs."""
    listener = socket.create_server(("127.0.0.1", 0))
    connections: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connections.append(connection)
            threads.append(threading.Thread(target=_serve, args=(connection, bad), daemon=True))
            threads[-1].start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield "{}:{}".format(*listener.getsockname())
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        accepting.join()
        for connection in connections:
            connection.close()
        for thread in threads:
            thread.join()


def _serve(connection: socket.socket, bad: Api | None) -> None:
    with connection, connection.makefile("rb") as frames:
        try:
            while head := frames.read(4):
                frame = frames.read(*struct.unpack(">i", head))
                key, version, correlation_id = struct.unpack_from(">hhi", frame)
                if bad in (None, key):
                    connection.sendall(absurd_answer(Api(key), version, correlation_id))
                elif key == Api.ApiVersions:
                    rows = [
                        {"api_key": api, "min_version": low, "max_version": high} for api, (low, high) in SERVED.items()
                    ]
                    connection.sendall(encode_response(Api.ApiVersions, version, correlation_id, {"api_keys": rows}))
        except (OSError, ValueError):  # the client has gone, or the test has ended
            return


def absurd_answer(api: Api, version: int, correlation_id: int) -> bytes:
    """A complete frame whose first count is two billion."""
    message = Message(api, version, is_request=False)
    frame = message.encoded(random_body(message.entity, random.Random(1)), correlation_id=correlation_id)
    count = next((mark for mark in marks(message, frame) if mark.kind is Kind.COUNT), None)
    if count is None:  # no array: truncate it
        return struct.pack(">ii", 4, correlation_id)
    announced = uvarint(2**31) if count.is_compact else struct.pack(">i", 2**31 - 1)
    tail = frame[4 : count.at] + announced + frame[count.at + count.size :]
    return struct.pack(">i", len(tail)) + tail


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
