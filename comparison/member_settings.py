"""The settings that the members of each design take. No consumer is imported, so that they can be listed at once."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from coordinator.client.consumer.setting_table import KIP848_CONSUMER_SETTINGS
from coordinator.client.server.setting_table import SERVER_CONSUMER_SETTINGS
from coordinator.client.setting_table import CONSUMER_SETTINGS
from kernel.designs import CLASSIC, CONSUMER, SERVER, ZOOKEEPER
from zkconsumer.settings import ZK_CONSUMER_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.settings import Setting

#: {design: its members' settings by name}
MEMBER_SETTINGS: Mapping[str, Mapping[str, Setting]] = MappingProxyType(
    {
        ZOOKEEPER: ZK_CONSUMER_SETTINGS,
        SERVER: SERVER_CONSUMER_SETTINGS,
        **dict.fromkeys(CLASSIC, CONSUMER_SETTINGS),
        CONSUMER: KIP848_CONSUMER_SETTINGS,
    }
)
