"""Which ways groups may be converted: group.consumer.migration.policy."""

from __future__ import annotations

from enum import Enum


class MigrationPolicy(Enum):
    """The value is the setting's, in lower case."""

    DISABLED = "disabled"
    UPGRADE = "upgrade"  #: classic to consumer
    DOWNGRADE = "downgrade"  #: consumer to classic
    BIDIRECTIONAL = "bidirectional"

    @property
    def allows_upgrade(self) -> bool:
        return self in (MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL)

    @property
    def allows_downgrade(self) -> bool:
        return self in (MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL)
