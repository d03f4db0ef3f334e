"""Ids that nobody else has: UUIDs of version 4 (RFC 9562)."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from random import Random

#: What makes 128 random bits a UUID of version 4.
_FIXED_BITS = 4 << 76 | 0b10 << 62
_RANDOM_BITS = ~(0xF << 76 | 0b11 << 62)
#: The first six bits of an id whose text in URL-safe base64 begins with '-'.
_DASH = 62


def fresh_id(random: Random) -> str:
    """The text of a UUID, made at less cost than by the `uuid` module."""
    digits = f"{_bits(random):032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def fresh_uuid(random: Random) -> UUID:
    """A UUID as Kafka makes them (Uuid.randomUuid): its text does not begin with '-', as an option does."""
    while (bits := _bits(random)) >> 122 == _DASH:
        pass
    return UUID(int=bits)


def fresh_base64_id(random: Random) -> str:
    """The text of such a UUID in Kafka: the member ids of the `consumer` design."""
    return urlsafe_b64encode(fresh_uuid(random).bytes).decode().rstrip("=")


def _bits(random: Random) -> int:
    return random.getrandbits(128) & _RANDOM_BITS | _FIXED_BITS
