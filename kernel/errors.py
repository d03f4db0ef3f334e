"""The error tree. The class says whose fault it is; the message says what was wrong and what to do.

`UserError` and its kin end a command with exit code 254 and their message, without a traceback.
"""

from __future__ import annotations


class RebalanceLabError(Exception):
    """Root of every error that this project raises on purpose."""


class UserError(RebalanceLabError):
    """The caller asked for something that cannot be done; the message says what to change."""


class ConfigurationError(UserError):
    """A setting has an unknown name or a value out of its range."""


class EnvironmentFault(UserError):
    """This machine lacks something: a JRE, a port, room on disk. The message names the remedy."""


class Unavailable(RebalanceLabError):
    """A server that we need does not answer. Trying again later may help."""


class ProtocolError(RebalanceLabError):
    """The other side sent something that is not Kafka's protocol as we speak it; the connection is of no more use."""


class MalformedFrame(ProtocolError):
    """A frame's bytes do not decode as the request or response that they should be."""


class Retriable(RebalanceLabError):
    """The operation failed but may succeed when it is repeated."""


class RebalanceFailed(RebalanceLabError):
    """ConsumerRebalanceFailedException of 0.8: every attempt failed, the member stays registered and idle."""


class StreamsExist(UserError):
    """MessageStreamsExistException of 0.8: a consumer's streams are made once."""


class ConsumerTimeout(RebalanceLabError):
    """ConsumerTimeoutException of 0.8: no record came within consumer.timeout.ms; the iterator can be used again."""


class MessageSizeTooLarge(RebalanceLabError):
    """MessageSizeTooLargeException of 0.8: what comes next is above fetch.message.max.bytes; the stream is stuck."""
