"""The playground's web server: one page, its events, its commands; on this machine only, and as long as the game.

    async with serving(game) as served:
        print(served.address)

The page gets the game as server-sent events: a snapshot, then increments, each under its number. A page that lost its
connection says the last number that it has (`Last-Event-ID`), and goes on after it. A page that reads too slowly is
disconnected; it then comes back for what it has missed.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec
from aiohttp import web

from comparison.playground.commands import Answer, AnyCommand
from comparison.playground.messages import Increment, Snapshot
from comparison.playground.web.files import page_files
from comparison.playground.web.guard import HEADERS, REPORT_POLICY, new_token, refusal
from kernel.decimals import decimal

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping

    from comparison.playground.messages import Game

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

HOST = "127.0.0.1"
#: A browser opens six connections to a server at most: two are left for commands and files.
STREAMS_MAX = 4
BODY_MAX = 4096
#: Commands that the game has not answered yet.
COMMANDS_MAX = 16
#: A page that has not taken an event after this time is disconnected.
SLOW_S = 10.0
#: How soon a page comes back that has lost its connection.
RETRY_MS = 1000
JSON = "application/json"
TOML = ".toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Where the playground is."""

    port: int
    token: str

    @property
    def address(self) -> str:
        """What the user opens. Who has it can play."""
        return f"http://{HOST}:{self.port}/{self.token}/"


