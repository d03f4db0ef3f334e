"""Kafka's paths, parsing them, and chroots."""

from __future__ import annotations

import pytest

from kernel.zookeeper import errors, paths
from kernel.zookeeper.chroot import ensure_chroot, split_chroot
from tests.support.trace.tracers import ListTracer
from tests.support.zookeeper.sessions import opened


def test_paths_are_kafkas():
    assert paths.broker(3) == "/brokers/ids/3"
    assert paths.partition_state("t", 0) == "/brokers/topics/t/partitions/0/state"
    assert paths.member_id("g", "g_c1") == "/consumers/g/ids/g_c1"
    assert paths.owner("g", "t", 7) == "/consumers/g/owners/t/7"
    assert paths.offset("g", "t", 7) == "/consumers/g/offsets/t/7"
    assert (paths.parent("/a/b"), paths.parent("/a"), paths.parent("/")) == ("/a", "/", "/")
    assert paths.name("/a/b") == "b"


def test_path_is_parsed_only_by_its_own_parser():
    assert paths.parse_owner(paths.owner("g", "t", 7)) == ("g", "t", 7)
    assert paths.parse_offset(paths.offset("g", "t", 7)) == ("g", "t", 7)
    assert paths.parse_member_id(paths.member_id("g", "c")) == ("g", "c")
    for path in ("/", "/consumers", "/consumers/g/owners/t", "/consumers/g/owners/t/x", "/a/consumers/g/owners/t/1"):
        assert paths.parse_owner(path) is None
        assert paths.parse_offset(path) is None
        assert paths.parse_member_id(path) is None


@pytest.mark.parametrize(
    ("connect_string", "parts"), [("h:1", ("h:1", "")), ("h:1,i:2/a/b/", ("h:1,i:2", "/a/b")), ("h:1/", ("h:1", ""))]
)
def test_chroot_is_separated_from_the_servers(connect_string, parts):
    assert split_chroot(connect_string) == parts


async def test_paths_are_valid_if_zookeeper_takes_them(chroot):
    names = ["a", "a b", "a/b", "...", "ü", "\ud7ff", "\uf900", "\uffef"]
    names += ["", ".", "..", "a/", "/a", "a//b", "a/../b", "a\0b", "a\x01", "a\n", "a\x1f", "\x7f", "\x9f"]
    names += ["\ue000", "\uf8ff", "\ufff0", "\uffff", "\U0001f600"]

    async def taken(session, name):
        try:
            await session.create(f"/n/{name}", makepath=True)
        except (errors.OperationRefused, errors.NodeExists, errors.NoNode):
            return False
        return True

    async with opened(chroot) as session:
        await session.ensure_path("/n")
        assert {name: paths.is_valid(f"/n/{name}") for name in names} == {
            name: await taken(session, name) for name in names
        }


async def test_a_missing_chroot_is_created_once_and_an_existing_one_costs_a_read(zookeeper, chroot):
    tracer = ListTracer()
    below = f"{chroot}/some/where"
    async with opened(below) as session:
        with pytest.raises(errors.NoNode):
            await session.create("/n")
    for _ in range(2):
        await ensure_chroot(below, tracer=tracer, name="chroot", connection_timeout_ms=30_000)
    await ensure_chroot(zookeeper.connect_string, tracer=tracer, name="chroot", connection_timeout_ms=30_000)
    async with opened(below) as session:
        await session.create("/n")
    assert [(op["op"], op["error"]) for op in tracer.of("zk_op")] == [
        ("exists", "NoNode"),
        ("create", "NoNode"),
        ("create", None),
        ("create", None),
        ("exists", None),
    ]
