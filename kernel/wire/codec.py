"""Requests and responses as bytes and back. The message schemas are kio's, but for the oldest; what kio leaves open:

- Unknown tagged fields are skipped, as KIP-482 asks (kio raises `KeyError`): see `kernel.wire.tags`.
- Counts are held against the bytes that are left before kio makes room for them: see `kernel.wire.bounds`.
- Bytes behind the end of a message are refused (kio does not look).
- Null where the schema allows none is refused, an array's too, which kio would decode as None.
- Whatever kio raises about the bytes becomes `MalformedFrame`.

`decode_*` take frames without their size, as `FrameBuffer` hands them out; `encode_*` return them with it, ready to
be written.
"""

from __future__ import annotations

import functools
import io
import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError

from kernel.wire.bounds import REQUEST_ELEMENTS_MAX, RESPONSE_ELEMENTS_MAX, Check, check_of
from kernel.wire.building import Build, builder
from kernel.wire.errors import MalformedFrame, UnsupportedVersion
from kernel.wire.schema import entity_class, is_flexible
from kernel.wire.tags import skip_tags, without_unknown_tags
from kernel.wire.versions import SERVED, Api

_HEAD = struct.Struct(">hhi")
_SHORT = struct.Struct(">h")
_INT = struct.Struct(">i")
_SIZE_AND_ID = struct.Struct(">ii")

#: Fields of a response in pieces that are not copied.
_LONG_BYTES = 16 * 1024

Read = Callable[[bytes, int], tuple[Any, int]]
Write = Callable[[Any, Any], None]


class Request(NamedTuple):
    """A decoded request. `body` is kio's entity for this version, or what a reader has made in its place.

    `client_id` is None when the client gave none.
    """

    api: Api
    version: int
    correlation_id: int
    client_id: str | None
    body: Any


class _Codec:
    """Everything prepared for one direction of one version of one API."""

    __slots__ = ("build", "check", "entity", "flexible_header", "read", "write")

    def __init__(self, api: Api, version: int, *, request: bool) -> None:
        self.entity = entity_class(api, version, request=request)
        self.flexible_header = is_flexible(self.entity.__header_schema__)
        self.read: Read = entity_reader(self.entity)
        self.write: Write = entity_writer(self.entity)
        self.build: Build = builder(self.entity, api, request=request)
        elements_max = REQUEST_ELEMENTS_MAX if request else RESPONSE_ELEMENTS_MAX
        self.check: Check | None = check_of(self.entity, elements_max=elements_max)

    def decode(self, frame: bytes, at: int) -> Any:
        """The entity that fills `frame` from `at` to its end."""
        check = self.check
        if check is not None:
            check(frame, at)
        try:
            try:
                body, size = self.read(frame, at)
            except KeyError:
                frame, at = without_unknown_tags(self.entity, frame[at:]), 0
                if check is not None:
                    check(frame, at)
                body, size = self.read(frame, at)
        except (SerialError, KeyError, ValueError, OverflowError) as error:
            raise MalformedFrame(f"not a {self._name()}: {error}") from error
        if at + size != len(frame) and not self._is_librdkafka_all_topics(body, len(frame) - at - size):
            raise MalformedFrame(f"{len(frame) - at - size} bytes behind the end of a {self._name()}")
        return body

    def _is_librdkafka_all_topics(self, body: Any, left: int) -> bool:
        """The one message with bytes behind its end that is let through.

        librdkafka 2.16.0 asks for all topics with an array size of four bytes where the flexible versions have one.
        A Kafka broker reads the first as null and ignores the three that are left over, so that nobody noticed.
        """
        return left == 3 and self.entity.__name__ == "MetadataRequest" and self.flexible_header and body.topics is None

    def encode(self, buffer: io.BytesIO, body: Mapping[str, Any]) -> bytes:
        """What `buffer` holds (room for the size, the header) and `body` behind it, as a whole frame."""
        self.write(buffer, self.build(body))
        size = buffer.tell() - 4
        buffer.seek(0)
        buffer.write(_INT.pack(size))
        return buffer.getvalue()

    def _name(self) -> str:
        return f"{self.entity.__name__} version {self.entity.__version__}"


@functools.cache
def _codec(api: Api, version: int, request: bool) -> _Codec:
    return _Codec(api, version, request=request)


#: {(key, version): codec}, filled as requests come; a plain dict because it is read for every request.
_REQUESTS: dict[tuple[int, int], tuple[Api, _Codec]] = {}


#: Makes a body in place of kio's entity: of a frame and where the body begins in it, and by what kio would decode it.
Reader = Callable[[bytes, int, Callable[[bytes, int], Any]], Any]
_NO_READERS: Mapping[tuple[int, int], Reader] = {}


