"""Heartbeat responses of our own encoder compared with kio's, byte for byte."""

from __future__ import annotations

import pytest

from kernel.wire import codec
from kernel.wire.errors import ErrorCode
from kernel.wire.heartbeats import TAILS
from kernel.wire.versions import SERVED, Api


@pytest.mark.parametrize("version", range(SERVED[Api.Heartbeat][0], SERVED[Api.Heartbeat][1] + 1))
def test_every_answer_is_the_one_that_kio_writes(version: int) -> None:
    assert set(TAILS[version]) == {code.value for code in ErrorCode}
    for code in ErrorCode:
        written = codec.encode_response(Api.Heartbeat, version, 9, {"error_code": code})
        assert codec.response_with(9, TAILS[version][code.value]) == written
