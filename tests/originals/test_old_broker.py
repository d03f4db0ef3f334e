"""Our member on a broker that is too old to fetch from: it claims, as 1.1.1 does there, delivers nothing, and warns."""

from __future__ import annotations

import logging

from kernel.waiting import until
from tests.support.consumers.zookeeper import member, settled, shared
from tests.support.java.originals import real_broker
from tests.support.zookeeper.sessions import opened


async def test_member_claims_on_a_broker_of_0_8_and_warns_that_it_cannot_fetch(chroot, tmp_path, caplog):
    with caplog.at_level(logging.WARNING), real_broker("0.8.2.2", tmp_path, zookeeper=chroot) as broker:

        def warned() -> bool:
            return any("older than Kafka 0.11" in record.getMessage() for record in caplog.records)

        broker.create_topic("t", 2)
        async with opened(chroot) as session, member(chroot, "c1", {"t": 1}):
            await settled(session, shared("t", ("g_c1-0", range(2))))
            await until(warned, 60, "the warning")
    warnings = [record for record in caplog.records if "older than Kafka 0.11" in record.getMessage()]
    assert len(warnings) == 1
