"""The playground's page in a browser: what it shows, and that it asks nobody but its own server."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from comparison.playground import messages
from kernel.waiting import wait_until
from tests.comparison.playground.web.staged_game import served_game
from tests.support.pages.browser import DESKTOP, PHONE, require_accessible
from tests.support.pages.played_example import example
from tests.support.pages.playground import (
    CUT,
    ENDED,
    HEALED,
    RUNNING,
    TWO_DELIVER,
    WAITING,
    card,
    column,
    example_at,
    opened,
    running_streams,
)

WIDTHS = {"desktop": DESKTOP, "phone": PHONE}


def left_of(page: Any) -> str:
    """Where the lanes have been moved to."""
    return page.locator(".lane-plot > g").first.get_attribute("transform") or ""


def waits_until(page: Any, expression: str) -> None:
    wait_until(lambda: page.evaluate(expression), 60, expression)


# -- as the rest of the product has it -----------------------------------------------------------------------------


def test_the_page_applies_increments_as_python_does(browser: Any) -> None:
    first, increments = example()
    with served_game(example_at(RUNNING)) as game, opened(browser, game.address) as page:
        found = page.evaluate(
            """async (given) => {
                const [now, increments] = JSON.parse(given);
                    const { apply } = await import("./model.js");
                    return [increments.map((each) => apply(now, each)).every(Boolean), now, apply(now, increments[0])];
                }""",
            msgspec.json.encode([first, increments]).decode(),
        )
    assert found == [True, msgspec.json.decode(msgspec.json.encode(example_at(len(increments)))), False]


#: Who delivers each partition, None for one that nobody has had yet; what is to be seen at a glance.
GLANCES = (
    ([], "idle"),
    ([None, None], "idle"),
    ([["m1"], None], "idle"),
    ([["m1"], []], "notice"),
    ([["m1"], ["m2"]], "good"),
    ([["m1"], ["m1", "m2"]], "alarm"),
    ([[], ["m1", "m2"]], "alarm"),
)


def test_the_glance_says_the_worst(browser: Any) -> None:
    groups = [
        {
            "partitions": [
                {"owner": "", "delivered": 0 if each is None else 9, "deliverers": each or []} for each in all_
            ]
        }
        for all_, _ in GLANCES
    ]
    with served_game(example_at(RUNNING)) as game, opened(browser, game.address) as page:
        kinds = page.evaluate(
            """async (groups) => {
                const { glance } = await import("./model.js");
                return groups.map((each) => glance(each).kind);
            }""",
            groups,
        )
    assert kinds == [expected for _, expected in GLANCES]


# -- for everybody -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("width", "scheme", "moment"),
    [
        ("desktop", "light", WAITING),
        ("desktop", "dark", TWO_DELIVER),
        ("phone", "dark", ENDED),
        pytest.param("phone", "light", TWO_DELIVER, marks=pytest.mark.long),
        pytest.param("phone", "dark", WAITING, marks=pytest.mark.long),
        pytest.param("desktop", "light", ENDED, marks=pytest.mark.long),
    ],
)
def test_axe_finds_nothing(browser: Any, width: str, scheme: str, moment: int) -> None:
    with (
        served_game(example_at(moment)) as game,
        opened(browser, game.address, viewport=WIDTHS[width], color_scheme=scheme) as page,
    ):
        page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        for _ in range(2):
            require_accessible(page)
            if moment != ENDED and page.locator("#tour").is_hidden():
                page.keyboard.press("t")
                page.get_by_role("button", name="Begin: Split brain").click()
        assert page.evaluate("document.documentElement.scrollWidth") <= WIDTHS[width]["width"]


def test_reduced_motion_moves_the_lanes_only_when_there_is_news(browser: Any) -> None:
    with served_game(example_at(CUT)) as game, opened(browser, game.address, reduced_motion="reduce") as page:
        waits_until(page, "document.querySelector('.lane-plot > g').hasAttribute('transform')")
        before = left_of(page)
        page.evaluate(
            "new Promise((done) => { let n = 0; const f = () => (++n > 30 ? done() : requestAnimationFrame(f)); f(); })"
        )
        assert left_of(page) == before
        game.change(after_ms=1000)
        waits_until(page, f"document.querySelector('.lane-plot > g').getAttribute('transform') !== '{before}'")


def test_lanes_move_by_themselves_until_they_are_held(browser: Any) -> None:
    with served_game(example_at(CUT)) as game, opened(browser, game.address) as page:
        waits_until(page, "document.querySelector('.lane-plot > g').hasAttribute('transform')")
        page.evaluate(
            """() => {
                window.lefts = new Set();
                const look = () => {
                    lefts.add(document.querySelector('.lane-plot > g').getAttribute('transform'));
                    requestAnimationFrame(look);
                };
                look();
            }"""
        )

        def have_moved() -> bool:
            game.change(after_ms=0)  # without news they stop after a while; news alone moves them to few places
            return bool(page.evaluate("lefts.size > 10"))

        wait_until(have_moved, 60, "the lanes to move", every_s=0.5)
        page.keyboard.press("h")
        assert page.get_by_role("button", name="Pause the lanes", pressed=True).is_visible()
        held = left_of(page)
        game.change(after_ms=1000)
        page.evaluate("new Promise((done) => setTimeout(done, 0))")
        assert left_of(page) == held


def test_hostile_names_stay_text(browser: Any) -> None:
    evil = "</script><img src=x onerror=window.attacked=1>\x1b[2J\u202ereversed"
    game = example_at(WAITING)
    group = game.groups[0]
    hostile = replace(
        group,
        members=(replace(group.members[0], id=evil, ended=evil, delivers=(evil,), state=messages.MemberState.ENDED),),
        partitions=(messages.Partition(name=evil, owner=evil, deliverers=(evil, "m1")),),
        znodes=(messages.Znode(path=f"/consumers/{evil}/ids/x", data=evil),),
        waiting=(messages.Waiting(member=evil, operation=evil, path=evil, step=evil, rows=(99,)),),
        feed=(messages.Sentence(id=1, at_ms=1, severity=messages.Severity.ALARM, text=evil),),
        intervals=(
            messages.Interval(id=1, kind=messages.IntervalKind.DELIVERING, member=evil, partition=evil, from_ms=0),
            messages.Interval(id=2, kind=messages.IntervalKind.FAULT, member=evil, label=evil, from_ms=0),
            messages.Interval(id=3, kind=messages.IntervalKind.PHASE, member="m1", label=evil, from_ms=0),
            messages.Interval(
                id=4, kind=messages.IntervalKind.ACT, member=evil, label=evil, text=evil, from_ms=0, to_ms=0
            ),
        ),
    )
    now = replace(game, reason=evil, run_folder=evil, status=messages.Status.FAILED, groups=(hostile, game.groups[1]))
    with served_game(now) as served, opened(browser, served.address) as page:
        assert page.locator("script").count() == 1
        assert page.locator("img, iframe, object").count() == 0
        assert column(page, "zookeeper").locator(".feed").get_by_text("</script><img").is_visible()
        assert page.evaluate("window.attacked") is None
        content = page.evaluate("document.body.textContent + document.body.outerHTML")
        assert "\x1b" not in content
        assert "\u202e" not in content
        assert "\\u{1b}[2J\\u{202e}reversed" in content


# -- what is seen --------------------------------------------------------------------------------------------------


def test_split_brain_is_seen_at_a_glance(browser: Any) -> None:
    with served_game(example_at(TWO_DELIVER)) as game, opened(browser, game.address) as page:
        zookeeper, eager = column(page, "zookeeper"), column(page, "eager")
        assert (
            "⚠ Split brain: 2 partitions delivered by two members: orders-2 (m1 + m2)"
            in zookeeper.locator(".glance").text_content()
        )
        assert "✓ Each of 6 partitions is delivered by one member" in eager.locator(".glance").text_content()
        assert zookeeper.locator(".lane-plot .both").count() == 2
        assert zookeeper.locator(".on-red", has_text="m1 + m2").count() == 2
        assert zookeeper.locator(".lane-nows .bad").all_text_contents() == ["⚠ m1+m2"] * 2
        assert eager.locator(".lane-plot .both").count() == 0
        assert eager.locator(".lane-plot .gap").count() > 0
        colour = zookeeper.locator(".glance").evaluate("(each) => getComputedStyle(each).backgroundColor")
        assert colour == "rgb(179, 38, 30)"


def test_partition_that_nobody_has_for_long_stays_hatched(browser: Any) -> None:
    now = example_at(RUNNING)
    nobody = messages.Interval(id=1, kind=messages.IntervalKind.NOBODY, member="", partition="t-0", from_ms=5000)
    group = replace(now.groups[0], partitions=(messages.Partition(name="t-0", delivered=9),), intervals=(nobody,))
    with served_game(replace(now, at_ms=150_000, groups=(group,))) as game, opened(browser, game.address) as page:
        gap, plot = page.locator(".lane-plot .gap").bounding_box(), page.locator(".lane-plot").bounding_box()
        assert gap["x"] <= plot["x"]
        assert gap["x"] + gap["width"] >= plot["x"] + plot["width"]
        assert page.locator(".lane-plot .on-gap").text_content() == "nobody"
        assert page.locator(".lane-nows .doubt").text_content() == "nobody"


def test_partition_whose_owner_is_frozen_is_not_hatched(browser: Any) -> None:
    now = example_at(RUNNING)
    still = messages.Interval(id=1, kind=messages.IntervalKind.NOBODY, member="m1", partition="t-0", from_ms=5000)
    partition = messages.Partition(name="t-0", owner="m1", delivered=9, frozen="m1")
    group = replace(now.groups[0], partitions=(partition,), intervals=(still,))
    with served_game(replace(now, at_ms=50_000, groups=(group,))) as game, opened(browser, game.address) as page:
        assert page.locator(".lane-plot .gap").count() == 0
        assert page.locator(".lane-plot .on-gap").text_content() == "m1 is frozen"
        assert page.locator(".lane-nows .doubt").text_content() == "m1 frozen"
        assert "1 partition delivered by nobody: t-0 (m1 is frozen)" in page.locator(".glance").text_content()


def test_times_stay_below_the_lanes_when_there_are_more_of_them(browser: Any) -> None:
    with served_game(example_at(TWO_DELIVER)) as game, opened(browser, game.address) as page:
        before = page.locator(".lane-plot").first.bounding_box()["height"]
        game.change(messages.PartitionChanged(design="zookeeper", partition=messages.Partition(name="orders-6")))
        waits_until(page, f"document.querySelector('.lane-plot').getBoundingClientRect().height > {before}")
        times = column(page, "zookeeper").locator(".lane-plot .at").all()
        assert len(times) > 2
        assert len({each.get_attribute("y") for each in times}) == 1


def test_long_feed_does_not_make_the_page_longer(browser: Any) -> None:
    now = example_at(CUT)
    feed = tuple(
        messages.Sentence(id=n, at_ms=n, severity=messages.Severity.NOTICE, text=f"sentence {n}") for n in range(200)
    )
    groups = tuple(replace(each, feed=feed) for each in now.groups)
    with served_game(replace(now, groups=groups)) as game, opened(browser, game.address) as page:
        size = page.evaluate("[document.documentElement.scrollHeight, document.body.getBoundingClientRect().bottom]")
        assert size[0] <= size[1] + 1


def test_table_says_the_same_as_the_lanes(browser: Any) -> None:
    with served_game(example_at(TWO_DELIVER)) as game, opened(browser, game.address) as page:
        page.get_by_text("As a table").first.click()
        row = column(page, "zookeeper").locator(".lanes tr", has_text="orders-2")
        assert row.locator("td").all_text_contents() == ["m1", "m1 and m2", "400", "380", "300"]


def note_what_lights(page: Any) -> None:
    """Keep the text of whatever lights up in `window.lights`: it goes out again after a moment."""
    page.evaluate(
        """() => {
            window.lights = [];
            const note = (node) => node.nodeType === 1 && node.matches(".lit") && lights.push(node.textContent);
            new MutationObserver((changes) => {
                for (const { target, addedNodes } of changes) {
                    note(target);
                    for (const added of addedNodes) {
                        note(added);
                        added.querySelectorAll?.(".lit").forEach(note);
                    }
                }
            }).observe(document.body, { subtree: true, childList: true, attributeFilter: ["class"] });
        }"""
    )


def test_counters_follow_the_game_and_alarms_stand_out(browser: Any) -> None:
    with served_game(example_at(RUNNING)) as game, opened(browser, game.address) as page:
        reads = column(page, "zookeeper").locator('[data-counter="zk_reads"] dd')
        assert reads.text_content() == "90"
        note_what_lights(page)
        game.change(
            messages.CountersChanged(
                design="zookeeper", counters=messages.Counters(zk_reads=1234, two_delivering_partition_s=2.5)
            )
        )
        waits_until(page, "lights.some((each) => each.includes('1,234'))")
        alarm = column(page, "zookeeper").locator('[data-counter="two_delivering_partition_s"].alarm')
        assert alarm.locator("dd").text_content() == "2.5"


def test_tree_shows_whose_a_znode_is_and_lights_what_changes(browser: Any) -> None:
    with served_game(example_at(RUNNING)) as game, opened(browser, game.address) as page:
        tree = column(page, "zookeeper").locator(".tree")
        assert tree.locator("li", has_text="⚡ lab_m2-0-0").first.locator(".who").text_content() == "m2"
        assert tree.locator(".lit").count() == 0
        note_what_lights(page)
        offset, owner = "/consumers/lab/offsets/orders/0", "/consumers/lab/owners/orders/2"
        put = (messages.Znode(path=offset, data="345", version=1, changed_ms=5000),)
        game.change(messages.ZnodesChanged(design="zookeeper", put=put, gone=(owner,)))
        waits_until(page, "lights.some((each) => each.includes('345'))")
        gone = tree.locator(".gone")
        assert gone.locator(".data").text_content() == "deleted"
        game.change(after_ms=3000)
        waits_until(page, "!document.querySelector('.tree .gone')")


def test_state_machine_lights_the_present_state_and_the_move_to_it(browser: Any) -> None:
    with served_game(example_at(RUNNING)) as game, opened(browser, game.address) as page:
        part = column(page, "eager").locator(".coordinator")
        assert part.locator(".box.now").text_content() == "Stable"
        part.locator(".move").first.wait_for(state="attached")
        now = messages.Coordinator(
            state="PreparingRebalance",
            came_from="Stable",
            since_ms=9000,
            reason="member added",
            generation=1,
            leader="m1",
        )
        game.change(messages.CoordinatorChanged(design="eager", coordinator=now))
        part.locator(".box.now", has_text="PreparingRebalance").wait_for()
        assert "member added" in part.locator(".move.taken").text_content()
        assert part.locator(".facts dd").all_text_contents() == [
            "PreparingRebalance", "1", "m1", "–", "member added (0:09)",
        ]  # fmt: skip


def test_feed_is_a_log_with_the_newest_first(browser: Any) -> None:
    with served_game(example_at(CUT)) as game, opened(browser, game.address) as page:
        log = page.get_by_role("log", name="What happens in zookeeper")
        assert log.get_attribute("aria-live") == "polite"
        assert log.locator("p").count() == 2
        said = messages.Sentence(
            id=999, at_ms=65_000, severity=messages.Severity.ALARM, text="two members deliver orders-2"
        )
        game.change(messages.Said(design="zookeeper", sentence=said))
        log.get_by_text("two members deliver").wait_for()
        assert log.locator("p").first.text_content() == "1:05⚠alarm: two members deliver orders-2"


def test_member_that_joins_gets_a_card_and_one_that_ends_keeps_it(browser: Any) -> None:
    with served_game(example_at(RUNNING)) as game, opened(browser, game.address) as page:
        game.change(
            messages.MemberChanged(design="eager", member=messages.Member(name="m10", process="m10")),
            messages.MemberChanged(design="eager", member=messages.Member(name="m4", process="m4", leads=True)),
            messages.MemberChanged(
                design="eager",
                member=messages.Member(name="m2", process="m2.2", state=messages.MemberState.ENDED, ended="killed"),
            ),
        )
        card(page, "eager", "m10").wait_for()
        names = column(page, "eager").locator(".card .name").all_text_contents()
        assert names == ["m1", "m2.2", "m3", "m4", "m10"]
        assert card(page, "eager", "m2.2").locator(".state").text_content() == "ended: killed"
        assert card(page, "eager", "m4").locator(".leads").text_content() == "leader"


# -- when the connection or the game ends --------------------------------------------------------------------------


def test_page_goes_on_after_its_connection_was_lost(browser: Any) -> None:
    lost = "net::ERR_INCOMPLETE_CHUNKED_ENCODING"
    with served_game(example_at(CUT)) as game, opened(browser, game.address, expected=(lost,)) as page:
        # It is said only until the page has reconnected; meanwhile no button can be pressed.
        page.evaluate(
            """() => {
                const status = document.querySelector("#status");
                window.told = [];
                new MutationObserver(() => told.push([status.textContent, document.querySelector("#stop").disabled]))
                    .observe(status, { childList: true, characterData: true, subtree: true });
            }"""
        )
        game.lose()
        waits_until(page, "told.some(([text]) => text === 'Running')")
        assert page.evaluate("told") == [["The connection to the game is lost", True], ["Running", False]]
        assert page.locator("#ended").is_hidden()
        game.change(messages.RateChanged(design="eager", rate=77))
        column(page, "eager").get_by_text("77 records/s").wait_for()
        assert page.get_by_role("alert").text_content() == ""
        assert game.game.received == 2  # the first snapshot, and the increment that was missed: no second snapshot


def test_page_that_is_one_too_many_says_why_and_comes_in_when_there_is_room(browser: Any) -> None:
    with served_game(example_at(CUT)) as game, running_streams(game.address) as streams:
        context = browser.new_context()
        page = context.new_page()
        page.goto(game.address)
        page.get_by_role("alert").get_by_text("4 pages watch this game already: close one of them").wait_for()
        streams.pop().close()
        page.locator(".card").first.wait_for()
        assert page.get_by_role("alert").text_content() == ""
        context.close()


def test_end_of_the_game_leads_to_its_report(browser: Any, tmp_path: Any) -> None:
    path = tmp_path / "report.html"
    path.write_text("<h1>What was found</h1>")
    with served_game(example_at(HEALED)) as game, opened(browser, game.address) as page:
        end = messages.StatusChanged(
            status=messages.Status.ENDED, reason="stopped on the page", run_folder="runs/x", report=str(path)
        )
        game.change(end)
        game.end()
        page.get_by_role("heading", name="The game is over").wait_for()
        assert page.get_by_role("button", name="Stop and analyse").is_disabled()
        with page.context.expect_page() as report:
            page.get_by_role("link", name="Open its report").click()
        report.value.get_by_role("heading", name="What was found").wait_for()
        assert page.get_by_role("alert").text_content() == ""


@pytest.mark.parametrize("status", [messages.Status.ANALYSING, messages.Status.ENDED, messages.Status.FAILED, None])
def test_when_the_game_is_over_nothing_goes_on_or_can_be_pressed(browser: Any, status: messages.Status | None) -> None:
    now = replace(example_at(TWO_DELIVER), begun=messages.Begun(command="rebalance-lab playground --seed 7"))
    expected = ("net::ERR",)
    with served_game(now) as game, opened(browser, game.address, expected=expected) as page:
        if status is None:  # it is gone without a word
            page.route("**/*", lambda route: route.abort())
            game.lose()
        else:
            report = "a b/r.html" if status is messages.Status.ENDED else ""
            game.change(messages.StatusChanged(status=status, reason="of a test", run_folder="a b", report=report))
        page.locator("#ended").wait_for()
        where = "rebalance-lab analyze 'a b'" if status is messages.Status.FAILED else now.run_folder
        text = {messages.Status.ANALYSING: "a b", messages.Status.ENDED: "a b/r.html"}.get(status, where)
        page.locator("#ended").get_by_text(text, exact=status is not None).first.wait_for()
        if status is not messages.Status.ANALYSING:
            page.locator("#ended").get_by_text("rebalance-lab playground --seed 7").wait_for()
        said = "Last seen: " if status is None else "At the end: "
        assert column(page, "zookeeper").locator(".glance").text_content().startswith(said)
        for name in ("Stop and analyse", "Guided tours", "Pause the lanes"):
            assert page.get_by_role("button", name=name).is_disabled()
        saving = page.get_by_role("button", name="Save as scenario")
        assert saving.is_disabled() == (status in (None, messages.Status.FAILED))  # what answers can be asked
        assert page.locator('.members button:not([aria-disabled="true"])').count() == 0
        page.keyboard.press("t")
        assert page.locator("#tour").is_hidden()
        before = left_of(page)
        page.evaluate(
            "new Promise((done) => { let n = 0; const f = () => (++n > 30 ? done() : requestAnimationFrame(f)); f(); })"
        )
        assert left_of(page) == before
