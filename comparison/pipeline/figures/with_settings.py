"""With which settings of its run a check applies; the first sentence about each is what documents say."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def always(_: Mapping[str, str]) -> bool:
    """Whatever the settings are."""
    return True


def fenced(settings: Mapping[str, str]) -> bool:
    """With fix.commit.fence."""
    return settings.get("fix.commit.fence", "none") != "none"


def unfenced(settings: Mapping[str, str]) -> bool:
    """Without fix.commit.fence."""
    return not fenced(settings)


def fetching_on(settings: Mapping[str, str]) -> bool:
    """Without fix.stop.on.disconnect."""
    return settings.get("fix.stop.on.disconnect", "false") != "true"


def synced(settings: Mapping[str, str]) -> bool:
    """With fix.sync.before.reads."""
    return settings.get("fix.sync.before.reads", "false") == "true"


def unsynced(settings: Mapping[str, str]) -> bool:
    """Without fix.sync.before.reads."""
    return not synced(settings)


def checked(settings: Mapping[str, str]) -> bool:
    """With fix.checked.release."""
    return settings.get("fix.checked.release", "false") == "true"


def unchecked(settings: Mapping[str, str]) -> bool:
    """Without fix.checked.release."""
    return not checked(settings)


def unfixed(settings: Mapping[str, str]) -> bool:
    """Without any fix."""
    return all(value in ("false", "none", "0") for name, value in settings.items() if name.startswith("fix."))
