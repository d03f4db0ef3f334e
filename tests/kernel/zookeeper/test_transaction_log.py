"""Our reading of the transaction log, compared with what was done and with ZooKeeper's toolkit."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections import Counter

import pytest

from kernel.platform.jre import find_java
from kernel.zookeeper import errors
from kernel.zookeeper.counters import read_counters
from kernel.zookeeper.embedded import EmbeddedZooKeeper
from kernel.zookeeper.operations import CheckVersion, Create, Delete, SetData
from kernel.zookeeper.server import SERVER_JARS, jars
from kernel.zookeeper.txnlog import read_ensemble, read_transactions
from tests.support.trace.tracers import ListTracer
from tests.support.zookeeper.sessions import expire, opened


async def some_changes(connect_string, tracer):
    async with opened(connect_string, tracer) as session:
        await session.create("/a", b"\x00\xff not text")
        await session.create("/a/e", b'{"version":1}', ephemeral=True)
        await session.create("/a/null", None)
        await session.set("/a", b"17")
        await session.transaction(Create("/m", b"5"), SetData("/a", b"18"), CheckVersion("/a", 2), Delete("/m"))
        with pytest.raises(errors.BadVersion):
            await session.transaction(Create("/m", b"5"), CheckVersion("/a", 9))
        with pytest.raises(errors.NodeExists):
            await session.create("/a")
        await session.delete("/a/null")
        return session.session_id


def writes_by_namespace(transactions):
    """The counts in `mntr` after these. Anything beyond would be an unrequested change."""
    counted = Counter()
    for transaction in transactions:
        paths = (transaction.path,) if transaction.op in ("create", "delete", "setData") else transaction.removed_paths
        counted.update(path.split("/")[1] for path in paths)
    return dict(counted)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A server that saw `some_changes` and an expired session, and was stopped: its data, session, trace."""
    tracer = ListTracer()

    async def conversation(connect_string):
        session_id = await some_changes(connect_string, tracer)
        async with opened(connect_string) as session:
            await session.create("/x", ephemeral=True)
            await expire(session)
        return session_id

    with EmbeddedZooKeeper(tmp_path_factory.mktemp("log")) as zookeeper:
        session_id = asyncio.run(conversation(zookeeper.connect_string))
        counters = read_counters("127.0.0.1", zookeeper.servers[0].client_port, timeout_s=30)
    data_dir = zookeeper.servers[0].data_dir
    counted = {name: writes for name, (_, writes) in counters.per_namespace.items() if writes}
    assert writes_by_namespace(read_transactions(data_dir)) == counted
    return data_dir, session_id, tracer


def test_every_change_is_read_with_path_data_and_session(stopped):
    data_dir, session_id, _ = stopped
    mine = [txn for txn in read_transactions(data_dir) if txn.session == session_id]
    assert [(txn.op, txn.path, txn.data, txn.ephemeral) for txn in mine] == [
        ("createSession", "", None, False),
        ("create", "/a", b"\x00\xff not text", False),
        ("create", "/a/e", b'{"version":1}', True),
        ("create", "/a/null", None, False),
        ("setData", "/a", b"17", False),
        ("create", "/m", b"5", False),
        ("setData", "/a", b"18", False),
        ("check", "/a", None, False),
        ("delete", "/m", None, False),
        ("error", "", None, False),
        ("error", "", None, False),
        ("delete", "/a/null", None, False),
        ("closeSession", "", None, False),
    ]
    assert mine[-1].removed_paths == ("/a/e",)


def test_zxids_are_those_that_the_trace_has_for_the_writes(stopped):
    data_dir, session_id, tracer = stopped
    logged = sorted({txn.zxid for txn in read_transactions(data_dir) if txn.session == session_id})
    assert [op["zxid"] for op in tracer.of("zk_op")] == logged[1:-1]  # without the session's start and end


def test_log_as_we_read_it_equals_the_output_of_zookeepers_toolkit(stopped):
    data_dir, _, _ = stopped
    (log,) = (data_dir / "version-2").glob("log.*")
    classpath = ":".join(str(jar) for jar in jars(*SERVER_JARS, "commons-cli"))
    printed = subprocess.run(
        [find_java().path, "-cp", classpath, "org.apache.zookeeper.server.persistence.TxnLogToolkit", "-d", log],
        capture_output=True,
        check=True,
        timeout=60,
    ).stdout.decode("utf-8", "replace")
    theirs = re.findall(r"session (0x\w+) cxid (0x\w+) zxid (0x\w+) (\w+)", printed)
    ours = {}
    for txn in read_transactions(data_dir):
        ours.setdefault(txn.zxid, []).append(txn)
    assert [(int(session, 16), int(cxid, 16), int(zxid, 16)) for session, cxid, zxid, _ in theirs] == [
        (txns[0].session, txns[0].cxid, zxid) for zxid, txns in ours.items()
    ]
    for (_, _, _, op), txns in zip(theirs, ours.values(), strict=True):
        assert op == "multi" if len(txns) > 1 or (txns[0].op == "error" and op == "multi") else op == txns[0].op


def test_torn_record_ends_the_log_and_another_file_is_refused(stopped, tmp_path):
    data_dir, _, _ = stopped
    (log,) = (data_dir / "version-2").glob("log.*")
    whole = list(read_transactions(data_dir))
    content = log.read_bytes()
    used = len(content.rstrip(b"\0"))
    (tmp_path / "version-2").mkdir()
    copy = tmp_path / "version-2" / log.name
    for kept in range(used - 60, used):
        copy.write_bytes(content[:kept])
        assert list(read_transactions(tmp_path)) == whole[: len(list(read_transactions(tmp_path)))]
        assert len(list(read_transactions(tmp_path))) < len(whole)
    copy.write_bytes(b"nonsense" * 10)
    with pytest.raises(ValueError, match="not a ZooKeeper transaction log"):
        list(read_transactions(tmp_path))
    copy.unlink()
    with pytest.raises(FileNotFoundError):
        list(read_transactions(tmp_path))


def test_log_of_an_ensemble_is_that_of_most_of_its_servers(stopped, tmp_path):
    data_dir, _, _ = stopped
    (log,) = (data_dir / "version-2").glob("log.*")
    whole = list(read_transactions(data_dir))
    behind = tmp_path / "version-2"
    behind.mkdir()
    content = log.read_bytes()
    (behind / log.name).write_bytes(content[: len(content.rstrip(b"\0")) - 1])
    assert list(read_ensemble([data_dir, data_dir, tmp_path])) == whole
    assert list(read_ensemble([data_dir, tmp_path, tmp_path])) == whole[:-1]
