"""When the topics that match regular expressions of a group are searched, and what follows from what was found.

A search takes time, so no heartbeat waits for it: a member that brings a new expression gets its topics with a later
epoch. Sources: GroupMetadataManager.maybeUpdateRegularExpressions and handleRegularExpressionsResult, 4.1.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.groups.consumer_records import RegexKey
from coordinator.groups.effects import Search

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coordinator.groups.consumer.draft import Draft
    from coordinator.groups.consumer_records import RegexRecord
    from coordinator.groups.effects import Turn

#: REGEX_BATCH_REFRESH_MIN_INTERVAL_MS: the least time between two searches of a group, whatever has changed.
BETWEEN_SEARCHES_MS = 10_000


def due_search(draft: Draft, former: str, regex: str, turn: Turn) -> Search | None:
    """At a heartbeat of a member whose expression was `former` and is `regex` from now on; empty for none.

    All expressions of the group are searched if one is new or has gone, topics have been created, or it is time. When
    that was last done, and for how many, is what is stored: the group as it was before this heartbeat. A group in which
    nothing is stored any more, or yet, does not wait. Neither does Kafka's after a search that failed; ours does.
    """
    group, settings = draft.group, draft.settings
    uses = dict(group.regex_uses)
    if former:
        uses[former] = uses.get(former, 0) - 1
    is_new = bool(regex) and regex != former and not group.regex_uses.get(regex)
    regexes = {used for used, count in uses.items() if count > 0} | ({regex} - {""})
    if not regexes or group.is_searching or turn.now.wall_ms <= group.search_failed_wall_ms + BETWEEN_SEARCHES_MS:
        return None
    version = draft.topics.names_version()
    if group.regexes:
        searched_ms = max(record.wall_ms for record in group.regexes.values())
        if turn.now.wall_ms <= searched_ms + BETWEEN_SEARCHES_MS:
            return None
        is_outdated = any(record.version != version for record in group.regexes.values())
        is_late = turn.now.wall_ms > searched_ms + settings.regex_refresh_ms
        if not (is_new or is_outdated or is_late or len(regexes) != len(group.regexes)):
            return None
    return Search(group.id, tuple(sorted(regexes)), version)


def take_found(draft: Draft, found: Mapping[str, RegexRecord], turn: Turn) -> None:
    """Store what was found, of expressions still in use.

    Other topics than before need a new target; so does a group that subscribes to others than its epoch is of, because
    members have changed their expressions since.
    """
    group, is_other = draft.group, False
    for regex in sorted(group.regex_uses.keys() & found.keys()):
        before = group.regexes.get(regex)
        is_other = is_other or found[regex].topics != (() if before is None else before.topics)
        draft.put(RegexKey(group.id, regex), found[regex])
    if is_other or draft.topics_hash() != group.metadata_hash:
        draft.bump()
    draft.store(None, None, turn)
