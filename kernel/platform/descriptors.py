"""Open files and connections are limited for each process (`ulimit -n`): a command checks before it begins.

Spark has some 330 of them open for the smallest analysis, and says nothing of it when it may not. Processes that are
started inherit the limit.
"""

from __future__ import annotations

import resource

from kernel.errors import EnvironmentFault

#: Enough for an analysis, and for what plays in a process of its own with up to a hundred others.
DESCRIPTORS = 1024


def require_descriptors(needed: int = DESCRIPTORS) -> None:
    """Raise the process's own limit if it is too low. Raises `EnvironmentFault` if it may not be as high."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if _is_enough(soft, needed):
        return
    if not _is_enough(hard, needed):
        raise EnvironmentFault(
            f"at most {hard} files may be open at once (ulimit -n), and {needed} are needed. Allow more: "
            f"`ulimit -n {needed}` in a shell that is allowed to, or nofile in /etc/security/limits.conf"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _is_enough(limit: int, needed: int) -> bool:
    return limit == resource.RLIM_INFINITY or limit >= needed
