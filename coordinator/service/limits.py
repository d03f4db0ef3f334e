"""The machine's limits and the settings of consumer groups, from the broker's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.groups.consumer.requests import ConsumerSettings
from coordinator.groups.limits import Limits
from kernel.broker.settings.ticket_settings import TICKET_SETTINGS

if TYPE_CHECKING:
    from kernel.broker.settings.configuration import BrokerConfig

#: The least that members may send however small message.max.bytes is, unless a setting says otherwise.
METADATA_BYTES_MIN = 65_536

#: What mends faults that 4.1.1 has.
_MENDED_LATER = tuple(each.name for each in TICKET_SETTINGS if each.name.startswith("fix."))


def limits_of(config: BrokerConfig, *, traced: bool) -> Limits:
    return Limits(
        initial_rebalance_delay_ms=config.number("group.initial.rebalance.delay.ms"),
        session_timeout_ms_min=config.number("group.min.session.timeout.ms"),
        session_timeout_ms_max=config.number("group.max.session.timeout.ms"),
        members_max=config.number("group.max.size"),
        sessions_begin_late=config.flag("fault.kafka.9752"),
        member_bytes_max=config.number("group.member.metadata.max.bytes") or _part_of_a_record(config, 1 / 2),
        group_bytes_max=config.number("group.metadata.max.bytes") or _part_of_a_record(config, 3 / 4),
        offset_metadata_bytes_max=config.number("offset.metadata.max.bytes"),
        retention_ms=config.number("offsets.retention.minutes") * 60_000,
        retention_check_ms=config.number("offsets.retention.check.interval.ms"),
        transaction_timeout_ms_max=config.number("transaction.max.timeout.ms"),
        traced=traced,
    )


def consumer_settings_of(config: BrokerConfig) -> ConsumerSettings:
    return ConsumerSettings(
        session_timeout_ms=config.number("group.consumer.session.timeout.ms"),
        heartbeat_interval_ms=config.number("group.consumer.heartbeat.interval.ms"),
        members_max=config.number("group.consumer.max.size"),
        assignors=config.words("group.consumer.assignors"),
        migration_policy=config.text("group.consumer.migration.policy"),
        regex_refresh_ms=config.number("group.consumer.regex.refresh.interval.ms"),
        mended=frozenset(int(name.rpartition(".")[2]) for name in _MENDED_LATER if config.flag(name)),
    )


def _part_of_a_record(config: BrokerConfig, part: float) -> int:
    """A group is stored as one record: its members' subscriptions must leave room for their assignments."""
    return max(int(config.number("message.max.bytes") * part), METADATA_BYTES_MIN)
