"""The requests about settings of topics, brokers and groups: describing, listing and altering them.

Source: ConfigHelper, ControllerConfigurationValidator and ConfigurationControlManager of Kafka 4.1.1 (answers), and
ZkAdminManager of 3.9.1 (where they are kept). The broker settings that can be altered are the defaults of a topic's
applied settings. A broker answers for itself and for all brokers, as in Kafka.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

from kernel.broker.apis.refusals import Refused, code_of
from kernel.broker.cluster.config_store import ALL_BROKERS, broker_problem
from kernel.broker.server.handlers import in_rows
from kernel.broker.settings.effective_configs import (
    DYNAMIC_BROKER_SETTINGS,
    BrokerLayers,
    Source,
    Synonym,
    broker_synonyms,
    described,
    held,
    source_of,
    synonyms,
    type_of,
)
from kernel.broker.settings.group_configs import GROUP_CONFIGS, bounds_of, defaults_of, problem_of_group, timeouts_of
from kernel.broker.settings.setting_table import BROKER_SETTINGS
from kernel.broker.settings.topic_configs import NOTES, TOPIC_SETTINGS, ConfigType, problem_of_all
from kernel.topic_names import topic_name_problem
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from kernel.zookeeper.errors import ZooKeeperError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from kernel.broker.cluster.config_store import ConfigStore
    from kernel.broker.cluster.leadership import Cluster
    from kernel.broker.server.handlers import HandlerTable, RequestContext, Response
    from kernel.broker.settings.configuration import BrokerConfig
    from kernel.broker.settings.group_configs import Timeouts

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32  #: ConfigResource.Type
SET, DELETE, APPEND, SUBTRACT = range(4)  #: AlterConfigOp.OpType

#: The most settings in one DescribeConfigs response, approximately: those of 1,500 topics.
ROWS_MAX = 50_000
_RESOURCES_PER_TURN = 100  #: altered in one turn of the event loop

Configs = dict[str, str]


class ConfigHandlers:
    """A request may name several resources; each gets its own result."""

    def __init__(self, cluster: Cluster, store: ConfigStore, config: BrokerConfig) -> None:
        self._cluster = cluster
        self._store = store
        self._group_defaults, self._group_bounds = defaults_of(config), bounds_of(config)

    def table(self) -> HandlerTable:
        return {
            Api.DescribeConfigs: self.describe,
            Api.ListConfigResources: self.list_resources,
            Api.IncrementalAlterConfigs: self.alter,
            Api.AlterConfigs: self.replace,
        }

    # -- DescribeConfigs ---------------------------------------------------------------------------------------------

    async def describe(self, _context: RequestContext, body: Any) -> Mapping[str, Any]:
        results: list[dict[str, Any]] = []
        rows = 0
        for number, resource in enumerate(body.resources):
            if number % _RESOURCES_PER_TURN == 0:
                await asyncio.sleep(0)
            results.append(await self._described(body, resource, is_too_much=rows >= ROWS_MAX))
            rows += len(results[-1]["configs"])
        return {"results": results}

    async def _described(self, body: Any, resource: Any, *, is_too_much: bool) -> dict[str, Any]:
        answer = {"resource_type": resource.resource_type, "resource_name": resource.resource_name, "configs": ()}
        if is_too_much:
            message = f"one request describes {ROWS_MAX} settings at most: ask for fewer resources at once"
            return {**answer, "error_code": ErrorCode.invalid_request, "error_message": message}
        try:
            rows = await self._rows(resource.resource_type, resource.resource_name)
        except (Refused, ZooKeeperError) as error:
            return {**answer, "error_code": code_of(error), "error_message": str(error)}
        wanted = resource.configuration_keys
        if wanted:
            rows = [row for row in rows if row["name"] in wanted]
        for row in rows:
            if not body.include_synonyms:
                row["synonyms"] = ()
            if not getattr(body, "include_documentation", False):
                row["documentation"] = None
        return {**answer, "error_code": ErrorCode.none, "configs": rows}

    async def _rows(self, kind: int, name: str) -> list[dict[str, Any]]:
        if kind == TOPIC:
            self._check_topic(name)
            return topic_rows(await self._store.topic(name), self._store.layers)
        if kind == BROKER:
            if name == "":
                return _all_brokers_rows(await self._store.broker(ALL_BROKERS))
            self._check_broker(name)
            return self._broker_rows()
        if kind == GROUP:
            _check_group(name)
            return _group_rows(await self._store.groups.group(name), self._group_defaults)
        raise Refused(ErrorCode.invalid_request, f"resources of type {kind} have no settings here")

    def _broker_rows(self) -> list[dict[str, Any]]:
        layers = self._store.layers
        static = {**layers.static, "broker.id": str(self._cluster.node_id)}
        layers = BrokerLayers(own=layers.own, of_all=layers.of_all, static=static)
        rows = []
        for name, setting in BROKER_SETTINGS.items():
            default = _text(setting.default)
            topic_setting = DYNAMIC_BROKER_SETTINGS.get(name)
            found = broker_synonyms(name, layers, default)
            value = found[0].value if found else default
            if topic_setting is not None:
                value, found = held(topic_setting, found), described(found)
            rows.append(
                _row(
                    name,
                    value,
                    source_of(found),
                    found,
                    type_=type_of(setting.default) if topic_setting is None else topic_setting.type,
                    doc=setting.doc,
                    read_only=topic_setting is None,
                )
            )
        return rows

    # -- ListConfigResources -----------------------------------------------------------------------------------------

    def list_resources(self, _context: RequestContext, body: Any) -> Response:
        """Which resources may have settings (KIP-1142). Version 0 asks for client metrics, which nobody has here."""
        names: Mapping[int, Iterable[object]] = {
            GROUP: self._store.groups.names(),
            CLIENT_METRICS: (),
            BROKER_LOGGER: self._cluster.snapshot.brokers,
            BROKER: self._cluster.snapshot.brokers,
            TOPIC: self._cluster.snapshot.topics,
        }
        wanted = getattr(body, "resource_types", (CLIENT_METRICS,)) or tuple(names)
        if not set(wanted) <= names.keys():
            return {"error_code": ErrorCode.unsupported_version, "config_resources": ()}
        rows = (
            {"resource_name": str(name), "resource_type": kind}
            for kind in names
            if kind in wanted
            for name in names[kind]
        )
        return in_rows({"error_code": ErrorCode.none}, "config_resources", rows)

    # -- altering ----------------------------------------------------------------------------------------------------

    async def alter(self, _context: RequestContext, body: Any) -> Mapping[str, Any]:
        """IncrementalAlterConfigs (KIP-339)."""

        def decision(resource: Any) -> Callable[[Configs], Configs]:
            names = [config.name for config in resource.configs]
            if twice := [name for name, times in Counter(names).items() if times > 1]:
                raise Refused(ErrorCode.invalid_request, f"named more than once: {', '.join(twice)}")
            for config in resource.configs:
                if config.value is None and config.config_operation != DELETE:
                    raise Refused(ErrorCode.invalid_request, f"the value of {config.name} is null")
            return lambda before: altered(before, resource.configs, resource.resource_type)

        return {"responses": await self._alter_all(body, decision)}

    async def replace(self, _context: RequestContext, body: Any) -> Mapping[str, Any]:
        """AlterConfigs: removes settings that are not named."""

        def decision(resource: Any) -> Callable[[Configs], Configs]:
            for config in resource.configs:
                if config.value is None:
                    raise Refused(ErrorCode.invalid_request, f"the value of {config.name} is null")
            return lambda _: {config.name: config.value for config in resource.configs}

        return {"responses": await self._alter_all(body, decision)}

    async def _alter_all(self, body: Any, decision: Callable[[Any], Callable[[Configs], Configs]]) -> list[Any]:
        times = Counter((resource.resource_type, resource.resource_name) for resource in body.resources)
        answers = []
        for resource in body.resources:
            answer = {"resource_type": resource.resource_type, "resource_name": resource.resource_name}
            try:
                if times[resource.resource_type, resource.resource_name] > 1:
                    raise Refused(ErrorCode.invalid_request, "the request names this resource twice")  # noqa: TRY301
                await self._alter(resource, decision(resource), validate_only=body.validate_only)
            except (Refused, ZooKeeperError) as error:
                answers.append({**answer, "error_code": code_of(error), "error_message": str(error)})
            else:
                answers.append({**answer, "error_code": ErrorCode.none, "error_message": None})
        return answers

    async def _alter(self, resource: Any, decide: Callable[[Configs], Configs], *, validate_only: bool) -> None:
        kind, name = resource.resource_type, resource.resource_name
        if kind == TOPIC:
            self._check_topic(name)
            check, before, alter = _checked_topic, self._store.topic, self._store.alter_topic
        elif kind == BROKER:
            if name != "":
                self._check_broker(name)
            name = name or ALL_BROKERS
            check, before, alter = _checked_broker, self._store.broker, self._store.alter_broker
        elif kind == GROUP:
            _check_group(name)
            check, before, alter = self._checked_group, self._store.groups.group, self._store.groups.alter
        else:
            raise Refused(ErrorCode.invalid_request, f"settings of resources of type {kind} are not kept here")
        if validate_only:
            check(decide(await before(name)))
        else:
            await alter(name, lambda found: check(decide(found)))

    def _checked_group(self, after: Configs) -> Configs:
        if wrong := problem_of_group(after, self._group_defaults, self._group_bounds):
            raise Refused(ErrorCode.invalid_config, wrong)
        return after

    def _check_topic(self, name: str) -> None:
        if (wrong := topic_name_problem(name)) is not None:
            raise Refused(ErrorCode.invalid_topic_exception, wrong)
        if name not in self._cluster.snapshot.topics:
            raise Refused(ErrorCode.unknown_topic_or_partition, f"there is no topic {name!r}")

    def _check_broker(self, name: str) -> None:
        if name != str(self._cluster.node_id):
            raise Refused(
                ErrorCode.invalid_request,
                f"this is broker {self._cluster.node_id}, which answers for itself and for '', not for {name!r}",
            )


def _check_group(name: str) -> None:
    if not name:
        raise Refused(ErrorCode.invalid_request, "a group's name must not be empty")


def topic_rows(own: Mapping[str, str], layers: BrokerLayers) -> list[dict[str, Any]]:
    """Every setting of a topic, as in DescribeConfigs and (with fewer fields) CreateTopics responses."""
    rows = []
    for name, setting in TOPIC_SETTINGS.items():
        found = synonyms(setting, own, layers)
        shown = described(found)
        doc = f"{setting.doc} ({NOTES[setting.effect]})" if setting.effect in NOTES else setting.doc
        rows.append(_row(name, held(setting, found), source_of(shown), shown, type_=setting.type, doc=doc))
    return rows


def altered(before: Mapping[str, str], changes: Sequence[Any], kind: int) -> Configs:
    """`before` with IncrementalAlterConfigs' changes. Raises `Refused`."""
    after = dict(before)
    for change in changes:
        name, value = change.name, change.value
        if change.config_operation == SET:
            after[name] = value
        elif change.config_operation == DELETE:
            after.pop(name, None)
        elif change.config_operation in (APPEND, SUBTRACT):
            setting = TOPIC_SETTINGS.get(name) if kind == TOPIC else DYNAMIC_BROKER_SETTINGS.get(name)
            verb = "append" if change.config_operation == APPEND else "subtract"
            if setting is None or setting.type is not ConfigType.LIST:
                message = f"Can't {verb.upper()} to key {name} because its type is not LIST."
                if kind == BROKER:
                    message = f"Config value {verb} is not allowed for config key: {name}"
                raise Refused(ErrorCode.invalid_config, message)
            words = [word for word in after.get(name, setting.default).split(",") if word]
            given = [word for word in value.split(",") if word]
            if change.config_operation == APPEND:
                words += [word for word in given if word not in words]
            else:
                words = [word for word in words if word not in given]
            after[name] = ",".join(words)
        else:
            raise Refused(ErrorCode.unknown_server_error, f"there is no operation {change.config_operation}")
    return after


