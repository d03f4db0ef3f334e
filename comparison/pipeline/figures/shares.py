"""How evenly a change left the partitions divided, and whether each is with a member that wants it."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from comparison.pipeline.measured import ProcessEnded
from comparison.results.keys import place_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparison.pipeline.measured import ChangeWindow, Measured

#: In zookeeper an owner is a thread of a consumer, `<consumer id>-<n>`.
_THREAD = re.compile(r"-\d+$")
#: The suffix of a restarted process: m3, m3.2, m3.3.
_LATER_LIFE = re.compile(r"\.\d+$")


def members_in(measured: Measured, window: ChangeWindow) -> int | None:
    """How many members the group had at the end of the window: those that should be in it, less those that it had
    refused and not admitted by then. None if it is not known how many should.
    """
    if window.members is None:
        return None
    until_ns = window.until_ns
    ends = [each for each in measured.runner if isinstance(each, ProcessEnded) and each.t_ns < until_ns]
    out = {
        place_of(each.process)
        for each in measured.refusals
        if each.t_ns < until_ns and (each.admitted_ns is None or each.admitted_ns >= until_ns)
        # A process that has ended since is none of those that should be in.
        if not any(end.target == each.process and end.t_ns >= each.t_ns for end in ends)
    }
    return window.members - len(out)


def balance(measured: Measured, window: ChangeWindow, parameters: Mapping[str, Any]) -> int | None:
    """Partitions of the member that owns most less those of the one that owns fewest; members without any count.

    None if it is not known who owns what, or how many members there are; or if members have several streams, each of
    which has a share of its own.
    """
    owners, members = measured.owners.get(window.window), members_in(measured, window)
    if not owners or not members or len(measured.groups) > 1 or int(parameters.get("streams", 1)) > 1:
        return None
    shares = Counter(each.after for each in owners if each.after is not None)
    if not shares or len(shares) > members:
        return None
    return max(shares.values()) - (min(shares.values()) if len(shares) == members else 0)


def unsubscribed(measured: Measured, window: ChangeWindow, parameters: Mapping[str, Any]) -> int | None:
    """Partitions whose owner has not subscribed to their topic; None if subscriptions are alike, or owners unknown."""
    subscriptions: Mapping[str, Any] = parameters.get("subscriptions") or {}
    owners = [each for each in measured.owners.get(window.window, []) if each.after is not None]
    if not subscriptions or not owners:
        return None
    process_of = {phase.member: phase.process for phase in measured.phases if phase.member}
    found = 0
    for each in owners:
        member = each.after or ""
        process = process_of.get(member) or process_of.get(_THREAD.sub("", member))
        if process is None:
            return None
        topics = subscriptions.get(_LATER_LIFE.sub("", process))
        found += topics is not None and each.topic not in topics
    return found
