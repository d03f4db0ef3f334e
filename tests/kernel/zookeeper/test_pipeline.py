"""What a pipeline holds back in a new session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kernel.waiting import until
from kernel.zookeeper import requests
from kernel.zookeeper.errors import SessionClosed, SessionExpired
from kernel.zookeeper.operations import Attempt, Operation
from kernel.zookeeper.pipeline import Pipeline


class Sent:
    def __init__(self) -> None:
        self.paths: list[str] = []
        self.pipeline = Pipeline(lambda _, attempt, __: self.paths.append(attempt.operation.path), lambda *_: None)

    def append(self, path: str, *, repeated: bool = False, only_in: int = 0) -> Attempt:
        operation = Operation(op="getData", path=path, request=requests.get(path, watch=False), only_in=only_in)
        attempt = Attempt(operation, asyncio.get_running_loop().create_future())
        self.pipeline.append(attempt, repeated=repeated)
        self.pipeline.flow()
        return attempt


def on_a_loop(script: Callable[[Sent], None]) -> None:
    async def run() -> None:
        script(Sent())

    asyncio.run(run())


def test_new_operations_go_before_what_is_held():
    def script(sent: Sent) -> None:
        sent.pipeline.hold()
        sent.append("/again", repeated=True)
        assert sent.paths == []
        sent.append("/new")
        sent.append("/newer")
        sent.pipeline.let_go()
        sent.append("/later", repeated=True)
        assert sent.paths == ["/new", "/newer", "/again", "/later"]

    on_a_loop(script)


def test_what_waited_before_is_held_too():
    def script(sent: Sent) -> None:
        sent.pipeline.flow = lambda: None  # type: ignore[method-assign]  # not connected
        sent.append("/waiting")
        del sent.pipeline.flow
        sent.pipeline.hold()
        sent.pipeline.flow()
        assert sent.paths == []
        sent.append("/new")
        sent.pipeline.let_go()
        sent.pipeline.flow()
        assert sent.paths == ["/new", "/waiting"]

    on_a_loop(script)


def test_held_operations_fail_with_all_others_and_with_their_session():
    def script(sent: Sent) -> None:
        sent.pipeline.hold()
        bound, held = sent.append("/bound", repeated=True, only_in=7), sent.append("/held", repeated=True)
        sent.pipeline.fail_bound(7, SessionExpired, "over")
        with pytest.raises(SessionExpired):
            bound.future.result()
        assert not held.future.done()
        sent.pipeline.fail_all(SessionClosed, "closed")
        with pytest.raises(SessionClosed):
            held.future.result()
        assert sent.paths == []
        assert (bound.latency_ns, held.latency_ns) == (None, None)

    on_a_loop(script)


async def test_latency_begins_when_an_attempt_is_sent():
    sent, loop = Sent(), asyncio.get_running_loop()
    sent.pipeline.hold()
    attempt = sent.append("/again", repeated=True)
    assert attempt.latency_ns is None
    before_s = loop.time()
    sent.pipeline.let_go()
    sent.pipeline.flow()
    after_s = loop.time()
    await until(lambda: loop.time() - after_s > 0.01, 60, "the clock to go on")
    assert 0.01 <= attempt.latency_ns / 1e9 <= loop.time() - before_s
