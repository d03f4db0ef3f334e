"""An event loop under virtual time for all nodes of a simulated world.

Time stands still while anything is ready, and then goes on to the next timer. Of several nodes that are ready at once,
the seed chooses which takes its turn; each runs its own callbacks in order, as a process of its own would. Unlike
asyncio's own loops, timers of the same moment keep the order in which they were set.

It is an `asyncio.AbstractEventLoop` by the documented interface alone, so it depends on no Python's internals. What
waits for the real world is not there: pipes, signals, name lookups. Work for threads is done at once.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from contextlib import contextmanager
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

from comparison.scenarios.plan.links import Kind
from comparison.simulation.callbacks import Callback, Timer
from comparison.simulation.network import Network
from comparison.simulation.streams import connected, serving
from kernel.clock import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from comparison.scenarios.plan.links import Delay
    from comparison.simulation.node import Node
    from comparison.simulation.scheduling import Chance

T = TypeVar("T")
_Ts = TypeVarTuple("_Ts")

log = logging.getLogger(__name__)

#: Turns without any time passing: something is ready forever.
_TURNS_MAX = 1_000_000
#: Cancelled timers are removed once there are more than this, and than half of all.
_CANCELLED_MAX = 1_000


class Stalled(RuntimeError):
    """Nothing is ready and no timer is set, or something is ready again and again while no time passes."""


class VirtualLoop(asyncio.AbstractEventLoop):
    """See the module. `order` draws who comes first."""

    def __init__(
        self, order: Chance, delay_ns: Delay, *, start_ns: int = 0, cost_ns: Callable[[], int] | None = None
    ) -> None:
        """`cost_ns` draws how long a node is busy with each of the callbacks of a turn; the runner never is."""
        self.now_ns = start_ns
        self._read_ns = 0
        self.network = Network(self, delay_ns)
        self._order = order
        self._cost_ns = cost_ns
        self._runnable: list[Node] = []
        self._current: Node | None = None  #: whose turn it is
        #: (when, number, callback or function, the function's arguments)
        self._timers: list[tuple[int, int, Any, tuple[Any, ...] | None]] = []
        self._number = 0
        self._cancelled = 0
        self._turns = 0  #: since time has passed
        self._ended: list[set[asyncio.Task[Any]]] = []
        self._interrupts: list[tuple[Callable[[], object], Context]] = []
        self._is_running = False
        self._is_closed = False
        self._exception_handler: Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object] | None = None

    # -- running -----------------------------------------------------------------------------------------------------

    def run_until_complete(self, future: Any) -> Any:
        """The result of a coroutine, which runs on the current node. Raises `Stalled` if it cannot be reached."""
        asked = asyncio.ensure_future(future, loop=self)
        with self._running():
            while not asked.done():
                if self._runnable:
                    self._turn()
                else:
                    self._advance()
        return asked.result()

    @property
    def next_ns(self) -> int | None:
        """When something happens next, if nothing is ready; None if nothing ever will."""
        timers = self._timers
        while timers and timers[0][3] is None and timers[0][2].function is None:
            heapq.heappop(timers)
            self._cancelled -= 1
        return timers[0][0] if timers else None

    def run_until(self, when_ns: int) -> None:
        """Run all that is due by then; it is then that moment, and nothing is ready.

        However a stretch of time is divided into such calls, the same happens in it.
        """
        with self._running():
            while True:
                if self._runnable:
                    self._turn()
                elif (next_ns := self.next_ns) is not None and next_ns <= when_ns:
                    self._advance()
                else:
                    break
        self.now_ns = max(self.now_ns, when_ns)

    @contextmanager
    def _running(self) -> Iterator[None]:
        self._is_running = True
        asyncio._set_running_loop(self)
        try:
            yield
        finally:
            asyncio._set_running_loop(None)
            self._is_running = False

    def _turn(self) -> None:
        """Let one node run what is ready on it now."""
        runnable = self._runnable
        order = self._order
        if len(runnable) == 1 and not order.counts_turns:
            node = runnable.pop()
        else:
            place = order.place(runnable, self.now_ns)
            node = runnable[place]
            runnable[place] = runnable[-1]
            runnable.pop()
        node.is_listed = False
        self._current = node
        try:
            count = self._run_ready(node)
        finally:
            self._current = None
        busy_ns = order.lag_ns(node) if order.counts_turns else 0
        if self._cost_ns is not None and count and node.kind is not Kind.RUNNER:
            busy_ns += count * self._cost_ns()
        if busy_ns and count:
            node.is_busy = True
            self.at_ns(self.now_ns + busy_ns, self._finished, node)
        elif node.ready:
            self._list(node)
        self._turns += 1
        if self._turns > _TURNS_MAX:
            raise Stalled(
                f"{node.name} is ready again and again while no time passes: {node.ready or 'another node as well'}"
            )

    def _run_ready(self, node: Node) -> int:
        """Run what is ready now, unless the node ends or freezes meanwhile; how many callbacks ran."""
        ready = node.ready
        count = 0
        for _ in range(len(ready)):
            callback = ready.popleft()
            function = callback.function
            if function is None:
                continue
            count += 1
            try:
                callback.context.run(function, *callback.arguments)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:  # noqa: BLE001  # as asyncio does
                message = f"Exception in callback {function!r}"
                self.call_exception_handler({"message": message, "exception": error, "handle": callback})
            if not node.is_alive or node.is_frozen:
                break
        return count

    def _finished(self, node: Node) -> None:
        node.is_busy = False
        if node.ready:
            self._list(node)

    def interrupt(self, callback: Callable[[], object], context: Context) -> None:
        """From a signal handler, in the middle of anything: call this before time goes on."""
        self._interrupts.append((callback, context))

    def _advance(self) -> None:
        """Go on to the next moment for which a timer is set."""
        while self._interrupts:
            callback, context = self._interrupts.pop(0)
            self.call_soon(callback, context=context)
        if self._runnable:
            return
        when = self.next_ns
        if when is None:
            raise Stalled("nothing is ready, and no timer is set")
        timers = self._timers
        if when > self.now_ns:
            self.now_ns, self._turns = when, 0
        while timers and timers[0][0] == when:
            _, _, what, arguments = heapq.heappop(timers)
            if arguments is not None:
                what(*arguments)
            elif what.function is None:
                self._cancelled -= 1
            else:
                what.is_set = False
                self._make_ready(what)

    def _make_ready(self, callback: Callback) -> None:
        node = callback.node
        if node.is_alive:
            node.ready.append(callback)
            if not node.is_listed and node is not self._current:
                self._list(node)

    def _list(self, node: Node) -> None:
        if not (node.is_listed or node.is_frozen or node.is_busy or node is self._current) and node.is_alive:
            node.is_listed = True
            self._runnable.append(node)

    # -- nodes -------------------------------------------------------------------------------------------------------

    def kill(self, *nodes: Node) -> None:
        """Nothing of the nodes runs from now on; the machine closes their sockets."""
        # Python would close the coroutines of tasks that nobody refers to, and run what they do at their end.
        self._ended.append(asyncio.all_tasks(self))
        for node in nodes:
            self._unlist(node)
            node.end()

    def freeze(self, node: Node) -> None:
        """Nothing of the node runs until `thaw`; what becomes ready waits, as do bytes that arrive."""
        node.is_frozen = True
        self._unlist(node)

    def thaw(self, node: Node) -> None:
        node.is_frozen = False
        held, node.held = node.held, []
        for send in held:
            send()
        if node.ready:
            self._list(node)

    def _unlist(self, node: Node) -> None:
        if node.is_listed:
            node.is_listed = False
            self._runnable.remove(node)

    # -- timers and callbacks ----------------------------------------------------------------------------------------

    def time(self) -> float:
        return self.now_ns / NS_PER_S

    def reading_ns(self) -> int:
        """The time, or a nanosecond more than at the last reading: whatever comes later is seen to come later."""
        read_ns = self._read_ns + 1
        if read_ns < self.now_ns:
            read_ns = self.now_ns
        self._read_ns = read_ns
        return read_ns

    def at_ns(self, when_ns: int, what: Callable[..., object], *arguments: Any) -> None:
        """Have the machine itself do something, whatever becomes of the node that asks for it."""
        self._number += 1
        heapq.heappush(self._timers, (when_ns, self._number, what, arguments))

    def call_soon(  # type: ignore[override]  # not asyncio's own class of handles
        self, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None
    ) -> Callback:
        made = Callback(callback, args, copy_context() if context is None else context)
        node = made.node
        if node.is_alive:
            node.ready.append(made)
            if not node.is_listed and node is not self._current:
                self._list(node)
        return made

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None
    ) -> Timer:
        return self.call_at(self.now_ns / NS_PER_S + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None
    ) -> Timer:
        when_ns = max(round(when * NS_PER_S), self.now_ns)
        if when_ns / NS_PER_S < when:  # who looks at the clock then must find the moment come
            when_ns += 1
        timer = Timer(callback, args, copy_context() if context is None else context, when, self._timer_cancelled)
        self._number += 1
        heapq.heappush(self._timers, (when_ns, self._number, timer, None))
        return timer

    def _timer_cancelled(self) -> None:
        """Its timers call this."""
        self._cancelled += 1
        if self._cancelled > max(_CANCELLED_MAX, len(self._timers) // 2):
            self._timers = [timer for timer in self._timers if timer[3] is not None or timer[2].function is not None]
            heapq.heapify(self._timers)
            self._cancelled = 0

    # -- futures and tasks -------------------------------------------------------------------------------------------

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]  # each Python declares it differently
        self, coro: Coroutine[Any, Any, T], *, name: str | None = None, context: Context | None = None, **more: Any
    ) -> asyncio.Task[T]:
        return asyncio.Task(coro, loop=self, name=name, context=context, **more)

    def run_in_executor(  # type: ignore[override]  # typeshed declares an overload for TypeVarTuple
        self, executor: object, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Do it at once: no time passes.

        What waits for something of the simulated world cannot block: it is a coroutine, which is awaited.
        """
        done: asyncio.Future[T] = self.create_future()
        try:
            result = func(*args)
        except Exception as error:  # noqa: BLE001  # raised where it is awaited
            done.set_exception(error)
            return done
        if asyncio.iscoroutine(result):
            return self.create_task(result)
        done.set_result(result)
        return done

    # -- the network -------------------------------------------------------------------------------------------------

    async def create_connection(  # type: ignore[override]  # only by host and port
        self,
        protocol_factory: Callable[[], asyncio.Protocol],
        host: str | None = None,
        port: int | None = None,
        **_: Any,
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        return await connected(self.network, protocol_factory, port or 0)

    async def create_server(  # type: ignore[override]  # only by host and port
        self,
        protocol_factory: Callable[[], asyncio.Protocol],
        host: str | None = None,
        port: int | None = None,
        **_: Any,
    ) -> asyncio.AbstractServer:
        return serving(self.network, protocol_factory, port or 0)

    # -- the rest of the interface -----------------------------------------------------------------------------------

    def add_signal_handler(self, sig: int, callback: Callable[[*_Ts], object], *args: *_Ts) -> None:
        """Nodes are ended by commands, or killed."""

    def remove_signal_handler(self, sig: int) -> bool:
        return False

    def is_running(self) -> bool:
        return self._is_running

    def is_closed(self) -> bool:
        return self._is_closed

    def close(self) -> None:
        self._is_closed = True

    async def shutdown_asyncgens(self) -> None:
        """Generators end with their tasks."""

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # asyncio's
        """There is none."""

    def get_debug(self) -> bool:
        return False

    def set_debug(self, enabled: bool) -> None:  # asyncio's
        """Has no effect."""

    def set_exception_handler(
        self, handler: Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object] | None
    ) -> None:
        self._exception_handler = handler

    def get_exception_handler(self) -> Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object] | None:
        return self._exception_handler

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        log.error("%s", context.get("message"), exc_info=context.get("exception"))

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if self._is_closed:  # Python complains of tasks that are left undone, as they are to be
            return
        if self._exception_handler is not None:
            self._exception_handler(self, context)
        else:
            self.default_exception_handler(context)
