"""Stock members of both protocols in one of our groups, which migrates and returns (KIP-848)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from coordinator.service.mount import mount
from tests.support.brokers import broker_thread
from tests.support.migration_story import PARTITIONS, SETTINGS, TOPIC, migrate

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("strategy", [pytest.param("range", marks=pytest.mark.long), "cooperative-sticky"])
def test_librdkafka_members_migrate_one_by_one_and_back(chroot: str, tmp_path: Path, strategy: str) -> None:
    with broker_thread(chroot, tmp_path, settings=SETTINGS, mount=(mount,), topics={TOPIC: PARTITIONS}) as bootstrap:
        asyncio.run(migrate(bootstrap, strategy))
