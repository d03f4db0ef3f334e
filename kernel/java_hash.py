"""Hashes of the JVM, where Kafka lets them decide: partitions of groups, fetchers, orders of assignors."""

from __future__ import annotations

INT_MIN = -(2**31)


def signed(number: int) -> int:
    """As an int of Java: the lowest 32 bits, in two's complement."""
    number &= 0xFFFFFFFF
    return number - 2**32 if number >= 2**31 else number


def java_hash(text: str) -> int:
    """String.hashCode: over UTF-16 code units (a surrogate pair counts as two), as a signed 32-bit int."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return signed(value)


def kafka_abs(number: int) -> int:
    """Utils.abs of Kafka since 0.8.2: the smallest int, whose absolute value is no int, becomes 0."""
    return 0 if number == INT_MIN else abs(number)
