"""The profiles of all designs."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from comparison.designs import classic, consumer, server, zookeeper
from kernel.designs import CLASSIC, CONSUMER, DESIGNS, SERVER, ZOOKEEPER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparison.designs.profile import Profile

PROFILES: Mapping[str, Profile] = MappingProxyType(
    {
        ZOOKEEPER: zookeeper.PROFILE,
        SERVER: server.PROFILE,
        **{name: classic.profile(DESIGNS[name]) for name in CLASSIC},
        CONSUMER: consumer.PROFILE,
    }
)
