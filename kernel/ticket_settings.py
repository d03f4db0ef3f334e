"""Settings named after tickets: known faults of Kafka, to be brought back or mended.

`fault.kafka.N` brings back what KAFKA-N has fixed by 4.1.1, `fix.kafka.N` mends what 4.1.1 still has. All are off.
`docs/coordinator-weaknesses.md` has each with its releases, its test and how to see it.
"""

from __future__ import annotations

from kernel.settings import Setting, flag


def fault(ticket: int, doc: str, advice: str, shown_by: str) -> Setting:
    """Of something that Kafka has fixed: as it was before. `shown_by` is a command that ends in `--set`."""
    return _named("fault", ticket, doc, advice, shown_by)


def fix(ticket: int, doc: str, advice: str, shown_by: str) -> Setting:
    """Of something that 4.1.1 has: as a later release mends it."""
    return _named("fix", ticket, doc, advice, shown_by)


def _named(kind: str, ticket: int, doc: str, advice: str, shown_by: str) -> Setting:
    name = f"{kind}.kafka.{ticket}"
    return flag(name, False, doc, advice=advice, source=f"KAFKA-{ticket}", shown_by=f"{shown_by} {name}=true")
