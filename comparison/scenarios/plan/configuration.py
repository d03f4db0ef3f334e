"""The settings of each part of a run: the preset, then the user's `-c` settings over it.

A setting goes to every part that has it (`zookeeper.session.timeout.ms` to the old consumer and to the brokers). A
setting that only another design has is no mistake, since `compare` runs several. A name that neither a part nor
Kafka has is a `ConfigurationError`.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from comparison.consumers import CONSUMERS
from comparison.scenarios.plan.presets import equal_sessions, preset_named
from kernel.broker.settings.kafka_settings import KAFKA_BROKER_SETTINGS
from kernel.broker.settings.setting_table import BROKER_SETTINGS
from kernel.designs import DESIGNS, EAGER, SERVER
from kernel.errors import ConfigurationError
from kernel.settings import resolve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparison.scenarios.plan.parameters import Parameters
    from kernel.settings import Setting

#: What to do instead of setting what the run sets itself, where there is something.
_INSTEAD = {
    "group.instance.id": "Choose static, or set named_members = true in a scenario's file; a second process with the "
    "same one is the step duplicate-instance"
}
#: Set by the run itself: with a user's values its parts would not find each other.
_OWN = frozenset(
    {
        "group.id",
        "group.instance.id",
        "bootstrap.servers",
        "zookeeper.connect",
        "broker.id",
        "port",
        "listeners",
        "log.dirs",
    }
)


#: What members of another design than the run's may set.
OF_A_STEP = frozenset({"offsets.storage"})
STRATEGY = "partition.assignment.strategy"
_RESET = "auto.offset.reset"
_AGE = "metadata.max.age.ms"
#: Where to begin without an offset, in the words of one era and of the other.
_OTHER_ERA: Mapping[str, str] = MappingProxyType(
    {"earliest": "smallest", "smallest": "earliest", "latest": "largest", "largest": "latest"}
)
_REPLICAS = ("default.replication.factor", "offsets.topic.replication.factor")


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The settings of the parts of one run, and what the runner derives from them."""

    member: Mapping[str, str]
    broker: Mapping[str, str]
    session_ms: int  #: how long a silent member stays in the group
    delay_ms: int  #: how long the group then waits before it reassigns; 0 in all designs but delayed
    heartbeat_ms: int  #: a member's heartbeat interval; 0 where no change depends on it
    max_poll_ms: int  #: max.poll.interval.ms; also set for designs that do not have it
    commit_interval_ms: int
    broker_session_ms: int
    metadata_age_ms: int  #: how long a group may not notice new partitions; 0 where a watch tells


def configuration(design: str, parameters: Parameters) -> Configuration:
    """Settings for a run of one design. Raises `ConfigurationError`."""
    preset = preset_named(parameters.preset)
    check(parameters.settings)
    consumers = CONSUMERS[design]
    given = {
        name: in_its_words(consumers.settings, name, value)
        for name, value in parameters.settings.items()
        if name not in consumers.made_by
    }
    of_members, of_brokers = (
        equal_sessions(preset, design, parameters.session_timeout_ms) if parameters.session_timeout_ms else ({}, {})
    )
    member = {**preset.members[design], **of_members, **_known(consumers.settings, given)}
    replicas = {name: str(min(int(preset.brokers[name]), parameters.brokers)) for name in _REPLICAS}
    broker = {**preset.brokers, **replicas, **of_brokers, **_known(BROKER_SETTINGS, parameters.settings)}
    if design == SERVER and (strategy := parameters.settings.get(STRATEGY)):
        broker["group.server.assignment.strategy"] = strategy  # a broker setting, not a member's
    timers = {**broker, **member}
    return Configuration(
        member=member,
        broker=broker,
        session_ms=int(timers[consumers.session_setting]),
        delay_ms=int(member["scheduled.rebalance.max.delay.ms"]) if DESIGNS[design].delays_reassignment else 0,
        heartbeat_ms=int(timers.get(consumers.heartbeat_setting, 0)),
        max_poll_ms=int({**preset.members[EAGER], **parameters.settings}["max.poll.interval.ms"]),
        commit_interval_ms=int(member["auto.commit.interval.ms"]),
        broker_session_ms=int(broker["zookeeper.session.timeout.ms"]),
        metadata_age_ms=int(str(member.get(_AGE, consumers.settings[_AGE].default))) if DESIGNS[design].classic else 0,
    )