def decode_request(frame: bytes, readers: Mapping[tuple[int, int], Reader] = _NO_READERS) -> Request:
    """The request in a frame; `readers`, by API and version, make bodies of their own.

    Raises `UnsupportedVersion` for what the version table lacks, else `MalformedFrame`.
    """
    if len(frame) < 10:
        raise MalformedFrame(f"a request of {len(frame)} bytes has no room for its header")
    api_key, version, correlation_id = _HEAD.unpack_from(frame)
    entry = _REQUESTS.get((api_key, version)) or _request_codec(frame, api_key, version, correlation_id)
    api, codec = entry
    # The client id is a legacy string in every version of the header, behind it the flexible ones have tags.
    (length,) = _SHORT.unpack_from(frame, 8)
    at = 10
    client_id = None
    if length >= 0:
        at += length
        if at > len(frame):
            raise MalformedFrame(f"a client id of {length} bytes ends outside the request")
        try:
            client_id = frame[10:at].decode()
        except UnicodeDecodeError as error:
            raise MalformedFrame(f"the client id is not UTF-8: {error}") from error
    elif length != -1:
        raise MalformedFrame(f"a client id of {length} bytes")
    if codec.flexible_header:
        at = at + 1 if frame[at : at + 1] == b"\0" else skip_tags(frame, at)
    reader = readers.get((api_key, version))
    body = codec.decode(frame, at) if reader is None else reader(frame, at, codec.decode)
    return Request(api, version, correlation_id, client_id, body)


def _request_codec(frame: bytes, api_key: int, version: int, correlation_id: int) -> tuple[Api, _Codec]:
    try:
        api = Api(api_key)
    except ValueError:
        raise UnsupportedVersion(api_key, version, correlation_id) from None
    lowest, highest = SERVED[api]
    if not lowest <= version <= highest:
        if api is Api.ApiVersions and version > highest:  # answered nevertheless (KIP-511), if its header is good
            (length,) = _SHORT.unpack_from(frame, 8)
            skip_tags(frame, 10 + max(length, 0))
        raise UnsupportedVersion(api_key, version, correlation_id)
    entry = _REQUESTS[api_key, version] = (api, _codec(api, version, request=True))
    return entry


def encode_request(
    api: Api, version: int, correlation_id: int, client_id: str | None, body: Mapping[str, Any]
) -> bytes:
    """A whole frame; `body` as `kernel.wire.building` takes it."""
    codec = _codec(api, version, request=True)
    name = None if client_id is None else client_id.encode()
    buffer = io.BytesIO()
    buffer.write(b"\0\0\0\0" + _HEAD.pack(api, version, correlation_id))
    buffer.write(_SHORT.pack(-1) if name is None else _SHORT.pack(len(name)) + name)
    if codec.flexible_header:
        buffer.write(b"\0")
    return codec.encode(buffer, body)


def encode_response(api: Api, version: int, correlation_id: int, body: Mapping[str, Any]) -> bytes:
    """A whole frame; `body` as `kernel.wire.building` takes it."""
    codec = _codec(api, version, request=False)
    buffer = io.BytesIO()
    # ApiVersions responses have header version 0 for ever (KIP-511); kio's header schema knows.
    buffer.write(b"\0\0\0\0" + _INT.pack(correlation_id) + (b"\0" if codec.flexible_header else b""))
    return codec.encode(buffer, body)


class _Pieces:
    """A buffer that keeps what is long as it is, instead of copying it."""

    def __init__(self, begin: bytes) -> None:
        self.pieces: list[bytes] = []
        self._short = bytearray(begin)

    def write(self, data: bytes) -> int:
        if len(data) < _LONG_BYTES:
            self._short += data
        else:
            self.pieces += (bytes(self._short), data)
            self._short.clear()
        return len(data)

    def finish(self) -> list[bytes]:
        """All that was written, with the frame's size in front."""
        pieces = [*self.pieces, bytes(self._short)]
        pieces[0] = _INT.pack(sum(map(len, pieces))) + pieces[0]
        return pieces


def encode_response_in_pieces(api: Api, version: int, correlation_id: int, body: Mapping[str, Any]) -> list[bytes]:
    """As `encode_response`, for what holds long fields (records): these are not copied."""
    codec = _codec(api, version, request=False)
    buffer = _Pieces(_INT.pack(correlation_id) + (b"\0" if codec.flexible_header else b""))
    codec.write(buffer, codec.build(body))
    return buffer.finish()


def response_with(correlation_id: int, tail: bytes) -> bytes:
    """A whole frame of a response whose bytes behind the correlation id are at hand."""
    return _SIZE_AND_ID.pack(len(tail) + 4, correlation_id) + tail


def decode_response(api: Api, version: int, frame: bytes) -> tuple[int, Any]:
    """(correlation id, kio's entity). The caller knows api and version from the request with that correlation id."""
    codec = _codec(api, version, request=False)
    correlation_id = correlation_of(frame)
    return correlation_id, codec.decode(frame, skip_tags(frame, 4) if codec.flexible_header else 4)


def correlation_of(frame: bytes) -> int:
    """The correlation id that every response begins with."""
    if len(frame) < 4:
        raise MalformedFrame(f"a response of {len(frame)} bytes has no room for its header")
    correlation_id: int = _INT.unpack_from(frame)[0]
    return correlation_id
