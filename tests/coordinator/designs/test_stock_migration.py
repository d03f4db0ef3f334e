"""Stock members of both protocols in one of our groups, which migrates and returns (KIP-848)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from coordinator.service.mount import mount
from tests.coordinator.designs.migration_story import PARTITIONS, SETTINGS, TOPIC, migrate
from tests.support.brokers.live import broker_thread


# Not cooperative-sticky, for which its leader writes user data into assignments: a 4.1.1 refuses the upgrade.
@pytest.mark.parametrize("strategy", ["range", pytest.param("roundrobin", marks=pytest.mark.long)])
def test_librdkafka_members_migrate_one_by_one_and_back(chroot: str, tmp_path: Path, strategy: str) -> None:
    with broker_thread(chroot, tmp_path, settings=SETTINGS, mount=(mount,), topics={TOPIC: PARTITIONS}) as bootstrap:
        asyncio.run(migrate(bootstrap, strategy))
