"""The tests' helper that ends a session repeats until the server has ended it."""

from __future__ import annotations

import socket
import struct
import threading

import pytest

from tests.support.zookeeper.sessions import end_session

SESSION_ID, PASSWORD = 7, b"p" * 16


def connected(timeout_ms: int) -> bytes:
    session_id = SESSION_ID if timeout_ms else 0
    frame = struct.pack(">iiqi", 0, timeout_ms, session_id, len(PASSWORD)) + PASSWORD + b"\0"
    return struct.pack(">i", len(frame)) + frame


CLOSED = struct.pack(">iiqi", 16, 1, 9, 0)


@pytest.mark.parametrize(
    "answers",
    [
        [connected(10_000) + CLOSED],
        [connected(0)],
        [b"", connected(10_000) + CLOSED],
        [connected(10_000), connected(0)],  # the first client has reconnected before its session was closed
    ],
)
def test_session_counts_as_ended_when_a_server_confirms_it(answers: list[bytes]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for answer in answers:
                connection, _ = server.accept()
                with connection:
                    connection.recv(4096)
                    connection.sendall(answer)

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        end_session(f"127.0.0.1:{server.getsockname()[1]}", (SESSION_ID, PASSWORD), timeout_s=60)
        serving.join(60)
        assert not serving.is_alive(), "every answer was used"
