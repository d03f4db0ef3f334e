"""The data of a member's ephemeral znode /consumers/<group>/ids/<member>: Kafka's registration, and a mark.

    {"version":1,"subscription":{"t":1},"pattern":"static","timestamp":"1416000000000","design":"server"}

The layout is that of the 0.8 consumer (ZkUtils, ZookeeperConsumerConnector), whose readers ignore unknown keys; each
topic has one stream. `design` marks the ids that belong to the coordinator's members: a znode without it belongs to a
consumer of the ZooKeeper design, and is ignored.
"""

from __future__ import annotations

import json

from kernel.topic_names import LENGTH_MAX

DESIGN = "server"
#: Topics of one subscription.
TOPICS_MAX = 10_000


def registration_payload(topics: tuple[str, ...], timestamp_ms: int) -> bytes:
    """Encode the znode's data for a member that subscribes to `topics`."""
    content = {
        "version": 1,
        "subscription": dict.fromkeys(topics, 1),
        "pattern": "static",
        "timestamp": str(timestamp_ms),
        "design": DESIGN,
    }
    return json.dumps(content, separators=(",", ":")).encode()


def subscribed_topics(data: bytes) -> tuple[str, ...] | None:
    """Return a registration's topics, sorted; None if it is malformed or not of this design."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or content.get("design") != DESIGN:
        return None
    subscription = content.get("subscription")
    if not isinstance(subscription, dict) or len(subscription) > TOPICS_MAX:
        return None
    topics = tuple(sorted(subscription))
    return topics if all(0 < len(topic) <= LENGTH_MAX and _is_text(topic) for topic in topics) else None


def _is_text(topic: str) -> bool:
    """Whether UTF-8 can encode it: JSON can contain lone surrogates."""
    return not any("\ud800" <= char <= "\udfff" for char in topic)
