"""The settings of a `server` member: those it shares with classic members, and its own.

No release of Kafka has this design, so no list of names is binding. Brokers, fetching and commits have the names and
defaults of kafka-clients 4.1 (`coordinator.client.setting_table`), ZooKeeper those of the 0.8.2 consumer. One is
ours: `command.wait.ms`, how long an AwaitCommand may wait at the coordinator.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from coordinator.client.configuration import PollingConfig, names_of
from coordinator.client.kafka_settings import KAFKA_CONSUMER_SETTINGS
from coordinator.client.setting_table import CONSUMER_SETTINGS
from coordinator.protocol.server.commands import ANY_STRATEGY
from coordinator.protocol.server.messages import WAIT_MS_MAX, id_problem
from kernel.assignors.registry import JAVA_CLASSES
from kernel.settings import Setting, number, required, text

if TYPE_CHECKING:
    from collections.abc import Mapping

_BY_HAND = "consume --design server --group g --topic orders"
_NAME = "a text that can name a znode"
_UNTIL = "1.1"


def _znode_name(value: object) -> str | None:
    if value is None:
        return None
    if not value:
        return "must not be empty"
    problem = id_problem(str(value))
    return f"it names a znode, and {problem}" if problem else None


def _group_id(value: object) -> str | None:
    """Return the problem as a broker reports it."""
    problem = _znode_name(value)
    return f"INVALID_GROUP_ID: {problem}" if problem else None


def _strategy(text: str) -> str:
    return JAVA_CLASSES.get(text.strip(), text.strip())


_OWN = (
    text(
        "group.id",
        "",
        "the name of the group, and of a znode",
        valid=_group_id,
        form=_NAME,
        kafka={"0.8": "no default"},
        until=_UNTIL,
        advice="Two applications that both need every record need two groups.",
        shown_by=_BY_HAND,
    ),
    text(
        "zookeeper.connect",
        "",
        "the ZooKeeper servers, and the chroot of the brokers",
        valid=required,
        form="host:port,...[/chroot]",
        kafka={"0.8": "no default"},
        until=_UNTIL,
        advice="Use the brokers' chroot: their coordinator sees only members in it.",
        shown_by=f"{_BY_HAND} --zookeeper 127.0.0.1:2181",
    ),
    number(
        "zookeeper.session.timeout.ms",
        6_000,
        "how long ZooKeeper waits for a silent member",
        low=1,
        kafka={"0.8": 6_000},
        until=_UNTIL,
        advice=(
            "Make it longer than the longest garbage collection pause. A member whose connection breaks stops "
            "delivering after a third of it, and one that is cut off silently at its end."
        ),
        see=("command.wait.ms", "group.server.rebalance.timeout.ms"),
        shown_by="run crash --design server --set zookeeper.session.timeout.ms=6000",
    ),
    number(
        "zookeeper.connection.timeout.ms",
        None,
        "time to connect at startup; default: the session timeout",
        low=1,
        kafka={"0.8": None},
        until=_UNTIL,
        advice="Make it longer if ZooKeeper starts together with its consumers.",
        shown_by=f"{_BY_HAND} --set zookeeper.connection.timeout.ms=2000",
    ),
    text(
        "consumer.id",
        None,
        "fixed second half of the member id; generated for each session when unset",
        valid=_znode_name,
        form=_NAME,
        kafka={"0.8": None},
        until=_UNTIL,
        advice="Leave it unset: a second process with the id waits for the first one's session to end.",
        shown_by=f"{_BY_HAND} --set consumer.id=first",
    ),
    Setting(
        name="partition.assignment.strategy",
        parse=_strategy,
        default=ANY_STRATEGY,
        doc="the strategy that the coordinator must use; unset: whichever it uses",
        form="range, roundrobin, sticky or a plug-in",
        kafka={"0.8.2": "range"},
        until=_UNTIL,
        differs="the coordinator assigns, so a member need not name a strategy",
        advice="In a run it is the brokers' group.server.assignment.strategy.",
        see=("group.server.assignment.strategy",),
        shown_by="run join --design server --set partition.assignment.strategy=roundrobin",
    ),
    number(
        "command.wait.ms",
        3_000,
        "how long a request for a command may wait at the coordinator",
        low=1,
        high=WAIT_MS_MAX,
        advice="Longer costs nothing while the coordinator lives: a command is sent at once. Shorter notices a lost "
        "coordinator sooner, and costs requests.",
        see=("zookeeper.session.timeout.ms",),
        shown_by="run coordinator-failover --design server --set command.wait.ms=500",
    ),
)

SERVER_CONSUMER_SETTINGS: Mapping[str, Setting] = MappingProxyType(
    {setting.name: setting for setting in (*(CONSUMER_SETTINGS[name] for name in names_of(PollingConfig)), *_OWN)}
)

#: Settings of Kafka's consumers, and of the other designs here, that have no effect in this one.
KNOWN_ELSEWHERE = frozenset(KAFKA_CONSUMER_SETTINGS | CONSUMER_SETTINGS.keys()) - SERVER_CONSUMER_SETTINGS.keys()
