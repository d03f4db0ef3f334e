"""Warnings about clients whose requests are not served.

Kafka's protocol has no answer for an API or a version that a broker does not know, so the connection is closed, and the
client cannot say why. So the broker does: once for each client, API and version. What it remembers is bounded, and so
is what it writes if the clients' names or requests keep changing.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kernel.wire.versions import SERVED

if TYPE_CHECKING:
    from collections.abc import Collection

    from kernel.wire.errors import UnsupportedVersion
    from kernel.wire.versions import Api

log = logging.getLogger(__name__)

#: Clients, with what they asked for, that are not warned of again as long as they are among the last.
REMEMBERED_MAX = 1_000
#: Warnings in any `PERIOD_S`.
WARNINGS_MAX, PERIOD_S = 20, 60.0
#: Characters of a client id that are kept and shown.
_SHOWN = 100


class UnsupportedRequests:
    """`served` are the APIs that have a handler."""

    def __init__(self, served: Collection[Api]) -> None:
        self._served = served
        self._warned: dict[tuple[str, str, int, int], None] = {}
        self._since_s = 0.0
        self._count = 0

    def warn(self, refused: UnsupportedVersion, host: str, now_s: float) -> None:
        """Log the request that was refused, unless the same client has sent such a one before."""
        client = (host, refused.client_id[:_SHOWN], refused.api_key, refused.version)
        if client in self._warned:
            return
        if now_s - self._since_s >= PERIOD_S:
            self._since_s, self._count = now_s, 0
        if self._count == WARNINGS_MAX:
            return
        self._count += 1
        if len(self._warned) == REMEMBERED_MAX:
            del self._warned[next(iter(self._warned))]
        self._warned[client] = None
        log.warning("%s", self._text(*client))
        if self._count == WARNINGS_MAX:
            log.warning("no further warnings of requests that are not served for up to %.0f s", PERIOD_S)

    def _text(self, host: str, client_id: str, api_key: int, version: int) -> str:
        name = f"client {client_id!r}" if client_id else "a client without an id"
        closed = f"{name} at {host} was disconnected: it sent"
        api = next((api for api in self._served if api == api_key), None)
        if api is None:
            return f"{closed} a request of API key {api_key} version {version}, and this broker does not serve that API"
        lowest, highest = SERVED[api]
        return f"{closed} {api.name} version {version}, and this broker serves versions {lowest} to {highest}"
