"""The random part of a new member id."""

from __future__ import annotations

import os
from base64 import urlsafe_b64encode

#: What makes 128 random bits a UUID of version 4 (RFC 9562).
_FIXED_BITS = 4 << 76 | 0b10 << 62
_RANDOM_BITS = ~(0xF << 76 | 0b11 << 62)


def fresh_id() -> str:
    """A UUID of version 4, cheaper than the `uuid` module makes it."""
    digits = f"{_random():032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def fresh_base64_id() -> str:
    """The same in the form of Kafka's Uuid: the ids that the coordinator makes in groups of the `consumer` design.

    Kafka avoids a dash in front, which command lines would read as an option.
    """
    while (text := urlsafe_b64encode(_random().to_bytes(16)).decode().rstrip("=")).startswith("-"):
        pass
    return text


def _random() -> int:
    return int.from_bytes(os.urandom(16)) & _RANDOM_BITS | _FIXED_BITS
