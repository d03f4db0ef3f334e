"""Who may talk to the playground: its own page, in a browser on this machine. Pure.

Loopback alone does not keep others out: any page in the same browser can send requests to 127.0.0.1, and a name of its
own can be made to point there (DNS rebinding). So every request has to know the token in the address, to name this
server as its host, and to come from its page, if it says where it comes from.
"""

from __future__ import annotations

import hmac
import secrets
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

#: What the page may load and do: nothing but its own files, no markup made from text, no frame around it.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    )
)
#: The report has its script and its style inside; its own policy allows them by their hashes.
REPORT_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    + "; ".join(("base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"))
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
#: Names of this machine that its page may be opened by.
_NAMES = ("127.0.0.1", "localhost")


class Refusal(NamedTuple):
    """Why a request is not answered."""

    status: int
    reason: str


def new_token() -> str:
    """The secret in the address: 192 bits."""
    return secrets.token_urlsafe(24)


def refusal(headers: Mapping[str, str], *, given: str, token: str, port: int) -> Refusal | None:
    """Why a request with these headers and this token in its path is refused; None if it is not."""
    # Browsers leave out the port that http has by default.
    hosts = {f"{name}:{port}" for name in _NAMES} | ({*_NAMES} if port == 80 else set())
    if headers.get("Host", "") not in hosts:
        return Refusal(421, "this is not the address of the playground: open the one that its terminal shows")
    if not hmac.compare_digest(given.encode("utf-8", "surrogateescape"), token.encode()):
        return Refusal(404, "the address lacks the game's token: open the one that the terminal shows")
    origin = headers.get("Origin")
    if origin is not None and origin not in {f"http://{host}" for host in hosts}:
        return Refusal(403, "only the playground's own page may ask this")
    if headers.get("Sec-Fetch-Site", "none") not in {"same-origin", "none"}:
        return Refusal(403, "only the playground's own page may ask this")
    return None
