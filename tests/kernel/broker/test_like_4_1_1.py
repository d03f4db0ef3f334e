"""Administration and refusals: ours must answer like a 4.1.1 broker (`tests.kernel.broker.admin_cases`).

Intended differences are excluded by name below; messages are compared if they are about settings.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.kernel.broker.asking import answers
from tests.support.brokers.live import running_broker

RECORDED = json.loads((Path(__file__).parent / "admin-4.1.1.json").read_text(encoding="utf-8"))

#: {request: where the answer differs, and why}
DIFFERENT = {
    "create: validate only": "4.1.1 makes up the id of a topic that it does not create; ours answers none",
    "list config resources: groups, one without settings": "4.1.1 lists a group that has lost its settings",
    "metadata: null name, no id": "4.1.1 fails inside and says UNKNOWN_SERVER_ERROR; ours says INVALID_REQUEST",
}
#: A cluster with a quorum has this setting altered for all brokers (KIP-966); without one it is a default, as in 3.9.
OF_THE_QUORUM = "min.insync.replicas"
ALL_BROKERS, DEFAULT = 3, 5


async def test_answers_equal_those_of_4_1_1(chroot: str, tmp_path: Path) -> None:
    async with running_broker(chroot, tmp_path) as broker:
        ours = await answers(broker.address.host, broker.address.port)
    assert ours.keys() == RECORDED.keys(), "recorded with other requests: record again"
    wrong = {}
    for label, theirs in RECORDED.items():
        expected, found = _without_the_quorum(theirs), ours[label]
        if label.split(" ", 1)[1] in DIFFERENT:
            assert found != expected, f"{label} no longer differs"
        elif _explained_less(found, expected) != expected:
            wrong[label] = (expected, found)
    assert not wrong, "\n".join(f"{label}\n  4.1.1 {a}\n  ours  {b}" for label, (a, b) in wrong.items())


def _explained_less(found: Any, expected: Any) -> Any:
    """`found` without the messages that only ours has: more explanation is no difference."""
    if isinstance(found, dict) and isinstance(expected, dict):
        same = {name: _explained_less(value, expected.get(name)) for name, value in found.items()}
        if same.get("error_code") != 0 and same.get("error_message") and expected.get("error_message") is None:
            same["error_message"] = None
        return same
    if isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        return [_explained_less(one, other) for one, other in zip(found, expected, strict=True)]
    return found


def _without_the_quorum(theirs: Any) -> Any:
    """What 4.1.1 would answer if its cluster had no quorum."""
    if isinstance(theirs, list):
        plain = [_without_the_quorum(one) for one in theirs]
        return sorted(plain, key=lambda item: json.dumps(item, sort_keys=True))
    if not isinstance(theirs, dict):
        return theirs
    if theirs.get("resource_type") == 4 and theirs.get("resource_name") == "" and "configs" in theirs:
        return {**theirs, "configs": [row for row in theirs["configs"] if row["name"] != OF_THE_QUORUM]}
    if theirs.get("name") == OF_THE_QUORUM and theirs.get("config_source") == ALL_BROKERS:
        synonyms = [row for row in theirs.get("synonyms", ()) if row["source"] == DEFAULT]
        return {**theirs, "config_source": DEFAULT} | ({"synonyms": synonyms} if "synonyms" in theirs else {})
    return {name: _without_the_quorum(value) for name, value in theirs.items()}
