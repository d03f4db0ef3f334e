"""Where the states of a machine stand in its picture, and which moves it says once (`machine_map`).

The ordinary path is a row, or a ring that goes round clockwise. Only this is placed by hand.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

Pairs = frozenset[tuple[str, str]]


class Places(NamedTuple):
    """The height of a picture, and the middle of each state's circle."""

    height: int
    states: Mapping[str, tuple[int, int]]
    #: The ordinary path: its arrows are thick.
    path: Pairs
    #: States that many others lead to: one arrow from nowhere for all of them but those along the path and `own`.
    once: frozenset[str] = frozenset()
    own: Pairs = frozenset()
    #: The reason that an arrow bears, by its beginning, if it is not the first.
    main: Mapping[tuple[str, str], str] = {}
    #: Reasons in fewer words.
    brief: Mapping[str, str] = {}


def _path(names: str) -> Pairs:
    return frozenset(pairwise(names.split()))


def _pairs(*pairs: str) -> Pairs:
    return frozenset((first, second) for first, second in map(str.split, pairs))


def _at(*rows: str) -> Mapping[str, tuple[int, int]]:
    """Each state is followed by the place of its middle."""
    words = " ".join(rows).split()
    return {name: (int(x), int(y)) for name, x, y in zip(words[::3], words[1::3], words[2::3], strict=True)}


def _rows(*rows: str) -> Mapping[str, tuple[int, int]]:
    """The states of a row stand behind their columns, of which there are six."""
    return {
        name: (round(76 + 142 * float(column)), 44 + 94 * row)
        for row, cells in enumerate(map(str.split, rows))
        for column, name in zip(cells[::2], cells[1::2], strict=True)
    }


_GROUP = Places(
    230,
    _at("Empty 90 70  PreparingRebalance 300 70  CompletingRebalance 550 70  Stable 770 70  Dead 90 180"),
    path=_path("Empty PreparingRebalance CompletingRebalance Stable"),
    once=frozenset({"Dead"}),
    own=_pairs("Empty Dead"),
)
PLACES: Mapping[str, Places] = {
    "classic-group": _GROUP,
    "server-group": _GROUP,
    "consumer-group": Places(
        340,
        _at("Empty 90 70  Assigning 330 270  Reconciling 740 270  Stable 535 70  Dead 90 270"),
        path=_path("Empty Stable Assigning Reconciling Stable"),
        once=frozenset({"Empty"}),
        brief={
            "the last member that was not there yet has its target": "all have their target",
            "anybody's next heartbeat computes the target": "a heartbeat computes the target",
            "the same when a member is alone": "the same, of a member alone",
        },
    ),
    "consumer-reconciliation": Places(
        330,
        _at("UNKNOWN 90 165  UNREVOKED_PARTITIONS 400 70  UNRELEASED_PARTITIONS 400 260  STABLE 740 165"),
        path=_path("STABLE UNREVOKED_PARTITIONS UNRELEASED_PARTITIONS STABLE"),
        brief={
            "it has partitions that it shall give up, and has not said that it did": "has something to give up",
            "it misses partitions that another member still has": "misses what another still has",
            "it has its target": "has its target",
        },
    ),
    "classic-member": Places(
        590,
        _at(
            "UNJOINED 80 220  SEEKING 200 80  JOINING 320 220  DECIDING 460 60  SYNCING 580 220  ASSIGNED 780 130",
            "RELEASING 790 270  RESUMING 770 410  STABLE 610 410  REJOIN_NEEDED 440 370  STOPPING 240 400",
            "UNSUBSCRIBING 80 530  CLOSING 310 530  LEFT 510 530  FAILED 690 530",
        ),
        path=_path("UNJOINED SEEKING JOINING SYNCING ASSIGNED RESUMING STABLE REJOIN_NEEDED JOINING"),
        once=frozenset({"UNJOINED", "SEEKING", "JOINING", "UNSUBSCRIBING", "CLOSING", "LEFT", "FAILED"}),
        own=_pairs("UNJOINED JOINING", "STOPPING JOINING", "UNSUBSCRIBING UNJOINED", "CLOSING LEFT"),
    ),
    "server-member": Places(
        440,
        _at(
            "UNREGISTERED 90 170  REGISTERING 280 170  WAITING 460 170  STARTING 620 70  STARTED 775 170",
            "STOPPING 620 280  CLOSING 280 380  LEFT 460 380  FAILED 650 380",
        ),
        path=_path("UNREGISTERED REGISTERING WAITING STARTING STARTED STOPPING WAITING"),
        once=frozenset({"UNREGISTERED", "REGISTERING", "CLOSING", "LEFT", "FAILED"}),
        own=_pairs("CLOSING LEFT"),
        main={("STARTED", "WAITING"): "StopCommanded"},
    ),
    "consumer-member": Places(
        470,
        _at(
            "UNSUBSCRIBED 90 210  JOINING 280 210  RECONCILING 470 210  ACKNOWLEDGING 625 60  STABLE 780 210",
            "PREPARE_LEAVING 90 400  STALE 290 350  FENCED 480 350  FATAL 680 400",
        ),
        path=_path("UNSUBSCRIBED JOINING RECONCILING STABLE RECONCILING"),
        once=frozenset({"UNSUBSCRIBED", "JOINING", "STALE", "FENCED", "PREPARE_LEAVING", "FATAL"}),
        own=_pairs("FENCED JOINING", "STALE JOINING", "PREPARE_LEAVING UNSUBSCRIBED"),
        main={("ACKNOWLEDGING", to): "HeartbeatAnswered" for to in ("STABLE", "RECONCILING")},
    ),
    "zookeeper-rebalance": Places(
        656,
        _rows(
            ".35 IDLE  3 LISTING_CLUSTER  4 READING_CLUSTER  5 READING_OWN",
            "1.25 BACKING_OFF  2.15 AWAITING_BROKERS  3 READING_BROKERS  4 LISTING_BROKERS  5 MATCHING_OWN",
            "1.25 GIVING_UP  3 STOPPING  4 RELEASING  5 READING_OWN_AGAIN",
            "1.2 READING_OFFSETS  2.1 DECIDING  3 READING_MEMBERS  4 READING_TOPICS  5 MATCHING_OWN_AGAIN",
            "1.2 CHECKING_SHUTDOWN  2.1 CLAIMING  3 CHECKING_CLAIM  4 COUNTING  5 ROLLING_BACK",
            "1.1 STARTING  2.5 ADOPTING  4 OWNING",
            "0 CLOSING  2 CLOSING_SESSION  4 CLOSED",
        ),
        path=_path(
            "IDLE LISTING_CLUSTER READING_CLUSTER READING_OWN MATCHING_OWN LISTING_BROKERS READING_BROKERS STOPPING "
            "RELEASING READING_OWN_AGAIN MATCHING_OWN_AGAIN READING_TOPICS READING_MEMBERS DECIDING READING_OFFSETS "
            "CHECKING_SHUTDOWN CLAIMING COUNTING OWNING ADOPTING STARTING IDLE"
        ),
        once=frozenset({"GIVING_UP", "IDLE"}),
    ),
}
