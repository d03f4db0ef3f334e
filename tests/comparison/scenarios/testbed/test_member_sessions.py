"""Which members may have lost what they believe in, from what they say about their ZooKeeper sessions."""

from __future__ import annotations

from comparison.scenarios.testbed.member_sessions import MemberSessions


def said(sessions: MemberSessions, *words: str, member: str = "g_m1", process: str = "m1") -> None:
    """A member says these: `suspended 1f` of a session, or the kind of an event about a rebalance."""
    for word in words:
        state, _, session = word.partition(" ")
        event = {"process": process, "member": member}
        changed = {"kind": "session_changed", "state": state, "session": session}
        sessions.take(event | (changed if session else {"kind": word}))


def test_a_member_is_unsure_until_its_session_is_connected_again() -> None:
    sessions = MemberSessions(claim=True)
    said(sessions, "connected 1", "suspended 1")
    assert sessions.unsure() == {"m1"}
    said(sessions, "connected 2", member="g_m2", process="m2")
    assert sessions.unsure() == {"m1"}
    said(sessions, "connected 1")
    assert sessions.unsure() == set()


def test_a_member_that_claims_in_its_session_is_unsure_until_it_has_rebalanced_in_a_new_one() -> None:
    sessions = MemberSessions(claim=True)
    said(sessions, "connected 1", "suspended 1", "rebalance_started", "lost 1", "connected 2")
    assert sessions.unsure() == {"m1"}
    said(sessions, "rebalance_ended")
    assert sessions.unsure() == {"m1"}, "that one had begun in the old session"
    said(sessions, "rebalance_started")
    assert sessions.unsure() == {"m1"}
    said(sessions, "rebalance_ended")
    assert sessions.unsure() == set()


def test_a_member_that_loses_its_new_session_too_begins_again() -> None:
    sessions = MemberSessions(claim=True)
    said(sessions, "connected 1", "lost 1", "connected 2", "rebalance_started", "suspended 2", "lost 2")
    said(sessions, "rebalance_ended")
    assert sessions.unsure() == {"m1"}


def test_members_of_a_coordinator_say_themselves_what_they_have_lost() -> None:
    sessions = MemberSessions(claim=False)
    said(sessions, "connected 1", "suspended 1")
    assert sessions.unsure() == {"m1"}
    said(sessions, "lost 1", "connected 2")
    assert sessions.unsure() == set()


def test_a_member_that_has_left_is_sure() -> None:
    sessions = MemberSessions(claim=True)
    said(sessions, "connected 1", "suspended 1", "lost 1", "closed 1")
    assert sessions.unsure() == set()


def test_the_sessions_of_a_process_are_known_by_member() -> None:
    sessions = MemberSessions(claim=True)
    said(sessions, "connected 1f")
    said(sessions, "connected 2f", member="g_other")
    said(sessions, "suspended 1f", "lost 1f", "connected 3f")
    assert sessions.ids == {"m1": {"g_m1": 0x3F, "g_other": 0x2F}}
