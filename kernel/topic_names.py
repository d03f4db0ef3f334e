"""What a topic may be called, and the topics that Kafka keeps for itself (org.apache.kafka.common.internals.Topic)."""

from __future__ import annotations

#: What groups commit, and who is in them; consumers do not get it by a pattern.
OFFSETS_TOPIC = "__consumer_offsets"
#: Topics that Metadata marks as internal.
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, "__transaction_state"})
LENGTH_MAX = 249


def topic_name_problem(name: str) -> str | None:
    """Why Kafka refuses `name` (Topic.validate), or None."""
    if not name:
        return "the name is empty"
    if name in {".", ".."}:
        return f"{name!r} is not allowed as a name"
    if len(name) > LENGTH_MAX:
        return f"the name has {len(name)} characters, at most {LENGTH_MAX} are allowed"
    if not all(c.isascii() and (c.isalnum() or c in "._-") for c in name):
        return f"{name!r} may hold only ASCII letters, digits, '.', '_' and '-'"
    return None
