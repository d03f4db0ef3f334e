"""What servers of an ensemble say to each other, and what a server asks the world to do.

Messages between a leader and a follower carry the follower's number of its connection to the leader, as if each
connection were a new socket: what arrives late from an earlier one is ignored.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from comparison.simulation.zookeeper.model.protocol import FromServer, Write
    from comparison.simulation.zookeeper.model.tree import Origin, Transaction


class ServerState(Enum):
    """What a server is doing (QuorumPeer.ServerState)."""

    LOOKING = auto()  #: for a leader
    FOLLOWING = auto()
    LEADING = auto()


# -- election (FastLeaderElection) -------------------------------------------------------------------------------------


class Vote(NamedTuple):
    """For `server`, because of what its log has. The greater one wins."""

    epoch: int
    zxid: int
    server: int


class ElectionNotice(NamedTuple):
    round: int
    vote: Vote
    state: ServerState  #: the sender's


# -- follower to leader ------------------------------------------------------------------------------------------------


class FollowerInfo(NamedTuple):
    """Opens a connection."""

    accepted_epoch: int
    last_zxid: int


class AckLeader(NamedTuple):
    """The follower has the leader's log up to `zxid`."""

    epoch: int
    zxid: int


class Ack(NamedTuple):
    zxid: int


class Forward(NamedTuple):
    """A client's write."""

    origin: Origin
    session_id: int
    write: Write


class AskSync(NamedTuple):
    origin: Origin


class Revalidate(NamedTuple):
    """A client has connected with a session that it had before."""

    connection: int
    session_id: int
    timeout_ms: int


class Touched(NamedTuple):
    """The answer to `LeaderPing`: the sessions heard of since the last one, with their timeouts."""

    sessions: dict[int, int]


ToLeader: TypeAlias = FollowerInfo | AckLeader | Ack | Forward | AskSync | Revalidate | Touched


# -- leader to follower ------------------------------------------------------------------------------------------------


class NotLeading(NamedTuple):
    """The answer to `FollowerInfo` of a server that does not lead (it refuses the connection)."""


class Synchronize(NamedTuple):
    """What the follower lacks: it cuts its log after `since` and appends the rest."""

    epoch: int
    since: int
    transactions: tuple[Transaction, ...]


class UpToDate(NamedTuple):
    """The follower may serve, after applying all up to `zxid`."""

    zxid: int


class Proposal(NamedTuple):
    transaction: Transaction


class Commit(NamedTuple):
    zxid: int


class Synced(NamedTuple):
    """All that was committed before the `AskSync` has been sent."""

    origin: Origin


class Revalidated(NamedTuple):
    connection: int
    session_id: int
    is_valid: bool


class LeaderPing(NamedTuple):
    """A sign of life."""


ToFollower: TypeAlias = NotLeading | Synchronize | UpToDate | Proposal | Commit | Synced | Revalidated | LeaderPing
PeerMessage: TypeAlias = "ElectionNotice | ToLeader | ToFollower"


# -- effects ---------------------------------------------------------------------------------------------------------


class SendToClient(NamedTuple):
    connection: int
    frame: FromServer


class HangUp(NamedTuple):
    """Close a client's connection, behind what was sent."""

    connection: int


class SendToPeer(NamedTuple):
    server: int
    link: int  #: the follower's number of its connection; 0 for `ElectionNotice`
    message: PeerMessage


Effect: TypeAlias = SendToClient | HangUp | SendToPeer
