"""Java's hash codes, on which Kafka bases the partitions of groups, the choice of fetchers and orders in assignors."""

from __future__ import annotations

import struct

INT_MIN = -(2**31)


def signed(number: int) -> int:
    """A number as a Java int: the lowest 32 bits in two's complement."""
    number &= 0xFFFFFFFF
    return number - 2**32 if number >= 2**31 else number


def java_hash(text: str) -> int:
    """String.hashCode as a signed 32-bit int, over UTF-16 code units (two for a surrogate pair)."""
    encoded = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for unit in struct.unpack(f">{len(encoded) // 2}H", encoded):
        value = 31 * value + unit & 0xFFFFFFFF
    return signed(value)


def kafka_abs(number: int) -> int:
    """Kafka's Utils.abs since 0.8.2: the smallest int, whose absolute value does not fit into an int, becomes 0."""
    return 0 if number == INT_MIN else abs(number)
