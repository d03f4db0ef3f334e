"""The error tree. The class says whose fault an error is; the message says what was wrong and what to do.

`UserError` and its subclasses end a command with their message and exit code 254, without a traceback.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Errors of a folder or its disk, not of sockets or processes.
UNWRITABLE = frozenset({errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO})


class RebalanceLabError(Exception):
    """The base class of all errors that this project raises on purpose."""


class UserError(RebalanceLabError):
    """The user requested something impossible; the message says what to change."""


class ConfigurationError(UserError):
    """A setting has an unknown name or an invalid value."""


class SeveralErrors(ConfigurationError):
    """Everything that is wrong with a file, each with its line; `details` has the tracebacks of a user's code."""

    def __init__(self, texts: Sequence[str], details: str = "") -> None:
        super().__init__("; ".join(texts))
        self.texts = tuple(texts)
        self.details = details


class EnvironmentFault(UserError):
    """This machine lacks something: a JRE, a port, room on disk. The message names the remedy."""


class RefusedForGood(UserError):
    """The group does not take this member, and no retry helps. A consumer that has raised it can only be closed."""


class Unavailable(RebalanceLabError):
    """A required server does not answer. Trying again later may help."""


class ProtocolError(RebalanceLabError):
    """The peer violated the Kafka protocol, or used a part that we do not support; the connection is unusable."""


class MalformedFrame(ProtocolError):
    """The bytes of a frame do not decode as the expected request or response."""


class Retriable(RebalanceLabError):
    """The operation failed but may succeed if repeated."""


class RebalanceFailed(RebalanceLabError):
    """ConsumerRebalanceFailedException of 0.8: all attempts failed; the member stays registered and idle."""


class StreamsExist(UserError):
    """MessageStreamsExistException of 0.8: a consumer can create its streams only once."""


class ConsumerTimeout(RebalanceLabError):
    """ConsumerTimeoutException of 0.8: no record within consumer.timeout.ms; the iterator remains usable."""


class MessageSizeTooLarge(RebalanceLabError):
    """MessageSizeTooLargeException of 0.8: the next message exceeds fetch.message.max.bytes, so the stream is stuck."""
