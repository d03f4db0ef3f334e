"""The playground's page with few designs and many: what has its place, what is marked, and what stays in sight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from comparison.playground import commands, messages
from comparison.playground.commands import MemberAction as Action
from kernel.designs import DESIGNS
from kernel.waiting import wait_until
from tests.comparison.playground.web.staged_game import served_game
from tests.support.pages.browser import PHONE, require_accessible
from tests.support.pages.playground import CUT, HEALED, RUNNING, TWO_DELIVER, WAITING, card, column, example_at, opened

LAPTOP, LARGE = {"width": 1440, "height": 900}, {"width": 1920, "height": 1080}
#: The changes of the example between a member that is cut off, and two that deliver.
OVERLAP = example_at(TWO_DELIVER)


def of_all(moment: int, designs: Sequence[str] = tuple(DESIGNS)) -> messages.Snapshot:
    """The example in many designs: those with a coordinator are as eager."""
    now = example_at(moment)
    groups = tuple(replace(now.groups[int(DESIGNS[design].coordinator)], design=design) for design in designs)
    return replace(now, groups=groups)


def listed(page: Any, selector: str) -> Any:
    return page.evaluate(f"[...document.querySelectorAll('{selector}')].map((each) => each.dataset.design)")


def shown(page: Any) -> list[str]:
    found: list[str] = listed(page, ".group")
    return found


def strips(page: Any) -> list[str]:
    found: list[str] = listed(page, ".strip")
    return found


# -- which designs are shown ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [LAPTOP, LARGE], ids=["laptop", "large"])
def test_two_of_many_designs_are_shown_and_a_strip_for_each_other_one(browser: Any, size: dict[str, int]) -> None:
    with served_game(of_all(TWO_DELIVER)) as game, opened(browser, game.address, viewport=size) as page:
        first, second, *others = DESIGNS
        assert (shown(page), strips(page)) == ([first, second], others)
        lanes = [each.bounding_box() for each in page.locator(".lane-plot").all()]
        assert len(lanes) == 2
        assert lanes[0]["y"] == lanes[1]["y"]
        assert lanes[0]["height"] == lanes[1]["height"]
        assert all(each["y"] + each["height"] <= size["height"] for each in lanes), "the lanes fit"
        for taken, place in ((others[-1], 0), (others[0], 1), (first, 0)):
            before = shown(page)
            page.get_by_role("button", name=f"Show {taken} in full").click()
            before[place] = taken
            assert shown(page) == before
            assert strips(page) == [each for each in DESIGNS if each not in before]
            assert page.evaluate("document.activeElement.textContent") == taken
            assert column(page, taken).locator(".card").count() == 3


def test_strip_says_how_much_is_delivered_its_counters_and_what_is_wrong(browser: Any) -> None:
    designs = ("eager", "static", "zookeeper", "delayed")
    with served_game(of_all(TWO_DELIVER, designs)) as game, opened(browser, game.address) as page:
        alarm, calm = (page.locator(f'.strip[data-design="{each}"]') for each in ("zookeeper", "delayed"))
        assert alarm.locator(".strip-said").text_content() == "⚠ 2: two deliver"
        assert alarm.locator(".both").count() == 2
        assert alarm.locator('[data-counter="two_delivering_partition_s"] dd').text_content() == "18.0"
        assert calm.locator(".strip-said").text_content() == "✓"
        said = "Partitions delivered over the window: 100 % now, 67 % at least"
        assert calm.get_by_role("img", name=said).is_visible(), "two of six partitions were nobody's for a while"
        nobody = replace(game.game.now.groups[3].partitions[0], deliverers=())
        game.change(messages.PartitionChanged(design="delayed", partition=nobody))
        calm.get_by_text("▨ 1: nobody delivers").wait_for()


def test_commands_for_every_design_go_to_those_in_strips_too(browser: Any) -> None:
    with served_game(of_all(RUNNING)) as game, opened(browser, game.address) as page:
        card(page, "zookeeper", "m2").get_by_role("button", name="Kill: m2 in all 7 designs", exact=True).click()
        wait_until(lambda: game.game.commands, 60, "the command")
        assert game.game.commands == [commands.ActOnMember(action=Action.KILL, member="m2")]


def test_phone_shows_one_of_three_designs_and_switches(browser: Any) -> None:
    designs = ("zookeeper", "eager", "static")
    with served_game(of_all(CUT, designs)) as game, opened(browser, game.address, viewport=PHONE) as page:
        assert shown(page) == ["zookeeper"]
        page.get_by_role("button", name="Show static in full").click()
        assert (shown(page), strips(page)) == (["static"], ["zookeeper", "eager"])
        page.set_viewport_size(LAPTOP)
        wait_until(lambda: len(shown(page)) == 2, 60, "two designs")
        page.set_viewport_size(PHONE)
        wait_until(lambda: shown(page) == ["static"], 60, "the one that was chosen")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_shares_are_those_of_partitions_with_somebody(browser: Any) -> None:
    intervals = [
        {"kind": "delivering", "partition": partition, "from_ms": from_ms, "to_ms": to_ms}
        for partition, from_ms, to_ms in (("a", 0, 40), ("a", 30, 60), ("b", 20, None), ("c", 90, 95), ("a", 80, 200))
    ]
    with served_game(example_at(RUNNING)) as game, opened(browser, game.address) as page:
        found = page.evaluate(
            """async (given) => (await import("./shares.js")).shares(given, 10, 100).map(Object.values)""", intervals
        )
    assert [[each[0], each[1], each[2]] for each in found] == [
        [10, 20, 1], [20, 40, 2], [40, 60, 2], [60, 80, 1], [80, 90, 2], [90, 95, 3], [95, 100, 2],
    ]  # fmt: skip


def test_counters_are_at_the_same_places_and_say_why_one_has_no_value(browser: Any) -> None:
    with served_game(example_at(RUNNING)) as game, opened(browser, game.address) as page:
        found = [
            [each.get_attribute("data-counter") for each in column(page, design).locator("[data-counter]").all()]
            for design in ("zookeeper", "eager")
        ]
        assert found[0] == found[1]
        reads = column(page, "eager").locator('[data-counter="zk_reads"]')
        why = "its members do not use ZooKeeper; the brokers do"
        assert reads.locator("dd").text_content() == f"–none: {why}"
        assert reads.get_attribute("title") == why


@pytest.mark.parametrize(
    ("size", "scheme", "moment"), [(LAPTOP, "light", WAITING), (PHONE, "dark", TWO_DELIVER)], ids=["laptop", "phone"]
)
def test_axe_finds_nothing_beside_strips(browser: Any, size: dict[str, int], scheme: str, moment: int) -> None:
    now = replace(of_all(moment), reason="stopped on the page", run_folder="runs/x" * 60, scenarios=("played.toml",))
    with (
        served_game(replace(now, status=messages.Status.ENDED)) as game,
        opened(browser, game.address, viewport=size, color_scheme=scheme, bypass_csp=True) as page,
    ):
        page.locator("#ended").wait_for()
        require_accessible(page)


# -- what has its place --------------------------------------------------------------------------------------------


PLACES = """() => [...document.querySelectorAll("header *, .strip, main button, .lane-plot, .glance, .card, .feed, h2")]
    .filter((each) => !each.closest("#ended"))
    .map((each) => { const { x, y, width, height } = each.getBoundingClientRect(); return [x, y, width, height]; })"""


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_nothing_moves_when_members_overlap_or_banners_appear(browser: Any, size: dict[str, int]) -> None:
    lost = "net::ERR_INCOMPLETE_CHUNKED_ENCODING"
    with (
        served_game(of_all(CUT, ("zookeeper", "eager", "static"))) as game,
        opened(browser, game.address, viewport=size, expected=(lost,)) as page,
    ):
        before = page.evaluate(PLACES)
        changes = [
            change
            for old, new in zip(example_at(CUT).groups, OVERLAP.groups, strict=True)
            for design in {"zookeeper": ("zookeeper",), "eager": ("eager", "static")}[old.design]
            for change in (
                *(messages.PartitionChanged(design=design, partition=each) for each in new.partitions),
                *(messages.IntervalChanged(design=design, interval=each) for each in new.intervals),
                *(messages.Said(design=design, sentence=each) for each in new.feed[len(old.feed) :]),
                messages.CountersChanged(design=design, counters=new.counters),
            )
        ]
        game.change(*changes, after_ms=8000)
        page.locator('.glance[data-kind="alarm"]').wait_for()
        assert page.locator(".lane-plot .both").count() == 2
        assert page.evaluate(PLACES) == before
        page.evaluate(
            "document.querySelector('#connection').textContent = 'The connection is lost. ' + 'x '.repeat(99)"
        )
        assert page.evaluate(PLACES) == before
        end = messages.StatusChanged(
            status=messages.Status.ENDED, reason="stopped on the page", run_folder="runs/x" * 40, report="report.html"
        )
        game.change(end)
        page.get_by_role("link", name="Open its report").wait_for()
        assert page.evaluate(PLACES) == before


def test_step_panel_stays_in_sight_and_shows_the_row_without_taking_the_focus(browser: Any) -> None:
    rows = tuple(
        messages.StepRow(step=f"R{n}", phase="claim", does="does something", requests="create x") for n in range(40)
    )
    now = example_at(HEALED)
    zookeeper = replace(now.groups[0], table=rows)
    first = replace(example_at(WAITING).groups[0].waiting[0], rows=(2,))
    with (
        served_game(replace(now, groups=(zookeeper, now.groups[1]))) as game,
        opened(browser, game.address, viewport=LAPTOP) as page,
    ):
        panel = column(page, "zookeeper").locator(".steps")
        assert panel.is_hidden()
        page.get_by_role("button", name="Keys").focus()
        for waiting in (first, replace(first, member="m1", since_ms=first.since_ms + 100, rows=(33,))):
            game.change(messages.WaitingChanged(design="zookeeper", waiting=(waiting,)))
            panel.get_by_text(f"{waiting.member} waits before").wait_for()
            for top in (0, 10_000):
                page.evaluate(f"scrollTo(0, {top})")
                box = panel.bounding_box()
                assert box["y"] >= 0
                assert box["y"] + box["height"] <= LAPTOP["height"]
            page.evaluate("scrollTo(0, 0)")
            row, scroll = (panel.locator(each).bounding_box() for each in ("[aria-current]", ".scroll"))
            assert scroll["y"] <= row["y"]
            assert row["y"] + row["height"] <= scroll["y"] + scroll["height"] + 1
            assert page.evaluate("document.activeElement.textContent") == "Keys"


def test_key_lets_a_member_go_that_waits_in_a_strip_and_tours_take_their_designs(browser: Any) -> None:
    now = of_all(WAITING, ("static", "consumer", "zookeeper", "eager"))
    with served_game(now) as game, opened(browser, game.address) as page:
        assert page.locator('.strip[data-design="zookeeper"]').get_by_text("1 member waiting").is_visible()
        page.keyboard.press("n")
        wait_until(lambda: game.game.commands, 60, "the command")
        assert game.game.commands == [commands.LetGo(member="m3", designs=("zookeeper",))]
        page.keyboard.press("t")
        page.get_by_role("button", name="Begin: Split brain").click()
        game.change()
        wait_until(lambda: set(shown(page)) == {"zookeeper", "eager"}, 60, "the designs of the tour")


# -- what is marked ------------------------------------------------------------------------------------------------


def test_marks_have_shapes_words_and_a_list(browser: Any) -> None:
    with served_game(example_at(HEALED)) as game, opened(browser, game.address, viewport=LAPTOP) as page:
        zookeeper = column(page, "zookeeper")
        words = zookeeper.locator(".mark-words")
        cut, heal = zookeeper.locator(".lane-plot .mark").all()
        assert [each.locator("text").text_content() for each in (cut, heal)] == ["cut m2", "heal m2"]
        shapes = {each.locator(".sign").get_attribute("d") for each in (cut, heal)}
        assert len(shapes) == 2
        cut.locator(".sign").hover(force=True)
        assert words.text_content() == "0:12 m2 is cut off from its authority"
        page.mouse.move(0, 0)
        assert words.text_content().startswith("Point at a mark")
        heal.focus()
        assert words.text_content() == "0:25 m2 reaches its authority again"
        page.keyboard.press("ArrowLeft")
        assert words.text_content() == "0:12 m2 is cut off from its authority"
        assert [each.get_attribute("tabindex") for each in (cut, heal)] == ["0", "-1"]
        zookeeper.get_by_text("What was done").click()
        assert zookeeper.locator(".acts li").all_text_contents() == [
            "0:25 m2 reaches its authority again",
            "0:12 m2 is cut off from its authority",
        ]


def test_marks_that_are_close_keep_their_shapes_and_lose_their_letters(browser: Any) -> None:
    now = example_at(RUNNING)
    acts = tuple(
        messages.Interval(
            id=900 + n, kind=messages.IntervalKind.ACT, member=f"m{n}", label="kill", style="begin",
            text=f"m{n} was killed", from_ms=2000 + 20 * n, to_ms=2000 + 20 * n,
        )
        for n in range(5)
    )  # fmt: skip
    group = replace(now.groups[1], intervals=(*now.groups[1].intervals, *acts))
    with served_game(replace(now, groups=(group,))) as game, opened(browser, game.address) as page:
        marks = page.locator(".lane-plot .mark")
        assert marks.count() == 5
        assert marks.locator("text").all_text_contents() == ["", "", "", "", "kill m4"]


def test_legend_names_bars_marks_and_phases_and_folds_in_all_columns(browser: Any) -> None:
    with served_game(example_at(CUT)) as game, opened(browser, game.address, viewport=LAPTOP) as page:
        legends = page.locator(".legend")
        for text in ("above: whom ZooKeeper names", "hatched: nobody", "red: several at once", "backoff"):
            assert legends.first.get_by_text(text).is_visible()
        legends.first.locator("summary").click()
        wait_until(lambda: page.locator(".legend[open]").count() == 0, 60, "both to be folded")
        legends.last.locator("summary").click()
        wait_until(lambda: page.locator(".legend[open]").count() == 2, 60, "both to be open")


# -- what there is room for ----------------------------------------------------------------------------------------


def test_buttons_say_beforehand_how_many_there_is_room_for(browser: Any) -> None:
    now = example_at(RUNNING)
    with (
        served_game(replace(now, limits=replace(now.limits, members=5, partitions=6))) as game,
        opened(browser, game.address) as page,
    ):
        eager = column(page, "eager")
        room = "Add five in zookeeper and eager, where there is room for 2 more"
        assert eager.get_by_role("button", name=room).is_enabled()
        full = "Add 2 partitions in zookeeper and eager: no more, the most is 6 partitions"
        eager.get_by_role("button", name=full, disabled=True).click(force=True)
        assert game.game.commands == []
        for n in (4, 5):
            member = messages.Member(name=f"m{n}", process=f"m{n}")
            game.change(messages.MemberChanged(design="eager", member=member))
        eager.get_by_text("5 of at most 5 members, 6 of at most 6 partitions: the group is full").wait_for()
        for name in ("Add one", "Add five"):
            button = eager.get_by_role("button", name=f"{name} in zookeeper and eager: no more, the most is 5 members")
            button.click(force=True)
        assert game.game.commands == []
        for name in ("m1", "m5"):  # only the place of one that was added is free again
            member = messages.Member(name=name, process=name, state=messages.MemberState.ENDED)
            game.change(messages.MemberChanged(design="eager", member=member))
        eager.get_by_text("4 of at most 5 members").wait_for()
        eager.get_by_role("button", name="Add one in zookeeper and eager, where there is room for 1 more").click()
        wait_until(lambda: bool(game.game.commands), 60, lambda: "the command")
