"""Errors in the bytes of a peer, and Kafka's error codes.

`ErrorCode` is kio's enum, which has lower-case names. Traces and messages use Kafka's spelling: see `error_name`.
"""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from kernel.errors import MalformedFrame, ProtocolError

__all__ = ["ErrorCode", "FrameTooLarge", "MalformedFrame", "ProtocolError", "UnsupportedVersion", "error_name"]


class FrameTooLarge(ProtocolError):
    """The announced size of a frame is negative or above the limit (socket.request.max.bytes)."""


class UnsupportedVersion(ProtocolError):
    """An unsupported API or version. Kafka answers such a request only if it is ApiVersions (KIP-511).

    `client_id` is as the client sent it, '' if it sent none; whatever is not UTF-8 in it is replaced.
    """

    def __init__(self, api_key: int, version: int, correlation_id: int, client_id: str) -> None:
        super().__init__(f"API key {api_key} version {version} is not supported")
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id


def error_name(code: int) -> str:
    """Kafka's spelling of a code, such as `NOT_LEADER_OR_FOLLOWER`; '' for success."""
    try:
        known = ErrorCode(code)
    except ValueError:
        return f"ERROR_{code}"
    return "" if known is ErrorCode.none else known.name.upper()
