"""Encode and decode requests and responses.

The schemas are kio's, except for messages that kio does not have. On top of kio:

- Unknown tagged fields are skipped, as KIP-482 requires (kio raises `KeyError`): see `kernel.wire.tags`.
- Counts are checked against the remaining bytes before kio allocates memory: see `kernel.wire.bounds`.
- Bytes after the end of a message are refused (kio ignores them).
- Null is refused where the schema does not allow it, also for arrays, which kio would decode as None.
- Everything that kio raises about the bytes becomes `MalformedFrame`.

`decode_*` take frames without their size, as `FrameBuffer` returns them; `encode_*` return frames with it, ready to be
written.
"""

from __future__ import annotations

import functools
import itertools
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from kio.serial import entity_reader
from kio.serial.errors import SerialError

from kernel.wire.bounds import REQUEST_ELEMENTS_MAX, RESPONSE_ELEMENTS_MAX, Check, check_of
from kernel.wire.errors import MalformedFrame, UnsupportedVersion
from kernel.wire.schema import entity_class, is_flexible, names_of_all_versions
from kernel.wire.tags import skip_tags, without_unknown_tags
from kernel.wire.versions import SERVED, Api
from kernel.wire.writing import Write, writer

_HEAD = struct.Struct(">hhi")
_SHORT = struct.Struct(">h")
_INT = struct.Struct(">i")
_SIZE_AND_ID = struct.Struct(">ii")

#: Metadata up to this size is decoded once for all clients of a process that get the same.
_ALIKE_BYTES_MAX, _ALIKE_MAX = 256 * 1024, 4

#: Fields from this size on are not copied by `encode_response_in_pieces`.
_LONG_BYTES = 16 * 1024

Read = Callable[[bytes, int], tuple[Any, int]]


class Request(NamedTuple):
    """A decoded request. `body` is kio's entity for this version, or the result of a custom reader."""

    api: Api
    version: int
    correlation_id: int
    client_id: str | None  #: None if the client sent null
    body: Any


class _Codec:
    """The prepared functions for the requests or the responses of one version of an API."""

    __slots__ = ("check", "entity", "flexible_header", "read", "write")

    def __init__(self, api: Api, version: int, *, request: bool) -> None:
        self.entity = entity_class(api, version, request=request)
        self.flexible_header = is_flexible(self.entity.__header_schema__)
        self.read: Read = entity_reader(self.entity)
        self.write: Write = writer(self.entity, api, request=request)
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
            raise MalformedFrame(f"{len(frame) - at - size} bytes after the end of a {self._name()}")
        return body

    def _is_librdkafka_all_topics(self, body: Any, left: int) -> bool:
        """The one message that is accepted with extra bytes after its end.

        librdkafka 2.16.0 requests all topics with an array size of four bytes, where the flexible versions have one.
        A Kafka broker reads the first byte as null and ignores the other three.
        """
        return left == 3 and self.entity.__name__ == "MetadataRequest" and self.flexible_header and body.topics is None

    def encode(self, header: bytes, body: Mapping[str, Any]) -> bytes:
        """The whole frame: its size, the header, and `body`."""
        pieces = [b"", header]
        self.write(pieces.append, body)
        pieces[0] = _INT.pack(sum(map(len, pieces)))
        return b"".join(pieces)

    def _name(self) -> str:
        return f"{self.entity.__name__} version {self.entity.__version__}"


@functools.cache
def _codec(api: Api, version: int, request: bool) -> _Codec:
    return _Codec(api, version, request=request)


def prepare(apis: Iterable[Api]) -> None:
    """Load now what the highest versions of these APIs need at their first message.

    For a process that forks others: loading kio's classes of every version of Fetch alone takes a tenth of a second.
    """
    for api, request in itertools.product(apis, (True, False)):
        _codec(api, SERVED[api][1], request)
        names_of_all_versions(api, request=request)


#: {(API key, version): codec}, filled on demand; a plain dict because every request reads it.
_REQUESTS: dict[tuple[int, int], tuple[Api, _Codec]] = {}


#: A custom reader: (frame, offset of the body, kio's decoder) -> the body of the `Request`.
Reader = Callable[[bytes, int, Callable[[bytes, int], Any]], Any]
_NO_READERS: Mapping[tuple[int, int], Reader] = {}


