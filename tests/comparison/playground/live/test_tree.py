"""Changes of a group's znodes, from readings of the whole tree."""

from __future__ import annotations

from comparison.playground.live.tree import DATA_MAX, Seen, Tree


def node(data: str = "", *, written: int = 1, created: int = 1) -> Seen:
    return Seen(data, version=0, ephemeral=False, created=created, written=written)


def test_only_what_changed_is_given_out() -> None:
    tree = Tree()
    tree.see(100, {"/a": node("1"), "/b": node("2")})
    put, gone = tree.drained()
    assert ([each.path for each in put], gone) == (["/a", "/b"], ())
    tree.see(200, {"/a": node("1"), "/b": node("3", written=2)})
    put, gone = tree.drained()
    assert ([(each.path, each.data, each.changed_ms) for each in put], gone) == ([("/b", "3", 200)], ())
    tree.see(300, {"/b": node("3", written=2)})
    assert tree.drained() == ((), ("/a",))
    assert tree.drained() == ((), ())


def test_a_znode_that_was_deleted_and_created_again_between_two_readings_has_changed() -> None:
    tree = Tree()
    tree.see(100, {"/owner": node("m1")})
    tree.drained()
    tree.see(200, {"/owner": node("m1", created=9, written=9)})
    put, _ = tree.drained()
    assert [each.changed_ms for each in put] == [200]


def test_a_znode_that_comes_back_before_its_end_was_told_is_not_gone() -> None:
    tree = Tree()
    tree.see(100, {"/a": node()})
    tree.drained()
    tree.see(200, {})
    tree.see(300, {"/a": node(created=2, written=2)})
    put, gone = tree.drained()
    assert ([each.path for each in put], gone) == (["/a"], ())


def test_long_data_is_cut() -> None:
    tree = Tree()
    tree.see(1, {"/a": node("x" * 1000)})
    ((only,), _) = tree.drained()
    assert len(only.data) == DATA_MAX
