"""ApiVersions: what is served, and the one answer that a version which is not known gets (KIP-511)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from kernel.wire.codec import encode_response
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import SERVED, Api

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kernel.broker.server.handlers import RequestContext

#: ApiVersionsRequest.java, SOFTWARE_NAME_VERSION_PATTERN.
_SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def answer(served: Iterable[Api], context: RequestContext, body: Any) -> Mapping[str, Any]:
    """A row for each API that is served; none for a client that names its software as Kafka forbids (KIP-511)."""
    named = (body.client_software_name, body.client_software_version) if context.version >= 3 else ()
    if not all(_SOFTWARE_NAME.fullmatch(name) for name in named):
        return {"error_code": ErrorCode.invalid_request, "api_keys": ()}
    return {"error_code": ErrorCode.none, "api_keys": [_row(api) for api in sorted(served)]}


def refusal(correlation_id: int) -> bytes:
    """The whole response: a version-0 body whatever was asked for, naming the versions of ApiVersions itself."""
    body = {"error_code": ErrorCode.unsupported_version, "api_keys": [_row(Api.ApiVersions)]}
    return encode_response(Api.ApiVersions, 0, correlation_id, body)


def _row(api: Api) -> dict[str, int]:
    lowest, highest = SERVED[api]
    return {"api_key": api, "min_version": lowest, "max_version": highest}
