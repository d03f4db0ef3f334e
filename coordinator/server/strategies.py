"""The strategy by which a broker assigns in the server design: a setting of the broker, read once, when it starts.

That is the design's drawback (seed 003, §2.2): a new strategy, or another one, needs the broker to be restarted, where
the members of the third plan bring theirs along.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from coordinator.server.group import Rules
from kernel.assignors.registry import COOPERATIVE, assignor, assignor_name, names
from kernel.errors import ConfigurationError, RebalanceLabError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.assignors.subscription import MemberSubscription
    from kernel.broker.configuration import BrokerConfig
    from kernel.values import TopicPartition

log = logging.getLogger(__name__)

STRATEGY = "group.server.assignment.strategy"


def rules_of(config: BrokerConfig) -> Rules:
    """Raises `ConfigurationError` for a strategy that does not exist, or that cannot work here."""
    name = assignor_name(config.text(STRATEGY))
    if name in COOPERATIVE:
        raise ConfigurationError(
            f"{STRATEGY}={name}: members stop everything before the coordinator assigns, so nothing can be handed over "
            "in two steps; choose sticky"
        )
    strategy = assignor(name)

    def assign(
        sizes: Mapping[str, int], subscriptions: Mapping[str, MemberSubscription]
    ) -> dict[str, list[TopicPartition]]:
        try:
            return strategy(sizes, subscriptions)
        except RebalanceLabError:
            log.exception("strategy %s has no assignment; it is tried again", name)
            raise

    return Rules(name, assign, names(), config.number("group.server.rebalance.timeout.ms"))