def _checked_topic(after: Configs) -> Configs:
    if wrong := problem_of_all(after):
        raise Refused(ErrorCode.invalid_config, wrong)
    return after


def _checked_broker(after: Configs) -> Configs:
    for name, value in after.items():
        if wrong := broker_problem(name, value):
            raise Refused(ErrorCode.invalid_request, wrong)
    return after


def _all_brokers_rows(given: Mapping[str, str]) -> list[dict[str, Any]]:
    return [
        _row(
            name,
            value,
            Source.ALL_BROKERS,
            [Synonym(name, value, Source.ALL_BROKERS)],
            type_=DYNAMIC_BROKER_SETTINGS[name].type,
            doc=DYNAMIC_BROKER_SETTINGS[name].doc,
        )
        for name, value in given.items()
    ]


def _group_rows(own: Mapping[str, str], defaults: Timeouts) -> list[dict[str, Any]]:
    """Numbers are shown as they are read, without spaces around them."""
    effective = dict(zip(GROUP_CONFIGS, timeouts_of(own, defaults), strict=True))
    rows = []
    for name, setting in GROUP_CONFIGS.items():
        found = Synonym(name, str(effective[name]), Source.GROUP if name in own else Source.DEFAULT)
        rows.append(_row(name, found.value, found.source, [found], type_=setting.type, doc=setting.doc))
    return rows


def _row(
    name: str,
    value: str,
    source: Source,
    found: Sequence[Synonym],
    *,
    type_: ConfigType,
    doc: str,
    read_only: bool = False,
) -> dict[str, Any]:
    return {
        "name": name,
        "value": value,
        "read_only": read_only,
        "config_source": source,
        "is_sensitive": False,
        "synonyms": [synonym._asdict() for synonym in found],
        "config_type": type_,
        "documentation": doc,
    }


def _text(default: object) -> str:
    if isinstance(default, tuple):
        return ",".join(default)
    return str(default).lower() if isinstance(default, bool) else str(default)
