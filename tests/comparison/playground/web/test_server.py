"""The playground's server: who is let in, what a page gets, what happens to slow and lost pages."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientSession, ClientTimeout, ServerDisconnectedError
from msgspec.structs import replace

from comparison.playground import commands, messages
from comparison.playground.web.server import BODY_MAX, STREAMS_MAX, serving
from kernel.waiting import until
from tests.comparison.playground.web.staged_game import StagedGame
from tests.support.pages.played_example import RecordedGame, example

FIRST, INCREMENTS = example()
STOP = {"type": "stop"}


@asynccontextmanager
async def visited(game):
    """The server of a game, and a client at the page's address."""
    async with serving(game) as served, ClientSession(served.address, timeout=ClientTimeout(30)) as client:
        yield served, client


@asynccontextmanager
async def staged():
    """A staged game, its server and a client."""
    game = StagedGame(FIRST)
    async with visited(game) as (served, client):
        yield game, served, client
    assert game.watching == 0


async def events(response):
    """(event, id, data) of an event stream."""
    fields = {}
    async for line in response.content:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name:
            fields[name] = value
        elif "event" in fields:
            yield fields["event"], fields.get("id"), json.loads(fields["data"])
            fields = {}


async def first_of(response, count):
    found = []
    async for each in events(response):
        found.append(each)
        if len(found) == count:
            return found
    return found


# -- who is let in -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("", {}, 200),
        ("page.js", {}, 200),
        ("gone.js", {}, 404),
        ("../server.py", {}, 404),
        ("server.py", {}, 404),
        ("", {"Host": "rebound.example"}, 421),
        ("", {"Origin": "http://evil.example"}, 403),
        ("events", {"Sec-Fetch-Site": "cross-site"}, 403),
        ("command", {}, 404),
    ],
)
async def test_every_answer_has_the_headers_that_keep_others_out(path, headers, status):
    async with staged() as (_, served, client), client.get(path, headers=headers) as answer:
        assert answer.status == status
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert "Set-Cookie" not in answer.headers
        assert served.token not in await answer.text()


@pytest.mark.parametrize("path", ["/", "/events", "/{other}/", "/{other}/events", "/%00/"])
async def test_without_the_token_nothing_is_found(path):
    async with staged() as (game, served, client), client.get(path.format(other="x" * len(served.token))) as answer:
        assert answer.status == 404
        assert game.received == 0


async def test_server_listens_on_this_machine_alone():
    async with staged() as (_, served, _):
        assert served.address.startswith("http://127.0.0.1:")
        with socket.socket() as other, pytest.raises(OSError, match="refused"):
            other.connect(("127.0.0.2", served.port))


# -- events ------------------------------------------------------------------------------------------------------------


async def test_page_gets_a_snapshot_and_then_increments_until_the_game_is_over():
    async with visited(RecordedGame(example())) as (_, client), client.get("events") as answer:
        assert answer.content_type == "text/event-stream"
        found = [each async for each in events(answer)]
    assert found[0][0] == "snapshot"
    assert [kind for kind, _, _ in found[1:-1]] == ["increment"] * len(INCREMENTS)
    assert [int(number) for _, number, _ in found[:-1]] == list(range(len(INCREMENTS) + 1))
    assert [each["seq"] for _, _, each in found[:-1]] == list(range(len(INCREMENTS) + 1))
    assert found[-1] == ("over", None, {})


@pytest.mark.parametrize("after", [{"headers": {"Last-Event-ID": "2"}}, {"params": {"after": "2"}}])
async def test_page_that_lost_its_connection_goes_on_where_it_was(after):
    async with staged() as (game, _, client):
        for _ in range(4):
            game.change()
        async with client.get("events", **after) as answer:
            assert [(kind, number) for kind, number, _ in await first_of(answer, 2)] == [
                ("increment", "3"),
                ("increment", "4"),
            ]


@pytest.mark.parametrize("last", ["", "x", "-1", "²", "9" * 400])
async def test_page_with_a_number_that_makes_no_sense_begins_anew(last):
    async with staged() as (_, _, client), client.get("events", headers={"Last-Event-ID": last}) as answer:
        ((kind, number, _),) = await first_of(answer, 1)
        assert (kind, number) == ("snapshot", "0")


async def test_page_that_has_missed_too_much_begins_anew():
    game = StagedGame(FIRST, kept=2)
    for _ in range(9):
        game.change()
    async with visited(game) as (_, client), client.get("events", params={"after": "3"}) as answer:
        ((kind, number, _),) = await first_of(answer, 1)
        assert (kind, number) == ("snapshot", "9")


async def test_pages_are_bounded_and_a_closed_one_makes_room():
    async with staged() as (game, _, client):
        open_ = [await client.get("events") for _ in range(STREAMS_MAX)]
        async with client.get("events") as answer, client.get("ready") as ready:
            assert answer.status == ready.status == 503
            assert await ready.text() == f"{STREAMS_MAX} pages watch this game already: close one of them"
        open_.pop().close()
        await until(lambda: game.watching == STREAMS_MAX - 1, 60, "the stream to close")
        async with client.get("events") as answer:
            assert answer.status == 200
        for each in open_:
            each.close()