class PlaygroundServer:
    """Handles the requests of the game's pages."""

    def __init__(self, game: Game, token: str, *, slow_s: float) -> None:
        self._game, self.token, self._slow_s = game, token, slow_s
        self._files = page_files()
        self._streams: set[asyncio.Task[object]] = set()
        self._commands: set[asyncio.Task[Answer]] = set()
        self._handlers: Mapping[tuple[str, str], Handler] = {
            ("GET", "events"): self._events,
            ("GET", "ready"): self._ready,
            ("GET", "report.html"): self._report,
            ("GET", "scenarios"): self._scenarios,
            ("POST", "command"): self._command,
        }

    def application(self) -> web.Application:
        app = web.Application(client_max_size=BODY_MAX)
        # One route for everything: no request passes by the guard.
        app.router.add_route("*", "/{path:.*}", self._answer)
        app.on_shutdown.append(self._close_streams)
        return app

    async def _close_streams(self, _: web.Application) -> None:
        for stream in list(self._streams):
            stream.cancel()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        """Refuse strangers, find who answers the others, and give every answer its headers."""
        given, _, name = request.path.removeprefix("/").partition("/")
        port = request.transport.get_extra_info("sockname")[1] if request.transport else 0
        refused = refusal(request.headers, given=given, token=self.token, port=port)
        if refused is not None:
            return web.Response(status=refused.status, text=refused.reason, headers=HEADERS)
        response = await self._handlers.get((request.method, name), self._file)(request)
        if not response.prepared:
            for header, value in HEADERS.items():
                response.headers.setdefault(header, value)
        return response

    async def _file(self, request: web.Request) -> web.Response:
        """A file of the page, which stands alone after the token."""
        name = request.path.rpartition("/")[2]
        if name.endswith(TOML) and request.method == "GET" and request.path.count("/") == 2:
            return self._scenario(name)
        found = self._files.get(name)
        if found is None or request.method != "GET" or request.path.count("/") != 2:
            return web.Response(status=404, text="the playground has no such page")
        return web.Response(body=found.content, content_type=found.type, charset="utf-8")

    async def _report(self, _: web.Request) -> web.StreamResponse:
        path = self._game.snapshot().report
        if not path or not await asyncio.to_thread(Path(path).is_file):
            return web.Response(status=404, text="there is no report yet: stop the game, and wait for its analysis")
        return web.FileResponse(path, headers={"Content-Security-Policy": REPORT_POLICY})

    async def _scenarios(self, _: web.Request) -> web.Response:
        """What was played as scenarios, without their texts."""
        said = [{**msgspec.structs.asdict(each), "text": ""} for each in self._game.scenarios()]
        return web.Response(body=msgspec.json.encode(said), content_type=JSON)

    def _scenario(self, name: str) -> web.Response:
        """One of them, to be kept by the browser."""
        found = next((each for each in self._game.scenarios() if each.name == name), None)
        if found is None:
            return web.Response(status=404, text="nothing was played that would be this scenario")
        headers = {"Content-Disposition": f'attachment; filename="{found.name}"'}
        return web.Response(text=found.text, content_type="application/toml", charset="utf-8", headers=headers)

    # -- events --------------------------------------------------------------------------------------------------------

    async def _ready(self, _: web.Request) -> web.Response:
        """Whether one more page may watch; a browser does not show why its event stream was refused."""
        return self._full() or web.Response(text="ready")

    def _full(self) -> web.Response | None:
        if len(self._streams) < STREAMS_MAX:
            return None
        return web.Response(status=503, text=f"{STREAMS_MAX} pages watch this game already: close one of them")

    async def _events(self, request: web.Request) -> web.StreamResponse:
        full = self._full()
        if full is not None:
            return full
        last = request.headers.get("Last-Event-ID") or request.query.get("after")
        after = decimal(last) if last else None
        response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream; charset=utf-8"})
        stream = asyncio.current_task()
        assert stream is not None
        self._streams.add(stream)
        try:
            await self._follow(request, response, after)
        finally:
            self._streams.discard(stream)
        return response

    async def _follow(self, request: web.Request, response: web.StreamResponse, after: int | None) -> None:
        """Send events until the game is over, or the page is gone or too slow."""
        await response.prepare(request)
        # A game's iteration is an asynchronous generator: it has to be closed when the page is gone.
        items = cast("AsyncGenerator[Snapshot | Increment]", self._game.subscribe(after))
        try:
            async with aclosing(items):
                await self._send(response, f"retry: {RETRY_MS}\n\n".encode())
                async for item in items:
                    kind = b"snapshot" if isinstance(item, Snapshot) else b"increment"
                    text = msgspec.json.encode(item)
                    await self._send(response, b"id: %d\nevent: %s\ndata: %s\n\n" % (item.seq, kind, text))
                await self._send(response, b"event: over\ndata: {}\n\n")
        except ConnectionError:
            return
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()

    async def _send(self, response: web.StreamResponse, event: bytes) -> None:
        async with asyncio.timeout(self._slow_s):
            await response.write(event)

    # -- commands ------------------------------------------------------------------------------------------------------

    async def _command(self, request: web.Request) -> web.Response:
        """A command as JSON; answered with an `Answer`, whether it was understood or not."""
        if request.content_type != JSON:
            return _refused(415, f"a command is sent as {JSON}")
        if len(self._commands) >= COMMANDS_MAX:
            return _refused(429, f"{COMMANDS_MAX} commands are not answered yet: wait for them")
        try:
            command = msgspec.json.decode(await request.read(), type=AnyCommand)
        except web.HTTPRequestEntityTooLarge:
            return _refused(413, f"a command has at most {BODY_MAX} bytes")
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return _refused(400, f"this is not a command: {error}")
        # A page that closes must not interrupt what it has begun.
        given = asyncio.create_task(self._game.command(command))
        self._commands.add(given)
        given.add_done_callback(self._commands.discard)
        return _answered(200, await asyncio.shield(given))


def _refused(status: int, reason: str) -> web.Response:
    return _answered(status, Answer(accepted=False, reason=reason))


def _answered(status: int, answer: Answer) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(answer), content_type=JSON)


@asynccontextmanager
async def serving(game: Game, *, port: int = 0, slow_s: float = SLOW_S) -> AsyncIterator[Served]:
    """Serve a game's page, on any free port if `port` is 0, until the context ends.

    Raises OSError if the port is taken. Each game has a token of its own, which keeps pages of earlier ones away.
    """
    served = PlaygroundServer(game, new_token(), slow_s=slow_s)
    app = served.application()
    runner = web.AppRunner(app, access_log=None, handle_signals=False, handler_cancellation=True, shutdown_timeout=2)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, port).start()
        yield Served(port=runner.addresses[0][1], token=served.token)
    finally:
        await runner.cleanup()
