"""What can be wrong with bytes from the other side, and Kafka's own error codes.

`ErrorCode` is kio's enum, with lower-case names; traces and messages use Kafka's spelling, which `error_name` gives.
"""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from kernel.errors import MalformedFrame, ProtocolError

__all__ = ["ErrorCode", "FrameTooLarge", "MalformedFrame", "ProtocolError", "UnsupportedVersion", "error_name"]


class FrameTooLarge(ProtocolError):
    """A frame announces a size that is negative or above the limit (socket.request.max.bytes)."""


class UnsupportedVersion(ProtocolError):
    """An API, or a version of it, that we do not speak. Kafka has an answer for ApiVersions only (KIP-511)."""

    def __init__(self, api_key: int, version: int, correlation_id: int) -> None:
        super().__init__(f"API key {api_key} version {version} is not supported")
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id


def error_name(code: int) -> str:
    """Kafka's spelling (`NOT_LEADER_OR_FOLLOWER`) of a code, '' for success."""
    try:
        known = ErrorCode(code)
    except ValueError:
        return f"ERROR_{code}"
    return "" if known is ErrorCode.none else known.name.upper()