def for_part(table: Mapping[str, Setting], given: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The settings of a part that is started by hand (a broker, a consumer), and warnings of those that none has here.

    Raises `ConfigurationError` for a setting of another part, an unknown name or an invalid value.
    """
    for name in given:
        if name not in table and (others := _parts_with(name)):
            raise ConfigurationError(f"{name} is a setting of {' and '.join(others)}. Leave it out")
    elsewhere = {name: value for name, value in given.items() if name not in table}
    warnings = [text for text in _unimplemented(elsewhere) if text]
    own = {name: value for name, value in given.items() if name in table}
    resolve(table, own)
    return own, warnings


def _parts_with(name: str) -> list[str]:
    """Who has a setting: brokers, members of some designs."""
    designs = [design for design, each in CONSUMERS.items() if name in each.settings]
    return [
        *(["brokers"] if name in BROKER_SETTINGS else []),
        *([f"members of {', '.join(designs)}"] if designs else []),
    ]


def in_its_words(table: Mapping[str, Setting], name: str, value: str) -> str:
    """The value as members with these settings take it: of `auto.offset.reset`, in the words of their era."""
    if name != _RESET or name not in table or complaint_about(table, name, value) is None:
        return value
    return _OTHER_ERA.get(value, value)


def _tables() -> list[tuple[Mapping[str, Setting], frozenset[str]]]:
    return [
        (BROKER_SETTINGS, KAFKA_BROKER_SETTINGS),
        *((each.settings, each.known_elsewhere) for each in CONSUMERS.values()),
    ]


def _unimplemented(given: Mapping[str, str]) -> list[str]:
    """Warnings for Kafka settings that no part implements. Raises `ConfigurationError` for unknown names."""
    tables = _tables()
    everything = frozenset[str]().union(*(table.keys() | elsewhere for table, elsewhere in tables))
    strangers = {name: value for name, value in given.items() if not any(name in table for table, _ in tables)}
    return resolve({}, strangers, known_elsewhere=everything)[1]


def check(given: Mapping[str, str]) -> list[str]:
    """Check every given name and value; warnings. Raises `ConfigurationError`."""
    warnings = _unimplemented({name: value for name, value in given.items() if name not in _OWN})
    for name, value in given.items():
        if name in _OWN:
            hint = _INSTEAD.get(name, "Leave it out")
            raise ConfigurationError(f"{name} is set by the run itself. {hint}")
        if (name, value) == ("offsets.storage", "kafka"):
            raise ConfigurationError(
                "a run judges the zookeeper design by its offsets in ZooKeeper. Leave offsets.storage out "
                "(rebalance-lab consume takes it)"
            )
        if (name, value) == (_RESET, "none"):
            raise ConfigurationError(
                f"{_RESET}={value}: the group of a run begins without offsets, so that all of its members would fail. "
                "Use earliest or latest (rebalance-lab consume takes none)"
            )
        knowing = [table for table, _ in _tables() if name in table]
        complaints = [error for table in knowing if (error := complaint_about(table, name, value))]
        if knowing and len(complaints) == len(knowing):
            # It is enough that one part accepts it: auto.offset.reset is smallest in one era, earliest in another.
            raise complaints[0]
    return warnings


def _known(table: Mapping[str, Setting], given: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in given.items() if name in table and not complaint_about(table, name, value)}


def complaint_about(table: Mapping[str, Setting], name: str, value: str) -> ConfigurationError | None:
    """The error for an invalid value of a setting in `table`; None for a valid one."""
    try:
        resolve({name: table[name]}, {name: value})
    except ConfigurationError as error:
        return error
    return None