def decode_request(frame: bytes, readers: Mapping[tuple[int, int], Reader] = _NO_READERS) -> Request:
    """Decode the request in a frame. `readers` replace kio's decoder for some APIs and versions.

    Raises `UnsupportedVersion` if the version table lacks the API or its version, otherwise `MalformedFrame`.
    """
    if len(frame) < 10:
        raise MalformedFrame(f"a request of {len(frame)} bytes is shorter than its header")
    api_key, version, correlation_id = _HEAD.unpack_from(frame)
    entry = _REQUESTS.get((api_key, version)) or _request_codec(frame, api_key, version, correlation_id)
    api, codec = entry
    # The client id is a legacy string in every version of the header; in flexible versions tags follow.
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
        raise UnsupportedVersion(api_key, version, correlation_id, _client_id_of(frame)) from None
    lowest, highest = SERVED[api]
    if not lowest <= version <= highest:
        if api is Api.ApiVersions and version > highest:  # answered all the same if the header is valid (KIP-511)
            (length,) = _SHORT.unpack_from(frame, 8)
            skip_tags(frame, 10 + max(length, 0))
        raise UnsupportedVersion(api_key, version, correlation_id, _client_id_of(frame))
    entry = _REQUESTS[api_key, version] = (api, _codec(api, version, request=True))
    return entry


def _client_id_of(frame: bytes) -> str:
    """As far as it can be read: the header of a version that we do not know may be anything."""
    (length,) = _SHORT.unpack_from(frame, 8)
    return frame[10 : 10 + max(length, 0)].decode(errors="replace")


def encode_request(
    api: Api, version: int, correlation_id: int, client_id: str | None, body: Mapping[str, Any]
) -> bytes:
    """Encode a whole frame from a `body` for `kernel.wire.writing`."""
    codec = _codec(api, version, request=True)
    name = None if client_id is None else client_id.encode()
    header = _HEAD.pack(api, version, correlation_id)
    header += _SHORT.pack(-1) if name is None else _SHORT.pack(len(name)) + name
    return codec.encode(header + b"\0" if codec.flexible_header else header, body)


def encode_response(api: Api, version: int, correlation_id: int, body: Mapping[str, Any]) -> bytes:
    """Encode a whole frame from a `body` for `kernel.wire.writing`."""
    codec = _codec(api, version, request=False)
    # ApiVersions responses always have header version 0 (KIP-511), which kio's header schema reflects.
    return codec.encode(_INT.pack(correlation_id) + (b"\0" if codec.flexible_header else b""), body)


def _joined_but_long(pieces: list[bytes]) -> list[bytes]:
    """What is between long pieces, joined."""
    joined: list[bytes] = []
    begin = 0
    for at, piece in enumerate(pieces):
        if len(piece) >= _LONG_BYTES:
            joined += (b"".join(pieces[begin:at]), piece)
            begin = at + 1
    joined.append(b"".join(pieces[begin:]))
    return joined


def encode_response_in_pieces(api: Api, version: int, correlation_id: int, body: Mapping[str, Any]) -> list[bytes]:
    """`encode_response` without copying long fields (records)."""
    codec = _codec(api, version, request=False)
    pieces = [b"", _INT.pack(correlation_id) + (b"\0" if codec.flexible_header else b"")]
    codec.write(pieces.append, body)
    pieces[0] = _INT.pack(sum(map(len, pieces)))
    return _joined_but_long(pieces)


def response_with(correlation_id: int, tail: bytes) -> bytes:
    """The whole frame of a response, from the encoded bytes after the correlation id."""
    return _SIZE_AND_ID.pack(len(tail) + 4, correlation_id) + tail


def decode_response(api: Api, version: int, frame: bytes) -> tuple[int, Any]:
    """Decode a response: (correlation id, kio's entity). API and version are those of the request."""
    correlation_id = correlation_of(frame)
    if api is Api.Metadata and len(frame) <= _ALIKE_BYTES_MAX:
        return correlation_id, _metadata(version, frame[4:])
    codec = _codec(api, version, request=False)
    return correlation_id, codec.decode(frame, skip_tags(frame, 4) if codec.flexible_header else 4)


@functools.lru_cache(maxsize=_ALIKE_MAX)
def _metadata(version: int, tail: bytes) -> Any:
    """The same, immutable entity for the same bytes after the correlation id."""
    codec = _codec(Api.Metadata, version, request=False)
    return codec.decode(tail, skip_tags(tail, 0) if codec.flexible_header else 0)


def correlation_of(frame: bytes) -> int:
    """The correlation id that every response begins with."""
    if len(frame) < 4:
        raise MalformedFrame(f"a response of {len(frame)} bytes is shorter than its header")
    correlation_id: int = _INT.unpack_from(frame)[0]
    return correlation_id
