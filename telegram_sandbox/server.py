"""The HTTP server: /botTOKEN/METHOD and /file/botTOKEN/PATH for bots, /sandbox/... for control, / for people."""

from __future__ import annotations

import asyncio
import errno
import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from aiohttp import web

from telegram_sandbox import running
from telegram_sandbox.bodies import LARGEST_REQUEST
from telegram_sandbox.bot_api import BotApi
from telegram_sandbox.control import Control, as_json
from telegram_sandbox.errors import ApiError, Json, SandboxError
from telegram_sandbox.events import Events
from telegram_sandbox.files import Files, Upload
from telegram_sandbox.guard import HEADERS, LOCAL, foreign, refuses
from telegram_sandbox.journal import Journal
from telegram_sandbox.messages import Messages
from telegram_sandbox.people import People
from telegram_sandbox.request_log import RequestLog
from telegram_sandbox.seed import seed
from telegram_sandbox.views import Views
from telegram_sandbox.world import World

PAGE = Path(__file__).with_name("page")
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
#: Seconds between the signs of life on an event stream.
HEARTBEAT = 15.0
#: What a browser may show by itself; all else is downloaded.
SHOWN = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


class Server:
    def __init__(self, folder: Path, host: str, port: int) -> None:
        """Everything that was known in the folder is known again. SandboxError: another sandbox has it."""
        self.folder, self.host, self.port = folder, host, port
        self.journal = Journal(folder)
        world = World(self.journal)
        seed(world)
        self.log = RequestLog(folder)
        self.log.recover(world.number, world.last_changes, time.time())
        last = max((s["seq"] for kept in world.messages.values() for s in kept.values()), default=0)
        # Far above what any page has seen: a page that was open before knows by it that it must look again.
        events = Events(last + 1_000_000)
        messages, files = Messages(world, events), Files(folder, world)
        self.api = BotApi(world, messages, files, events, self.log)
        people = People(world, messages, files, events, self.api.heard)
        self.control = Control(self.api, people, Views(self.api))
        self.hosts = LOCAL | ({host.lower()} if host not in ("0.0.0.0", "::") else frozenset())  # noqa: S104

    async def serve(self, ready: Callable[[int], None]) -> None:
        """Until SIGTERM or SIGINT; ready(port) is called when connections are accepted."""
        loop = asyncio.get_running_loop()
        stopped = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopped.set)
        server = web.Server(self.handle, access_log=None, request_factory=_large)
        runner = web.ServerRunner(server, shutdown_timeout=0.2)
        await runner.setup()
        try:
            site = web.TCPSite(runner, self.host, self.port, backlog=1024)
            try:
                await site.start()
            except OSError as error:
                why = "it is used by another program" if error.errno == errno.EADDRINUSE else error.strerror
                raise SandboxError(f"cannot listen on {self.host}:{self.port}: {why}; choose another --port") from None
            port = int(runner.addresses[0][1])
            running.tell(self.folder, f"http://{'127.0.0.1' if self.host in ('0.0.0.0', '::') else self.host}:{port}")  # noqa: S104
            ready(port)
            await stopped.wait()
        finally:
            await runner.cleanup()
            running.forget(self.folder)
            self.log.close()
            self.journal.close()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        if path.startswith("/bot"):
            if why := foreign(request):
                return as_json({"error": why}, 403)
            token, slash, name = path[4:].partition("/")
            if slash and name and "/" not in name:
                return await self.api.handle(request, token, name)
            return as_json({"ok": False, "error_code": 404, "description": "Not Found"}, 404)
        if path.startswith("/file/bot"):
            return self._download(path)
        if why := refuses(request, self.hosts):
            return as_json({"error": why}, 403)
        if path.startswith("/sandbox/"):
            return await self._control(request, path.removeprefix("/sandbox/"))
        return self._page(path)

    def _download(self, path: str) -> web.StreamResponse:
        token, _, wanted = path.removeprefix("/file/bot").partition("/")
        try:
            self.api.world.bot_of(token)
        except ApiError as error:
            return as_json({"ok": False, "error_code": error.code, "description": error.description}, error.code)
        facts = self.api.files.at(wanted)
        if facts is None:
            return as_json({"ok": False, "error_code": 404, "description": "Not Found"}, 404)
        return web.Response(
            body=self.api.files.path_of(facts).read_bytes(), headers={"Content-Type": "application/octet-stream"}
        )

    async def _control(self, request: web.BaseRequest, name: str) -> web.StreamResponse:
        try:
            wish: Json = dict(request.query)
            if name == "events":
                return await self._events(request, wish)
            if name.startswith("file/"):
                return self._file(name.removeprefix("file/"))
            if request.method in ("GET", "HEAD"):
                if name not in self.control.reads:
                    return as_json({"error": f"there is no /sandbox/{name} to read"}, 404)
                return as_json(await self.control.read(name, wish))
            if name == "upload":
                return as_json(await self._upload(request, wish))
            if name not in self.control.writes:
                return as_json({"error": f"there is no /sandbox/{name} to post to"}, 404)
            wish.update(await _object(request))
            return as_json(self.control.write(name, wish))
        except SandboxError as error:
            return as_json({"error": str(error)}, 400)
        except (TypeError, ValueError, KeyError) as error:
            return as_json({"error": f"this is not understood: {error}"}, 400)

    async def _upload(self, request: web.BaseRequest, wish: Json) -> Any:
        file: Upload | None = None
        for name, value in (await request.post()).items():
            if isinstance(value, web.FileField):
                file = Upload(value.filename, value.file.read(), value.content_type)
            else:
                wish[name] = value
        if file is None:
            raise SandboxError("there is no file in the request: post a form with a file")
        return self.control.upload(wish, file)

    async def _events(self, request: web.BaseRequest, wish: Json) -> web.StreamResponse:
        """Server-sent events; a page that comes back says with Last-Event-ID what it has seen."""
        events = self.api.events
        seen = int(request.headers.get("Last-Event-ID") or wish.get("after") or events.last)
        stream = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store", **HEADERS}
        )
        await stream.prepare(request)
        await stream.write(b"retry: 500\n\n")
        try:
            while True:
                found = events.after(seen)
                if found is None:
                    seen = events.last
                    await stream.write(f"id: {seen}\nevent: reload\ndata: {{}}\n\n".encode())
                elif found:
                    seen = found[-1]["seq"]
                    lines = (f"id: {e['seq']}\ndata: {json.dumps(e, ensure_ascii=False)}\n\n" for e in found)
                    await stream.write("".join(lines).encode("utf-8", "backslashreplace"))
                else:
                    await events.change(HEARTBEAT)
                    if events.last == seen:
                        await stream.write(b": here\n\n")
        except (ConnectionError, asyncio.CancelledError):
            return stream

    def _file(self, id_: str) -> web.StreamResponse:
        facts = self.api.world.files.get(id_)
        if facts is None:
            return as_json({"error": "there is no such file"}, 404)
        inline, name = facts["type"] in SHOWN, quote(facts["name"], safe="")
        headers = {
            **HEADERS,
            "Content-Security-Policy": "default-src 'none'; sandbox",
            "Content-Type": facts["type"] if inline else "application/octet-stream",
            "Content-Disposition": f"{'inline' if inline else 'attachment'}; filename*=UTF-8''{name}",
            "Cache-Control": "private, max-age=86400, immutable",
        }
        return web.Response(body=self.api.files.path_of(facts).read_bytes(), headers=headers)

    def _page(self, path: str) -> web.StreamResponse:
        name = "index.html" if path == "/" else path.removeprefix("/page/")
        file = PAGE / name
        if "/" in name or not file.is_file() or file.suffix not in TYPES:
            return as_json({"error": "there is no such page; the chat is at /"}, 404)
        headers = {**HEADERS, "Cache-Control": "no-cache"}
        return web.Response(body=file.read_bytes(), headers=headers, content_type=TYPES[file.suffix], charset="utf-8")


def _large(*arguments: Any) -> web.BaseRequest:
    message, payload, protocol, writer, task = arguments
    return web.BaseRequest(
        message, payload, protocol, writer, task, asyncio.get_running_loop(), client_max_size=LARGEST_REQUEST
    )


async def _object(request: web.BaseRequest) -> Json:
    if request.content_type not in ("application/json", "application/octet-stream"):
        # A form of another page could be posted without asking; JSON cannot.
        raise SandboxError("post a JSON object, with Content-Type: application/json")
    body = await request.read()
    if not body.strip():
        return {}
    try:
        value = json.loads(body)
    except ValueError:
        raise SandboxError("the body is no JSON") from None
    if not isinstance(value, dict):
        raise SandboxError("the body is no JSON object")
    return value
