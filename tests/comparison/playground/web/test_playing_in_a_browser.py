"""Playing in a browser: every button and key sends what it says, and tours guide."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from comparison.playground import commands, messages
from comparison.playground.commands import MemberAction as Action
from kernel.waiting import wait_until
from tests.comparison.playground.web.staged_game import sent, served_game
from tests.support.pages.playground import CUT, HEALED, RUNNING, TWO_DELIVER, WAITING, card, column, example_at, opened

State = messages.MemberState
#: What can be done in each state; the states of `MemberAction`.
POSSIBLE = {
    State.PENDING: {Action.KILL},
    State.RUNNING: {Action.LEAVE, Action.KILL, Action.FREEZE, Action.CUT, Action.SLOW},
    State.FROZEN: {Action.CONTINUE, Action.KILL},
    State.CUT: {Action.KILL, Action.HEAL, Action.SLOW},
    State.ENDED: {Action.START},
}
LABELS = {
    Action.START: "Start",
    Action.LEAVE: "Leave",
    Action.KILL: "Kill",
    Action.FREEZE: "Freeze",
    Action.CONTINUE: "Continue",
    Action.CUT: "Cut off",
    Action.HEAL: "Heal",
    Action.SLOW: "Slow",
}


def with_state(state: messages.MemberState) -> messages.Snapshot:
    """The running example, m2 of eager in another state."""
    now = example_at(RUNNING)
    members = tuple(replace(each, state=state) if each.name == "m2" else each for each in now.groups[1].members)
    return replace(now, groups=(now.groups[0], replace(now.groups[1], members=members)))


# -- members -------------------------------------------------------------------------------------------------------


def test_a_card_offers_what_can_be_done_in_its_members_state(browser: Any) -> None:
    with served_game(example_at(RUNNING)) as game, opened(browser, game.address) as page:
        offered = card(page, "eager", "m2").locator('.buttons button:not([aria-disabled="true"])')
        for state, possible in POSSIBLE.items():
            game.begin_again(with_state(state))
            labels = {LABELS[each] for each in possible}
            wait_until(lambda labels=labels: set(offered.all_text_contents()) == labels, 60, f"{labels} in {state}")
            for button in offered.all():
                button.click()
            delays = {Action.SLOW: 200}
            order = [each for each in LABELS if each in possible]
            sent(
                game, *(commands.ActOnMember(action=each, member="m2", delay_ms=delays.get(each, 0)) for each in order)
            )


def test_what_cannot_be_done_now_does_nothing_and_keeps_the_focus(browser: Any) -> None:
    with served_game(example_at(RUNNING)) as game, opened(browser, game.address) as page:
        freeze = card(page, "eager", "m2").get_by_role("button", name="Freeze: m2")
        freeze.focus()
        page.keyboard.press("Enter")
        sent(game, commands.ActOnMember(action=Action.FREEZE, member="m2"))
        game.change(
            messages.MemberChanged(design="eager", member=messages.Member(name="m2", process="m2", state=State.FROZEN))
        )
        card(page, "eager", "m2").get_by_role("button", name="Continue: m2").wait_for()
        assert page.evaluate("document.activeElement.textContent") == "Continue"
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Shift+Tab")
        assert page.evaluate("document.activeElement.textContent") == "Leave"
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        page.keyboard.press(" ")
        sent(game, commands.ActOnMember(action=Action.KILL, member="m2"))


def test_slow_member_gets_its_full_speed_back(browser: Any) -> None:
    with served_game(example_at(RUNNING)) as game, opened(browser, game.address) as page:
        slow = messages.Member(name="m1", process="m1", state=State.RUNNING, delay_ms=200)
        game.change(messages.MemberChanged(design="eager", member=slow))
        card(page, "eager", "m1").get_by_role("button", name="Full speed: m1").click()
        sent(game, commands.ActOnMember(action=Action.SLOW, member="m1", delay_ms=0))


def test_a_button_acts_in_every_design_or_in_its_column_alone(browser: Any) -> None:
    with served_game(example_at(RUNNING)) as game, opened(browser, game.address) as page:
        alone = page.get_by_label("their column")
        for choose in (alone.check, lambda: page.keyboard.press("b")):
            card(page, "eager", "m2").get_by_role("button", name="Kill: m2 in zookeeper and eager", exact=True).click()
            sent(game, commands.ActOnMember(action=Action.KILL, member="m2"))
            choose()
            column(page, "eager").get_by_role("button", name="Kill: m2 in eager").click()
            sent(game, commands.ActOnMember(action=Action.KILL, member="m2", designs=("eager",)))
            page.get_by_label("every design").check()


@pytest.mark.parametrize(
    "fields",
    [
        {"status": messages.Status.STARTING},
        {"status": messages.Status.ENDED},
        {"simulation": messages.Simulation(seed=7, time=messages.TimeState.FORMING)},
        {"simulation": messages.Simulation(seed=7, time=messages.TimeState.REPLAYING, until_ms=60_000)},
    ],
)
def test_nothing_can_be_done_while_the_groups_take_no_commands(browser: Any, fields: dict[str, Any]) -> None:
    now = replace(example_at(WAITING), **fields)
    with served_game(now) as game, opened(browser, game.address) as page:
        buttons = ":is(.members, .steps) button, #time:not([hidden]) #next-event"
        assert page.locator(buttons).and_(page.locator(':not([aria-disabled="true"])')).count() == 0
        for button in column(page, "zookeeper").locator(":is(.members, .steps) button").all():
            button.click(force=True)
        page.keyboard.press("n")
        page.keyboard.press("e")
        assert game.game.commands == []


# -- the group -----------------------------------------------------------------------------------------------------


#: What each button of a group sends.
OF_THE_GROUP = {
    "Add one": commands.AddMembers(count=1),
    "Add five": commands.AddMembers(count=5),
    "Add 2 partitions": commands.AddPartitions(count=2),
    "Faster": commands.SetRate(per_second=200),
    "Slower": commands.SetRate(per_second=100),
}


def test_the_groups_buttons_act_on_all_of_it(browser: Any) -> None:
    with served_game(example_at(RUNNING)) as game, opened(browser, game.address) as page:
        group = column(page, "zookeeper")
        for button, command in OF_THE_GROUP.items():
            group.get_by_role("button", name=button).click()
            sent(game, command)
        page.get_by_label("their column").check()
        for button, command in OF_THE_GROUP.items():
            group.get_by_role("button", name=f"{button} in zookeeper").click()
            sent(game, replace(command, designs=("zookeeper",)))


def test_rate_stays_within_the_games_limits(browser: Any) -> None:
    with served_game(example_at(RUNNING)) as game, opened(browser, game.address) as page:
        eager = column(page, "eager")
        for rate, button in ((1000, "Faster"), (0, "Slower")):
            game.change(messages.RateChanged(design="eager", rate=rate))
            eager.get_by_text(f"{rate} records/s", exact=True).wait_for()
            eager.get_by_role("button", name=button, disabled=True).click(force=True)
        eager.get_by_role("button", name="Faster", disabled=False).click()
        sent(game, commands.SetRate(per_second=10))


def test_refusal_is_said_in_the_games_words(browser: Any) -> None:
    with served_game(example_at(RUNNING)) as game, opened(browser, game.address) as page:
        said = page.locator("#said")
        game.game.answers = [
            commands.Answer(accepted=False, reason="the group has 12 members; the maximum is 12"),
            commands.Answer(accepted=True, reason="eager: m2 is frozen"),
        ]
        add = column(page, "eager").get_by_role("button", name="Add one")
        add.click()
        said.get_by_text("Refused: add one member. the group has 12 members; the maximum is 12").wait_for()
        assert said.get_attribute("role") == "status"
        add.click()
        said.get_by_text("Sent: add one member. eager: m2 is frozen").wait_for()


def test_game_that_is_gone_is_said_to_be(browser: Any) -> None:
    with served_game(example_at(RUNNING)) as game, opened(browser, game.address, expected=("net::",)) as page:
        page.route("**/command", lambda route: route.abort())
        column(page, "eager").get_by_role("button", name="Add one").click()
        page.locator("#said").get_by_text("the game does not answer: look at its terminal").wait_for()


# -- step by step --------------------------------------------------------------------------------------------------


def test_member_is_stepped_in_its_own_design_and_shows_its_row(browser: Any) -> None:
    with served_game(example_at(RUNNING)) as game, opened(browser, game.address) as page:
        assert card(page, "eager", "m3").get_by_role("button", name="Step by step: m3").count() == 0
        card(page, "zookeeper", "m3").get_by_role("button", name="Step by step: m3").click()
        sent(game, commands.SetStepping(member="m3", on=True, designs=("zookeeper",)))
        stepped = messages.Member(name="m3", process="m3", state=State.RUNNING, stepping=True)
        waiting = example_at(WAITING).groups[0].waiting
        game.change(
            messages.MemberChanged(design="zookeeper", member=stepped),
            messages.WaitingChanged(design="zookeeper", waiting=waiting),
        )
        steps = column(page, "zookeeper").locator(".steps")
        steps.get_by_text(
            "m3 waits before delete /consumers/lab/owners/orders/4 (R5), 1 more operation queued"
        ).wait_for()
        assert steps.locator('[aria-current="step"]').locator("th").text_content() == "R5"
        assert steps.locator('[aria-current="step"]').is_visible()
        page.keyboard.press("n")
        sent(game, commands.LetGo(member="m3", designs=("zookeeper",)))
        game.change(messages.WaitingChanged(design="zookeeper"))
        wait_until(lambda: steps.locator("[aria-current]").count() == 0, 60, "no row to be marked")
        page.keyboard.press("n")
        card(page, "zookeeper", "m3").get_by_role("button", name="Step by step: m3", pressed=True).click()
        sent(game, commands.SetStepping(member="m3", on=False, designs=("zookeeper",)))


def test_each_waiting_member_is_let_go_and_the_key_takes_the_one_that_waits_longest(browser: Any) -> None:
    now = example_at(WAITING)
    (one,) = now.groups[0].waiting
    two = (one, replace(one, member="m1", since_ms=one.since_ms - 500))
    with (
        served_game(replace(now, groups=(replace(now.groups[0], waiting=two), now.groups[1]))) as game,
        opened(browser, game.address) as page,
    ):
        page.keyboard.press("n")
        page.get_by_role("button", name="Let m3 go").click()
        designs = ("zookeeper",)
        sent(game, commands.LetGo(member="m1", designs=designs), commands.LetGo(member="m3", designs=designs))


# -- tours ---------------------------------------------------------------------------------------------------------


RESTORE = commands.Restore(designs=("zookeeper", "eager"), members_min=3)


def test_tour_brings_the_groups_back_does_says_where_to_look_and_ticks_what_is_seen(browser: Any) -> None:
    with served_game(example_at(RUNNING)) as game, opened(browser, game.address) as page:
        tour = page.get_by_role("region", name="Guided tour")
        page.get_by_role("button", name="Guided tours").click()
        tour.get_by_role("button", name="Begin: Split brain").click()
        sent(game, RESTORE)
        tour.get_by_role("heading", name="Split brain: 1 of 3").wait_for()
        assert column(page, "eager").locator(".lanes.looked-at").count() == 1
        tour.get_by_role("button", name="Next").click()
        assert page.evaluate("document.activeElement.textContent") == "Split brain: 2 of 3"
        cut = tour.get_by_role("button", name="Cut m2 off")
        cut.click()
        sent(game, commands.ActOnMember(action=Action.CUT, member="m2", designs=("zookeeper", "eager")))
        tour.get_by_text("… waiting: two members deliver one partition in zookeeper").wait_for()
        for button in ("Cut m2 off", "Next"):
            tour.get_by_role("button", name=button, disabled=True).click(force=True)
        assert tour.get_by_role("heading", name="Split brain: 2 of 3").is_visible(), "it waits for what is to be seen"
        for number in (2, 3):
            partition = messages.Partition(name=f"orders-{number}", owner="m1", deliverers=("m1", "m2"))
            game.change(messages.PartitionChanged(design="zookeeper", partition=partition), after_ms=2000)
        tour.get_by_text("✓ two members deliver one partition in zookeeper").wait_for()
        assert tour.get_by_text("… waiting: the partitions of m2 have new owners in eager").is_visible()
        for number in (2, 3):
            partition = messages.Partition(name=f"orders-{number}", owner="m1", deliverers=("m1",))
            game.change(messages.PartitionChanged(design="eager", partition=partition))
        wait_until(lambda: tour.locator(".seen li", has_text="✓").count() == 4, 60, "all to be seen")
        tour.get_by_role("button", name="Next").click()
        tour.get_by_role("button", name="Heal m2").click()
        sent(game, commands.ActOnMember(action=Action.HEAL, member="m2", designs=("zookeeper", "eager")))
        tour.get_by_role("button", name="Close").click()
        assert tour.count() == 0
        assert page.locator(".looked-at").count() == 0


def test_tour_waits_for_its_groups_and_restarts_a_member_where_one_has_given_up(browser: Any) -> None:
    nobody = messages.PartitionChanged(design="zookeeper", partition=messages.Partition(name="orders-0", owner="m1"))
    with served_game(example_at(RUNNING)) as game, opened(browser, game.address) as page:
        game.change(nobody)
        column(page, "zookeeper").locator('.glance[data-kind="notice"]').wait_for()
        page.keyboard.press("t")
        tour = page.get_by_role("region", name="Guided tour")
        tour.get_by_role("button", name="Begin: The herd").click()
        sent(game, RESTORE)
        tour.get_by_text("The groups are being brought back to how they began").wait_for()
        page.get_by_role("button", name="Guided tours", exact=True).click()
        tour.get_by_role("button", name="Begin: The herd").click()
        sent(game, RESTORE)
        game.change(after_ms=21_000)
        sent(game, commands.ActOnMember(action=Action.RESTART, member="m3", designs=("zookeeper",)))
        whole = messages.Partition(name="orders-0", owner="m1", deliverers=("m1",))
        game.change(messages.PartitionChanged(design="zookeeper", partition=whole))
        tour.get_by_role("heading", name="The herd: 1 of 4").wait_for()


@pytest.mark.parametrize(
    ("most", "said"),
    [
        (5, "It adds 6 members, and there is room for 2: it does with these."),
        (3, "It adds members, and 3 are the most that a group can have here: begin with fewer (--members)."),
    ],
)
def test_tour_says_beforehand_what_there_is_no_room_for(browser: Any, most: int, said: str) -> None:
    now = replace(example_at(RUNNING), limits=messages.Limits(members=most))
    with served_game(now) as game, opened(browser, game.address) as page:
        page.keyboard.press("t")
        tour = page.get_by_role("region", name="Guided tour")
        tour.get_by_text(said).first.wait_for()
        assert tour.get_by_role("button", name="Begin: The herd").count() == int(most > 3)
        assert tour.get_by_role("button", name="Begin: Split brain").count() == 1


def test_tour_of_designs_that_do_not_run_says_what_to_start(browser: Any) -> None:
    with served_game(example_at(RUNNING)) as game, opened(browser, game.address) as page:
        page.keyboard.press("t")
        tour = page.get_by_role("region", name="Guided tour")
        assert tour.get_by_role("listitem").count() == 6
        assert tour.get_by_role("button", name="Begin").count() == 4
        assert tour.get_by_text("rebalance-lab playground --design eager,static").is_visible()
        page.keyboard.press("t")
        assert tour.count() == 0


def test_tours_that_are_asked_for_before_they_have_arrived_open_when_they_do(browser: Any) -> None:
    with served_game(example_at(RUNNING)) as game, opened(browser, game.address) as page:
        held: list[Any] = []

        def hold(route: Any) -> None:
            held.append(route)

        page.route("**/tours.json", hold)
        page.reload()
        page.locator(".card").first.wait_for()
        page.keyboard.press("t")
        assert page.locator("#tour").is_hidden()
        held[0].continue_()
        page.get_by_role("region", name="Guided tour").get_by_role("heading", name="Guided tours").wait_for()


def test_refused_step_of_a_tour_waits_for_nothing(browser: Any) -> None:
    with served_game(example_at(RUNNING)) as game, opened(browser, game.address) as page:
        restored, refused = commands.Answer(accepted=True), commands.Answer(accepted=False, reason="m2 has ended")
        game.game.answers = [restored, refused]
        page.keyboard.press("t")
        page.get_by_role("button", name="Begin: The zombie commit").click()
        page.get_by_role("button", name="Freeze m2").first.click()
        page.locator("#said").get_by_text("m2 has ended").wait_for()
        assert page.locator("#tour").get_by_text("waiting").count() == 0


# -- stopping, and keys --------------------------------------------------------------------------------------------


def test_game_is_stopped_only_after_a_question(browser: Any) -> None:
    with served_game(example_at(HEALED)) as game, opened(browser, game.address) as page:
        stop = page.get_by_role("button", name="Stop and analyse")
        for answer in ("Keep playing", "Stop and analyse"):
            stop.click()
            page.get_by_role("dialog").get_by_role("button", name=answer).click()
        stop.click()
        page.keyboard.press("Escape")
        sent(game, commands.Stop())


def test_keys_are_listed_and_can_be_turned_off(browser: Any) -> None:
    with served_game(example_at(WAITING)) as game, opened(browser, game.address) as page:
        page.keyboard.press("?")
        keys = page.get_by_role("dialog", name="Keys")
        assert keys.locator("kbd").all_text_contents() == ["n", "b", "h", "t", "?"]
        page.keyboard.press("n")
        keys.get_by_label("Keys are on").uncheck()
        keys.get_by_role("button", name="Close").click()
        page.keyboard.press("n")
        page.keyboard.press("t")
        assert page.get_by_role("region", name="Guided tour").count() == 0
        page.get_by_role("button", name="Let m3 go").click()
        sent(game, commands.LetGo(member="m3", designs=("zookeeper",)))


def test_lanes_show_as_much_time_as_is_chosen(browser: Any) -> None:
    with served_game(example_at(TWO_DELIVER)) as game, opened(browser, game.address) as page:
        bar = column(page, "zookeeper").locator(".lane-plot .both").first
        page.keyboard.press("h")
        before = bar.bounding_box()["width"]
        page.get_by_label("Lanes show").select_option("30 s")
        assert bar.bounding_box()["width"] > 1.5 * before


def test_every_control_is_reached_by_the_tab_key(browser: Any) -> None:
    with served_game(example_at(CUT)) as game, opened(browser, game.address) as page:
        every = page.evaluate(
            "[...document.querySelectorAll('button, select, summary')].filter((each) => each.checkVisibility()).length"
        )
        page.evaluate("window.reached = new Set()")
        for _ in range(every + 20):
            page.keyboard.press("Tab")
            page.evaluate("window.reached.add(document.activeElement)")
        assert page.evaluate("[...reached].filter((each) => each.matches('button, select, summary')).length") == every
