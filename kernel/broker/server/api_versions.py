"""ApiVersions: which APIs are served, and the response to an unknown version of ApiVersions itself (KIP-511)."""

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


def response_for(served: Iterable[Api], context: RequestContext, body: Any) -> Mapping[str, Any]:
    """One row per served API; INVALID_REQUEST if the client's software name or version is malformed (KIP-511)."""
    named = (body.client_software_name, body.client_software_version) if context.version >= 3 else ()
    if not all(_SOFTWARE_NAME.fullmatch(name) for name in named):
        return {"error_code": ErrorCode.invalid_request, "api_keys": ()}
    return {"error_code": ErrorCode.none, "api_keys": [_row(api) for api in sorted(served)]}


def refusal(correlation_id: int) -> bytes:
    """The complete response: always a version-0 body, naming only the versions of ApiVersions."""
    body = {"error_code": ErrorCode.unsupported_version, "api_keys": [_row(Api.ApiVersions)]}
    return encode_response(Api.ApiVersions, 0, correlation_id, body)


def _row(api: Api) -> dict[str, int]:
    lowest, highest = SERVED[api]
    return {"api_key": api, "min_version": lowest, "max_version": highest}
