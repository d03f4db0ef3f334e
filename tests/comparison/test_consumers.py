"""Every design's consumer is built from the same request."""

from __future__ import annotations

import pytest

from comparison.consumers import CONSUMERS, ConsumerRequest
from kernel.zookeeper.stepping import StepGate
from tests.support.trace.tracers import ListTracer

NOWHERE = "127.0.0.1:1"


@pytest.mark.parametrize("design", CONSUMERS)
async def test_gate_in_front_of_zookeeper_is_no_obstacle_in_any_design(design: str) -> None:
    gate = StepGate(lambda *_: None)
    request = ConsumerRequest(
        process="m1", group="g", client_id="m1", instance="m1-0", zookeeper=NOWHERE, bootstrap=NOWHERE, gate=gate
    )
    assert CONSUMERS[design].consumer(request, ListTracer()) is not None
