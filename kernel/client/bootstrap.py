"""The addresses that a client is given to find its cluster by: Kafka's `bootstrap.servers`."""

from __future__ import annotations

from kernel.decimals import decimal


def addresses(bootstrap: str) -> list[tuple[str, int]]:
    """`host:port,...` as pairs. Raises `ValueError` for anything else."""
    pairs = []
    for part in bootstrap.split(","):
        host, colon, port = part.strip().rpartition(":")
        number = decimal(port)
        if not colon or not host or number is None:
            raise ValueError(f"{part.strip()!r} is not HOST:PORT")
        pairs.append((host, number))
    return pairs
