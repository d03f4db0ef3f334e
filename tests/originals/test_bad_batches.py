"""The table of bad batches sent to a real 4.1.1: its answers equal those in the table."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kernel.client.client import ClusterClient
from kernel.waiting import until
from kernel.wire.errors import ErrorCode
from tests.kernel.broker.apis.test_data_plane import TP, produce
from tests.support.java.originals import real_broker
from tests.support.wire.bad_batches import bad_batches, odd_batches

pytestmark = pytest.mark.originals


def test_real_broker_answers_bad_batches_like_the_table(tmp_path: Path) -> None:
    with real_broker("4.1.1", tmp_path) as broker:
        broker.create_topic(TP.topic, 1)

        async def ask() -> dict[str, int]:
            client = ClusterClient([("127.0.0.1", broker.port)], "bad")
            try:

                async def is_led() -> bool:
                    await client.refresh([TP.topic])
                    return client.leader_of(TP) is not None

                await until(is_led, 30, "a leader")
                connection = await client.connection(client.leader_of(TP) or 0)
                asked = {name: bad.batch for name, bad in bad_batches().items()} | dict(odd_batches())
                answers = {}
                for name, data in asked.items():
                    error, _ = await produce(connection, data)
                    answers[name] = ErrorCode[error.lower()].value if error else 0
                return answers
            finally:
                await client.close()

        expected = {name: bad.code for name, bad in bad_batches().items()} | dict.fromkeys(odd_batches(), 0)
        assert asyncio.run(ask()) == expected
