"""The fork server: one process that has loaded the children's code, and forks each of them.

Loading the code takes half a second of processor time per process, and a comparison starts about a hundred. A child
is a process in a session of its own. It dies with the fork server, and the fork server with the runner: by the
parent-death signal, and by the end of the channel between them.

The channel (a SOCK_SEQPACKET socket) carries requests in one direction, with the child's standard input, output and
error as descriptors, and reports of forks and exits in the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import select
import signal
import socket
import sys
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import msgspec

from comparison.scenarios.processes.parent_death import set_parent_death_signal
from kernel.errors import EnvironmentFault
from kernel.platform.interpreter import module_command
from kernel.platform.lean_imports import import_lean, importing, load_numpy
from kernel.runtime import REAL
from kernel.tasks import cancel_and_wait
from kernel.wire.versions import Api

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

PRELOADED = (
    "comparison.scenarios.processes.member_process",
    "comparison.scenarios.processes.broker_process",
    "comparison.scenarios.processes.bystander_process",
)
#: What members and brokers send each other in every run.
PREPARED = (
    Api.Produce,
    Api.Fetch,
    Api.ListOffsets,
    Api.Metadata,
    Api.OffsetCommit,
    Api.OffsetFetch,
    Api.FindCoordinator,
    Api.ApiVersions,
    Api.CreateTopics,
)
_MESSAGE_MAX = 4096
_START_S = 60.0
_STOP_S = 5.0


class ForkedChild:
    """A `children.Process`: our ends of its pipes, and its process group."""

    def __init__(
        self, pid: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, ended: asyncio.Future[int]
    ) -> None:
        self.pid = pid
        self.lines: AsyncIterator[bytes] = reader
        self.ended = ended
        self._writer = writer

    def write(self, line: bytes) -> None:
        if not self.ended.done() and not self._writer.is_closing():
            self._writer.write(line)

    def close(self) -> None:
        self._writer.close()

    def signal(self, number: signal.Signals) -> None:
        if not self.ended.done():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)

    @property
    def is_stopped(self) -> bool:
        """See proc(5): the state comes after the command's name."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii", errors="replace")
        except FileNotFoundError:  # it has ended
            return False
        return stat.rpartition(")")[2].split()[0] == "T"

    @property
    def ports(self) -> frozenset[int]:
        import psutil  # not in the fork server, whose children would have it as well

        try:
            connections = psutil.Process(self.pid).net_connections(kind="tcp")
        except psutil.NoSuchProcess:
            return frozenset()
        return frozenset(connection.laddr.port for connection in connections if connection.laddr)


