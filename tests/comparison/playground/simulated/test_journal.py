"""What was played is given again at its moments, before others of a later one, and once."""

from comparison.playground import commands
from comparison.playground.simulated.journal import Journal

KILL = commands.ActOnMember(action=commands.MemberAction.KILL, member="m1")
ADD, SLOW = commands.AddMembers(count=2), commands.SetRate(per_second=5)
PLAYED = Journal().added(10, KILL).added(20, ADD).added(20, SLOW)


def given(journal: Journal) -> list[tuple[int, commands.GroupCommand]]:
    found = []
    while (at_ns := journal.next_ns) is not None:
        command, journal = journal.taken()
        found.append((at_ns, command))
    return found


def test_what_is_played_now_is_not_given_again() -> None:
    assert given(PLAYED) == []


def test_all_of_it_is_given_again_in_its_order() -> None:
    assert given(PLAYED.again()) == [(10, KILL), (20, ADD), (20, SLOW)]


def test_what_was_played_at_the_moment_that_one_goes_back_to_or_later_is_forgotten() -> None:
    assert given(PLAYED.before(20)) == [(10, KILL)]
    assert given(PLAYED.before(21)) == [(10, KILL), (20, ADD), (20, SLOW)]
    assert given(PLAYED.before(0)) == []


def test_after_a_return_others_may_be_played() -> None:
    _, back = PLAYED.before(20).taken()
    assert given(back.added(15, SLOW).again()) == [(10, KILL), (15, SLOW)]
