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


def search_if_due(draft: Draft, turn: Turn) -> None:
    """At a heartbeat: search all expressions of the group, if one is new, topics have been created, or it is time."""
    group, regexes = draft.group, draft.group.regex_uses.keys()
    if not regexes or group.is_searching:
        return
    searched_ms = max([group.searched_wall_ms, *(record.wall_ms for record in group.regexes.values())])
    if turn.now.wall_ms <= searched_ms + BETWEEN_SEARCHES_MS:
        return
    version = draft.topics.names_version()
    is_outdated = any(record.version != version for record in group.regexes.values())
    is_late = turn.now.wall_ms > searched_ms + draft.settings.regex_refresh_ms
    if is_outdated or is_late or regexes - group.regexes.keys():
        group.is_searching = True
        turn.search(Search(group.id, tuple(sorted(regexes)), version))


def take_found(draft: Draft, found: Mapping[str, RegexRecord], turn: Turn) -> None:
    """Store what was found, of expressions still in use; other topics than before need a new target."""
    group, is_other = draft.group, False
    for regex in sorted(group.regex_uses.keys() & found.keys()):
        before = group.regexes.get(regex)
        is_other = is_other or found[regex].topics != (() if before is None else before.topics)
        draft.put(RegexKey(group.id, regex), found[regex])
    if is_other:
        draft.bump()
    draft.store(None, None, turn)
