"""Checks of a plan against a ZooKeeper that is already running, before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from comparison.interruptible import run
from comparison.near_paths import path_complaint
from comparison.scenarios.plan.catalogue import judged_by, scenario_named
from comparison.scenarios.plan.configuration import configuration
from comparison.scenarios.plan.targets import TargetKind, kind_of
from comparison.scenarios.plan.vocabulary import Inject
from kernel.designs import DESIGNS, ZOOKEEPER
from kernel.errors import ConfigurationError, EnvironmentFault
from kernel.trace.writer import SilentTracer
from kernel.zookeeper.session import ZooKeeperSession
from kernel.zookeeper.target import open_zookeeper, parse_target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.scenarios.plan.scenario import Scenario
    from comparison.scenarios.run.experiments import Planned

_ONE = ("needs a ZooKeeper of its own", "it breaks")
_SEVERAL = ("need ZooKeepers of their own", "they break")
_CONNECT_MS = 10_000
_LOG_FOLDER = "the server's dataLogDir, or its dataDir if it has no dataLogDir"
_OF_SERVERS = frozenset({TargetKind.SERVER, TargetKind.SERVERS, TargetKind.ENSEMBLE, TargetKind.NETWORK})
#: The check that compares joins with the servers' own counters, if the servers are ours.
_COUNTERS = "server's counters"


def possible_on(zookeeper: str, names: Sequence[str]) -> list[str]:
    """The scenarios that can run on this ZooKeeper; the others are reported on standard error as skipped.

    Only servers that a run starts can be broken, and the links between them. Raises `ConfigurationError` when no
    scenario is left.
    """
    if parse_target(zookeeper).ours:
        return list(names)
    possible = [name for name in names if not _breaks_servers(scenario_named(name))]
    skipped = [name for name in names if name not in possible]
    needs, breaks = _ONE if len(skipped) == 1 else _SEVERAL
    if not possible:
        raise ConfigurationError(
            f"{', '.join(skipped)} {needs}, since {breaks} servers or the links between them. "
            "Leave out --zookeeper, or use --zookeeper docker"
        )
    if skipped:
        click.echo(f"skipped ({needs}): {', '.join(skipped)}", err=True)
    return possible


def _breaks_servers(scenario: Scenario) -> bool:
    targets = [kind_of(step.target) for step in scenario.steps if isinstance(step, Inject)]
    return scenario.zookeeper_servers > 1 or not _OF_SERVERS.isdisjoint(targets)


def not_judged_on(zookeeper: str, names: Sequence[str], designs: Sequence[str]) -> list[str]:
    """Warnings of checks that are not possible on this ZooKeeper."""
    counted = [name for name in names if _COUNTERS in judged_by(scenario_named(name))]
    if parse_target(zookeeper).ours or ZOOKEEPER not in designs or not counted:
        return []
    return [
        f"the servers' own counters are not compared in {' and '.join(counted)}: with --zookeeper {zookeeper} they "
        "include other clients, such as the runner's observer"
    ]


def require_logs(zookeeper: str, logs: Sequence[Path]) -> None:
    """Raises `ConfigurationError` for folders without a transaction log, or of a ZooKeeper that a run starts itself."""
    if logs and parse_target(zookeeper).ours:
        raise ConfigurationError(
            "--zookeeper-log is for a ZooKeeper that is already running (--zookeeper HOST:PORT). Leave it out: with "
            f"{zookeeper} the log is read without it"
        )
    for folder in logs:
        if not folder.is_dir():
            raise EnvironmentFault(path_complaint(folder, f"Give {_LOG_FOLDER}", Path.is_dir))
        # A server that nobody has used has no file in it yet.
        if folder.name != "version-2" and not (folder / "version-2").is_dir():
            raise ConfigurationError(
                f"--zookeeper-log {folder}: there is no folder version-2 in it, where a ZooKeeper server keeps its "
                f"transaction log. Give {_LOG_FOLDER}"
            )


def require_zookeeper(spec: str, planned: Sequence[Planned]) -> None:
    """Check that a running ZooKeeper serves and grants the session timeouts that the runs request.

    Raises `UserError` for a malformed target, `Unavailable` when it does not serve, `ConfigurationError` when it
    grants another session timeout.
    """
    target = parse_target(spec)
    if target.ours:
        return
    with open_zookeeper(target, Path()):
        pass
    hosts = target.connect_string.removesuffix(target.chroot)
    for asked_ms in sorted({_session_ms(each) for each in planned if DESIGNS[each.design].zookeeper_sessions}):
        granted_ms = run(_granted_ms(hosts, asked_ms))
        if granted_ms != asked_ms:
            raise ConfigurationError(
                f"the ZooKeeper at {spec} grants sessions of {granted_ms} ms where {asked_ms} ms were requested (see "
                f"minSessionTimeout and maxSessionTimeout, by default 2 and 20 ticks). Use --session-timeout "
                f"{granted_ms}, or change these limits on the server"
            )


def _session_ms(planned: Planned) -> int:
    return configuration(planned.design, planned.parameters).session_ms


async def _granted_ms(hosts: str, asked_ms: int) -> int:
    async with await ZooKeeperSession.open(
        hosts,
        session_timeout_ms=asked_ms,
        connection_timeout_ms=_CONNECT_MS,
        tracer=SilentTracer(),
        name="runner",
    ) as session:
        return session.negotiated_timeout_ms