class ForkServer:
    """The runner's side, as `children.Processes`; start it with `open`."""

    runtime = REAL

    def __init__(self, process: asyncio.subprocess.Process, channel: socket.socket) -> None:
        self._process = process
        self._channel = channel
        self._ended: dict[int, asyncio.Future[int]] = {}
        #: Requests without a fork yet, in order: forks are reported in the order of their requests.
        self._requested: deque[asyncio.Future[int]] = deque()
        self._listening = asyncio.create_task(self._listen(), name="fork server")

    @property
    def pid(self) -> int:
        return self._process.pid

    @classmethod
    async def open(cls, preloaded: Sequence[str] = PRELOADED) -> ForkServer:
        """Start the process, which loads these modules; `spawn` may be called at once.

        Raises `EnvironmentFault` when it cannot be started.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        with theirs:
            try:
                process = await asyncio.create_subprocess_exec(
                    *module_command(
                        "comparison.scenarios.processes.fork_server",
                        str(theirs.fileno()),
                        str(os.getpid()),
                        *preloaded,
                    ),
                    stdin=asyncio.subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
            except OSError as error:
                ours.close()
                raise EnvironmentFault(f"no process can be started: {error.strerror}") from error
        return cls(process, ours)

    async def spawn(self, module: str, log: Path) -> ForkedChild:
        """Fork a child that runs `module.main()`, with its stderr appended to `log`.

        Raises `EnvironmentFault` when no child was forked; at once when the fork server has ended.
        """
        loop = asyncio.get_running_loop()
        in_read, in_write = os.pipe()
        out_read, out_write = os.pipe()
        reader = asyncio.StreamReader(limit=1 << 20)
        protocol = asyncio.StreamReaderProtocol(reader)
        reading, _ = await loop.connect_read_pipe(lambda: protocol, os.fdopen(out_read, "rb", 0))
        transport, flow = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(in_write, "wb", 0))
        try:
            try:
                pid = await asyncio.wait_for(self._request(module, log, in_read, out_write), _START_S)
            finally:
                os.close(in_read)
                os.close(out_write)
        except BaseException as error:
            # If a child is forked nevertheless, it ends with its input.
            reading.close()
            transport.close()
            if isinstance(error, TimeoutError):
                raise EnvironmentFault(f"no process was started within {_START_S:g} s") from None
            raise
        return ForkedChild(pid, reader, asyncio.StreamWriter(transport, flow, None, loop), self._ended[pid])

    def _request(self, module: str, log: Path, stdin: int, stdout: int) -> asyncio.Future[int]:
        """Request a child. The future has its pid once it is forked."""
        if self._listening.done():
            raise self._gone()
        with log.open("ab") as errors:
            try:
                descriptors = [stdin, stdout, errors.fileno()]
                socket.send_fds(self._channel, [msgspec.json.encode({"module": module})], descriptors)
            except ConnectionError as error:
                raise self._gone() from error
        expected: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._requested.append(expected)
        return expected

    def _gone(self) -> EnvironmentFault:
        return EnvironmentFault(
            f"the process that starts members and brokers (pid {self.pid}) has ended: was it killed, is memory short?"
        )

    async def stop(self) -> None:
        """End the fork server and its remaining children."""
        self._channel.shutdown(socket.SHUT_WR)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), _STOP_S)
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        await cancel_and_wait(self._listening)
        self._channel.close()

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(ConnectionError):  # the server was killed with a request unread
            while message := await loop.sock_recv(self._channel, _MESSAGE_MAX):
                report = msgspec.json.decode(message, type=dict[str, int])
                if "forked" in report:
                    self._ended[report["forked"]] = loop.create_future()
                    expected = self._requested.popleft()
                    if not expected.done():  # the caller was cancelled
                        expected.set_result(report["forked"])
                else:
                    self._ended[report["ended"]].set_result(report["code"])
        for expected in self._requested:
            if not expected.done():
                expected.set_exception(self._gone())
        for ended in self._ended.values():
            if not ended.done():
                ended.set_result(-signal.SIGKILL)  # its children died with it


# -- the server's side -----------------------------------------------------------------------------------------------


def _serve(channel: socket.socket) -> None:
    """Fork a child for each request and report each exit, until the runner closes the channel."""
    ourselves = os.getpid()
    signals, wakes = socket.socketpair()
    wakes.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
    while True:
        ready, _, _ = select.select([channel, signals], [], [])
        if signals in ready:
            signals.recv(_MESSAGE_MAX)
            _report_ends(channel)
        if channel in ready:
            message, descriptors, _, _ = socket.recv_fds(channel, _MESSAGE_MAX, 3)
            if not message:
                # Exits from now on cannot be reported: the socket is closed.
                signal.set_wakeup_fd(-1)
                return
            module = msgspec.json.decode(message, type=dict[str, str])["module"]
            grouped, is_grouped = os.pipe()
            pid = os.fork()
            if pid == 0:
                for end in (channel, signals, wakes):
                    end.close()
                os.close(grouped)
                _be_child(module, descriptors, ourselves, is_grouped)
            for descriptor in (*descriptors, is_grouped):
                os.close(descriptor)
            # Reported only once the child has a process group: a signal to the group would miss it before.
            os.read(grouped, 1)
            os.close(grouped)
            channel.send(msgspec.json.encode({"forked": pid}))


def _report_ends(channel: socket.socket) -> None:
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            channel.send(msgspec.json.encode({"ended": pid, "code": os.waitstatus_to_exitcode(status)}))


def _be_child(module: str, descriptors: list[int], server: int, is_grouped: int) -> NoReturn:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    set_parent_death_signal(server)
    os.close(is_grouped)
    for standard, descriptor in enumerate(descriptors):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    _leave(_code_of(module))


def _code_of(module: str) -> int:
    """Run the child's program: its exit code. Errors end the process as they do everywhere."""
    try:
        importlib.import_module(module).main()
    except SystemExit as ended:
        if not isinstance(ended.code, int):
            raise  # the interpreter knows what to print
        return ended.code
    return 0


def _leave(code: int) -> NoReturn:
    """End without tearing down the interpreter, which would copy every page that the child shares with the server."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def prepare() -> None:
    """Load what most children need with their first messages, once and for all of them."""
    load_numpy()
    importlib.import_module("comparison.consumers").load_all()
    importlib.import_module("kernel.wire.codec").prepare(PREPARED)  # both not before: they import kio


def main() -> None:
    import_lean()
    channel = socket.socket(fileno=int(sys.argv[1]))
    set_parent_death_signal(int(sys.argv[2]))
    with importing():
        for module in sys.argv[3:]:
            importlib.import_module(module)
        prepare()
    _serve(channel)


if __name__ == "__main__":
    main()
