"""Which settings the parts of a run have: the members of each design, and the brokers.

The tables themselves are in the packages that read them (`kernel.settings`). This module imports no consumer, so that a
command can list the settings at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from comparison.member_settings import MEMBER_SETTINGS
from comparison.scenarios.plan.presets import PRESETS
from coordinator.client.kafka_settings import KAFKA_CONSUMER_SETTINGS
from coordinator.client.server.setting_table import SERVER_CONSUMER_SETTINGS
from coordinator.client.setting_table import CONSUMER_SETTINGS
from kernel.broker.settings.kafka_settings import KAFKA_BROKER_SETTINGS
from kernel.broker.settings.setting_table import BROKER_SETTINGS
from kernel.designs import CLASSIC, CONSUMER, COORDINATED, DESIGN_NAMES, DESIGNS, SERVER, STATIC
from kernel.settings import written
from zkconsumer.kafka_settings import KAFKA_OLD_CONSUMER_SETTINGS
from zkconsumer.settings import ZK_CONSUMER_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kernel.settings import Setting

#: The strategy that waits before it reassigns; eager and static members can be given it too.
DELAY = "scheduled.rebalance.max.delay.ms"
#: Settings of groups whose members let the coordinator assign (KIP-848).
_OF_CONSUMER_GROUPS = ("group.consumer.", "group.coordinator.rebalance.protocols")
#: Settings that the parts of every run have, and that only these designs use.
USED_BY: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        DELAY: tuple(name for name, design in DESIGNS.items() if design.delays_reassignment),
        **{name: (SERVER,) for name in BROKER_SETTINGS if name.startswith("group.server.")},
        **{name: (CONSUMER,) for name in BROKER_SETTINGS if name.startswith(_OF_CONSUMER_GROUPS)},
        **{
            name: CLASSIC
            for name in BROKER_SETTINGS
            if name.startswith("group.") and not name.startswith(("group.server.", *_OF_CONSUMER_GROUPS))
        },
        **{name: COORDINATED for name in BROKER_SETTINGS if name.startswith(("offsets.", "offset."))},
    }
)
_INSTANCE = "group.instance.id"

BROKERS = "brokers"
#: The era of a setting that Kafka never had.
OURS = "ours"
_OLD, _SERVER = "zookeeper members", "server members"
_COORDINATED, _CLASSIC = "members of the coordinator designs", "classic members"
_CONSUMER, _BOTH = "consumer members", "classic and consumer members"
#: Kafka's files with the settings of a part.
_FILES: Mapping[str, str] = MappingProxyType(
    {
        _OLD: "ConsumerConfig.scala",
        _SERVER: "ConsumerConfig.scala",
        _CLASSIC: "ConsumerConfig.java",
        _COORDINATED: "ConsumerConfig.java",
        _BOTH: "ConsumerConfig.java",
        _CONSUMER: "ConsumerConfig.java",
        BROKERS: "KafkaConfig.scala",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A setting of one part: of the members of some designs, or of the brokers."""

    part: str
    designs: tuple[str, ...]  #: whose members take it; for brokers, the designs that it matters to
    setting: Setting

    @property
    def in_runs(self) -> Mapping[str, Mapping[str, str]]:
        """{preset: {design, or `brokers`: the value that it sets}}"""
        name, found = self.setting.name, {}
        for preset in PRESETS.values():
            if self.part == BROKERS:
                found[preset.name] = {BROKERS: preset.brokers[name]} if name in preset.brokers else {}
            else:
                members = {design: preset.members[design] for design in self.designs}
                found[preset.name] = {design: given[name] for design, given in members.items() if name in given}
        return {name: values for name, values in found.items() if values}

    @property
    def era(self) -> str:
        """The releases of Kafka that have it; OURS if none has."""
        first = next(iter(self.setting.kafka), "")
        if not first:
            return OURS
        return f"Kafka {first} to {self.setting.until}" if self.setting.until else f"since Kafka {first}"

    @property
    def source(self) -> str:
        """Where Kafka has it, and the proposals and issues that it comes from."""
        return ", ".join(filter(None, (self.setting.source, self._file if self.setting.kafka else "")))

    @property
    def _file(self) -> str:
        name = self.setting.name
        if name == DELAY:
            return "DistributedConfig.java of Connect"
        if self.part in (_OLD, _SERVER) and name.startswith("zookeeper."):
            return "ZkUtils.scala"
        if self.part == BROKERS and name.startswith("log.message."):
            return "LogConfig.java"
        return _FILES[self.part]

    @property
    def history(self) -> list[tuple[str, str]]:
        """(release, Kafka's default from then on), the oldest first."""
        return [(release, written(value)) for release, value in self.setting.kafka.items()]


def rows(designs: Iterable[str] = DESIGN_NAMES) -> list[Row]:
    """The settings of these designs' members, and of brokers where they matter to one of them."""
    wanted, found = set(designs), []
    for part, settings in _parts().items():
        for setting in settings:
            taking = _designs_of(part, setting)
            if wanted.intersection(taking):
                found.append(Row(part=part, designs=taking, setting=setting))
    return found


def named(name: str, of: Iterable[Row]) -> list[Row]:
    """The rows with this name; if there is none, those whose name contains it. All for ''."""
    found = list(of)
    return [row for row in found if row.setting.name == name] or [row for row in found if name in row.setting.name]


def elsewhere() -> frozenset[str]:
    """Settings of Kafka that no part implements."""
    everywhere = KAFKA_OLD_CONSUMER_SETTINGS | KAFKA_CONSUMER_SETTINGS | KAFKA_BROKER_SETTINGS
    return everywhere - {row.setting.name for row in rows()}


def _parts() -> Mapping[str, Iterable[Setting]]:
    """The settings by part; those that several designs' members share are one part."""
    shared = [setting for name, setting in CONSUMER_SETTINGS.items() if SERVER_CONSUMER_SETTINGS.get(name) is setting]
    own = [setting for setting in SERVER_CONSUMER_SETTINGS.values() if setting not in shared]
    classic = [setting for setting in CONSUMER_SETTINGS.values() if setting not in shared]
    newest = [setting for setting in MEMBER_SETTINGS[CONSUMER].values() if setting not in shared]
    return {
        _OLD: ZK_CONSUMER_SETTINGS.values(),
        _CLASSIC: [setting for setting in classic if setting not in newest],
        _BOTH: [setting for setting in classic if setting in newest],
        _CONSUMER: [setting for setting in newest if setting not in classic],
        _COORDINATED: shared,
        _SERVER: own,
        BROKERS: BROKER_SETTINGS.values(),
    }


def _designs_of(part: str, setting: Setting) -> tuple[str, ...]:
    used = USED_BY.get(setting.name, (STATIC, CONSUMER) if setting.name == _INSTANCE else DESIGN_NAMES)
    if part == BROKERS:
        return tuple(design for design in DESIGN_NAMES if design in used)
    return tuple(
        design for design in DESIGN_NAMES if design in used and MEMBER_SETTINGS[design].get(setting.name) is setting
    )
