"""`rebalance-lab doctor --broker`: the event-loop latency of one of our brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from comparison.interruptible import run
from comparison.screen.printable import printable
from kernel.broker.loop.loop_figures import LoopFigures
from kernel.client.bootstrap import addresses
from kernel.client.connection import BrokerConnection
from kernel.errors import ConfigurationError, EnvironmentFault
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api

if TYPE_CHECKING:
    from typing import Any


_GIVE = "Give a broker started by `rebalance-lab broker` (see `rebalance-lab broker status`)"


class BrokerLoop(NamedTuple):
    """`longest_piece` names the longest piece of work: a request, or 'answer'."""

    figures: LoopFigures
    longest_piece: str
    longest_piece_us: int

    def lines(self) -> list[str]:
        figures = self.figures
        measured_s = figures.measured_us / 1e6
        found = [
            f"longest turn {figures.longest_us / 1000:.1f} ms, of {figures.turns:,} in {measured_s:.1f} s; "
            f"99 % took at most {figures.quantile_us(0.99) / 1000:.3g} ms"
        ]
        if self.longest_piece_us:
            found.append(
                f"longest piece of work {self.longest_piece_us / 1000:.1f} ms: {self.longest_piece or 'other'}"
            )
        if figures.longest_collection_us:
            found.append(f"longest garbage collection {figures.longest_collection_us / 1000:.1f} ms")
        return found

    def as_json(self) -> dict[str, object]:
        """With the field names of the response."""
        return {
            **self.figures._asdict(),
            "longest_piece": self.longest_piece,
            "longest_piece_us": self.longest_piece_us,
        }


def loop_of(address: str, *, reset: bool) -> BrokerLoop:
    """The figures of the broker at `HOST:PORT`; `reset` resets its counters.

    Raises `ConfigurationError` for a malformed address, `EnvironmentFault` for a broker that has none, `Unavailable`
    and `ProtocolError` when no broker answers.
    """
    try:
        ((host, port),) = addresses(address)
    except ValueError as error:
        raise ConfigurationError(f"--broker {address!r} is not an address. Give the HOST:PORT of one broker") from error
    return run(_ask(host, port, reset=reset))


async def _ask(host: str, port: int, *, reset: bool) -> BrokerLoop:
    connection = await BrokerConnection.open(host, port, "rebalance-lab-doctor")
    try:
        if Api.DescribeLoop not in connection.offered:
            raise EnvironmentFault(
                f"the broker at {host}:{port} is not one of rebalance-lab's: it does not measure its event loop. "
                f"{_GIVE}"
            )
        answer: Any = await connection.call(Api.DescribeLoop, {"reset": reset})
        if answer.error_code is not ErrorCode.none:
            raise EnvironmentFault(
                f"the broker at {host}:{port} runs inside another program, whose event loop is not measured. {_GIVE}"
            )
    finally:
        connection.close()
        await connection.wait_closed()
    figures = LoopFigures(*(getattr(answer, name) for name in LoopFigures._fields))
    return BrokerLoop(figures, printable(answer.longest_piece), answer.longest_piece_us)