async def test_page_that_reads_nothing_is_disconnected_and_gets_the_rest_when_it_returns():
    game = StagedGame(FIRST)
    many = tuple(messages.Znode(path=f"/consumers/lab/{number}", data="x" * 200) for number in range(2000))
    async with serving(game, slow_s=0.2) as served:
        _, writer = await asyncio.open_connection("127.0.0.1", served.port, limit=1)
        writer.write(f"GET /{served.token}/events HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n\r\n".encode())
        await until(lambda: game.watching == 1, 60, "the page to watch")
        for _ in range(40):  # more than the sockets between them hold
            game.change(messages.ZnodesChanged(design="zookeeper", put=many))
        await until(lambda: game.watching == 0, 60, "the slow page to be disconnected")
        writer.close()
        game.change()
        last = {"Last-Event-ID": "40"}
        async with ClientSession(served.address) as client, client.get("events", headers=last) as answer:
            ((kind, number, _),) = await first_of(answer, 1)
            assert (kind, number) == ("increment", "41")


async def test_server_closes_with_the_game_though_pages_watch():
    game = StagedGame(FIRST)
    async with ClientSession() as client:
        async with serving(game) as served:
            answer = await client.get(f"{served.address}events")
            await first_of(answer, 1)
        answer.close()
        assert game.watching == 0
        with pytest.raises((OSError, ServerDisconnectedError)):
            await client.get(f"{served.address}events")


# -- commands ----------------------------------------------------------------------------------------------------------


async def test_command_reaches_the_game_and_its_answer_the_page():
    async with staged() as (game, served, client):
        game.answers = [commands.Answer(accepted=False, reason="m2 is not frozen")]
        command = {"type": "member", "action": "continue", "member": "m2", "designs": ["eager"]}
        own = {"Origin": served.address.rstrip("/").removesuffix(f"/{served.token}")}
        async with client.post("command", json=command, headers=own) as answer:
            assert answer.status == 200
            assert await answer.json() == {"accepted": False, "reason": "m2 is not frozen"}
        assert game.commands == [
            commands.ActOnMember(action=commands.MemberAction.CONTINUE, member="m2", designs=("eager",))
        ]


@pytest.mark.parametrize(
    ("body", "kind", "status", "reason"),
    [
        (b'{"type": "stop"}', "text/plain", 415, "a command is sent as application/json"),
        (b'{"type": "stop"}', "application/x-www-form-urlencoded", 415, "a command is sent as application/json"),
        (b'{"type": "stop", "now": true}', "application/json", 400, "unknown field `now`"),
        (b'{"type": "add-members", "count": 600}', "application/json", 400, "`int` <= 5 - at `$.count`"),
        (b'{"type": "format-disk"}', "application/json", 400, "Invalid value 'format-disk' - at `$.type`"),
        (b"{", "application/json", 400, "this is not a command: Input data was truncated"),
        (b"\xff", "application/json", 400, "this is not a command"),
        (b'"' + b"x" * BODY_MAX + b'"', "application/json", 413, f"a command has at most {BODY_MAX} bytes"),
    ],
)
async def test_what_is_no_command_is_refused_in_words_and_does_nothing(body, kind, status, reason):
    async with staged() as (game, _, client):
        async with client.post("command", data=body, headers={"Content-Type": kind}) as answer:
            assert answer.status == status
            said = await answer.json()
            assert not said["accepted"]
            assert reason in said["reason"]
        assert game.commands == []


@pytest.mark.parametrize(
    "headers", [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}]
)
async def test_command_of_another_page_does_nothing(headers):
    async with staged() as (game, _, client):
        async with client.post("command", json=STOP, headers=headers) as answer:
            assert answer.status == 403
        assert game.commands == []


async def test_command_goes_on_when_its_page_closes():
    game, begun, may_end = StagedGame(FIRST), asyncio.Event(), asyncio.Event()

    async def slowly(command):
        begun.set()
        await may_end.wait()
        game.commands.append(command)
        return commands.Answer(accepted=True)

    game.command = slowly
    async with visited(game) as (_, client):
        sent = asyncio.create_task(client.post("command", json=STOP))
        await begun.wait()
        sent.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sent
        may_end.set()
        await until(lambda: game.commands == [commands.Stop()], 60, "the command to end")


# -- the report --------------------------------------------------------------------------------------------------------


async def test_report_is_served_once_it_is_there(tmp_path):
    path = tmp_path / "report.html"
    async with staged() as (game, _, client):
        for report in ("", str(path)):
            game.now = replace(game.now, report=report)
            async with client.get("report.html") as answer:
                assert answer.status == 404
                assert "there is no report yet" in await answer.text()
        path.write_text("<h1>What was found</h1>")
        async with client.get("report.html") as answer:
            assert answer.status == 200
            assert answer.content_type == "text/html"
            assert "connect-src" not in answer.headers["Content-Security-Policy"]
            assert await answer.text() == "<h1>What was found</h1>"


async def test_scenarios_are_listed_and_kept_by_their_names():
    async with staged() as (game, _, client):
        given = {"name": "played.toml", "designs": ("eager",), "steps": 2, "left_out": 1, "command": "run it"}
        game.saved = [messages.SavedScenario(**given, text="name = 1\n")]
        async with client.get("scenarios") as answer:
            assert await answer.json() == [{**given, "designs": ["eager"], "text": ""}]
        async with client.get("played.toml") as answer:
            assert await answer.text() == "name = 1\n"
            assert answer.headers["Content-Disposition"] == 'attachment; filename="played.toml"'
            assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        for name in ("other.toml", "x/played.toml", "../played.toml"):
            async with client.get(name) as answer:
                assert answer.status == 404
