"""What goes wrong with a store, in one line: each client raises its own errors, some of which are no OSError."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from kernel.errors import EnvironmentFault, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

#: How clients complain of a server that is not there.
_UNREACHABLE = ("connect to the endpoint", "onnection refused", "imeout", "timed out", "failed to lookup", "No route")
_WITHOUT_CREDENTIALS = ("NoCredentialsError", "PartialCredentialsError")


class StoreFault(EnvironmentFault):
    """A store cannot be read or written; the message says what to do."""


@contextmanager
def explained(where: str, *, but: tuple[type[OSError], ...] = ()) -> Iterator[None]:
    """Translate what clients of stores raise in the block, `but` for these."""
    try:
        yield
    except but:
        raise
    except Exception as error:
        if not isinstance(error, OSError) and not type(error).__module__.startswith(("botocore.", "aiohttp.")):
            raise
        raise _fault(where, error) from None


def _fault(where: str, error: Exception) -> EnvironmentFault | Unavailable:
    said = " ".join(str(error).split()) or type(error).__name__
    if type(error).__name__ in _WITHOUT_CREDENTIALS:
        return StoreFault(f"no credentials for {where}. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
    if isinstance(error, PermissionError):
        return StoreFault(f"access to {where} is denied: {said}. Correct the credentials in the environment")
    if isinstance(error, TimeoutError) or any(each in said for each in _UNREACHABLE):
        return Unavailable(f"the store of {where} does not answer: {said}. Correct the URI, or the endpoint")
    if isinstance(error, FileNotFoundError):
        return StoreFault(f"{where}: {said}. Correct the URI")
    return StoreFault(f"{where} cannot be read or written: {said}")
