"""A gate in front of a session's operations lets them through one at a time, in order."""

from __future__ import annotations

import asyncio

from kernel.zookeeper.operations import Attempt, Operation
from kernel.zookeeper.pipeline import Pipeline
from kernel.zookeeper.stepping import StepGate


class Session:
    """A pipeline behind a gate that is always connected; `sent` are the paths."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.reported: list[tuple[str, int]] = []
        self.gate = StepGate(
            lambda operation, behind: self.reported.append((operation.path if operation else "", behind))
        )
        self.pipeline = Pipeline(lambda _, attempt, __: self.sent.append(attempt.operation.path), lambda *_: None)
        self.pipeline.gate = self.gate
        self.gate.attach(self.pipeline.flow)

    def ask(self, path: str) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.pipeline.append(Attempt(Operation(op="getData", path=path, request=None), future))
        self.pipeline.flow()
        return future


async def test_operations_pass_a_gate_that_is_open() -> None:
    session = Session()
    session.ask("/a")
    session.gate.let_go()
    assert (session.sent, session.reported) == (["/a"], [])


async def test_operations_of_a_stepped_session_are_let_go_one_by_one_in_order() -> None:
    session = Session()
    session.gate.step()
    session.ask("/a")
    session.ask("/b")
    assert (session.sent, session.reported) == ([], [("/a", 0), ("/a", 1)])
    session.gate.let_go()
    assert (session.sent, session.reported[2:]) == (["/a"], [("", 0), ("/b", 0)])
    session.gate.let_go()
    assert (session.sent, session.reported[4:]) == (["/a", "/b"], [("", 0)])
    session.gate.let_go()
    session.ask("/c")
    assert session.sent == ["/a", "/b"], "what is let go before anything waits is not remembered"


async def test_operation_that_was_cancelled_while_it_waited_is_not_sent() -> None:
    session = Session()
    session.gate.step()
    session.ask("/a").cancel()
    session.ask("/b")
    assert session.reported == [("/a", 0), ("/b", 0)]
    session.gate.let_go()
    assert session.sent == ["/b"]


async def test_gate_that_opens_lets_everything_pass() -> None:
    session = Session()
    session.gate.step()
    session.ask("/a")
    session.ask("/b")
    session.gate.open()
    assert (session.sent, session.reported[-1]) == (["/a", "/b"], ("", 0))
