"""One request of a bot, from the token to the answer: limits, faults, the method, the log, in this order."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import struct
import time
from typing import Any

from aiohttp import web

from telegram_sandbox.bodies import fetch_named_files, parameters_of
from telegram_sandbox.chats import Chat, find_chat
from telegram_sandbox.errors import ApiError, Json, no_such_method, too_many_requests
from telegram_sandbox.events import Events
from telegram_sandbox.faults import Fault, Faults
from telegram_sandbox.files import Files
from telegram_sandbox.messages import Messages
from telegram_sandbox.methods import METHODS, Call
from telegram_sandbox.parameters import Parameters
from telegram_sandbox.polling import Polling, webhook
from telegram_sandbox.rates import Rates
from telegram_sandbox.request_log import RequestLog, digest, stamp
from telegram_sandbox.world import World

POLLING = {
    "getupdates": "getUpdates",
    "getwebhookinfo": "getWebhookInfo",
    "deletewebhook": "deleteWebhook",
    "setwebhook": "setWebhook",
}
_log = logging.getLogger(__name__)

BAD_GATEWAY = (
    "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n"
    "<center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>nginx/1.18.0</center>\r\n</body>\r\n</html>\r\n"
)


class BotApi:
    def __init__(self, world: World, messages: Messages, files: Files, events: Events, log: RequestLog) -> None:
        self.world = world
        self.messages = messages
        self.files = files
        self.events = events
        self.log = log
        self.rates = Rates()
        self.faults = Faults()
        self.polling = Polling(world)
        #: Seconds that every answer takes at least.
        self.latency = 0.0
        #: Requests are numbered in the order in which they took effect.
        self.number = max(world.number, log.last_number())
        #: When each bot was heard last (seconds since the epoch).
        self.heard: dict[int, float] = {}

    async def handle(self, request: web.BaseRequest, token: str, name: str) -> web.StreamResponse:
        began = time.time()
        entry: Json = {**stamp(began), "n": None, "bot": None, "method": name[:64]}
        bot_id = token.partition(":")[0]
        if bot_id.isdigit() and len(bot_id) < 20:
            entry["bot"] = int(bot_id)
        try:
            bot = self.world.bot_of(token)
            self._greet(bot)
            parameters = await parameters_of(request)
            if self.latency:
                await asyncio.sleep(self.latency / 2)
            wanted = name.lower()
            if wanted in METHODS:
                entry["method"] = METHODS[wanted][0]
                if parameters.uploads or wanted in ("sendphoto", "senddocument", "editmessagemedia"):
                    await fetch_named_files(parameters)
                return await self._limited(request, bot, wanted, parameters, entry)
            if wanted not in POLLING:
                raise no_such_method()
            entry["method"] = POLLING[wanted]
            return await self._poll(request, bot, wanted, parameters, entry)
        except ApiError as error:
            _tell(entry, error)
            if _gone(request):
                # A bot that stops leaves its last poll behind, and its next request ends it.
                entry["outcome"] = "gone"
            self._write(entry)
            return await self._answer(request, _refusal(error), error.code)
        except Exception as error:
            # A mistake of ours: the bot hears of it as of any broken server, whoever reads the log hears more.
            entry.update({"outcome": "broken", "code": 500, "description": repr(error)})
            self._write(entry)
            _log.exception("%s of bot %s failed", entry["method"], entry["bot"])
            return await self._answer(request, _refusal(ApiError(500, "Internal Server Error")), 500)

    async def _limited(
        self, request: web.BaseRequest, bot: Json, wanted: str, parameters: Parameters, entry: Json
    ) -> web.StreamResponse:
        named = parameters.values.get("chat_id")
        chat = self._known_chat(bot["id"], named)
        if named is not None:
            entry["chat"] = chat.id if chat else named
        paid = parameters.flag("allow_paid_broadcast")
        refusal = self.rates.take(
            bot["id"], wanted, chat.id if chat else None, chat.kind if chat else None, paid, time.monotonic()
        )
        if refusal is not None:
            entry["limit"] = refusal.scope
            entry.update(digest(_words(parameters)))
            if refusal.inside:
                entry["inside_retry_after"] = True
            raise too_many_requests(refusal.retry_after)
        names = (chat.id if chat else None, named)
        fault = self.faults.draw(wanted, names, bot["id"]) if self.faults.orders else None
        if fault is not None:
            return await self._go_wrong(request, fault, bot, wanted, parameters, entry, chat)
        status, body = self._carry_out(bot, wanted, parameters, entry)
        self._write(entry)
        return await self._answer(request, body, status)

    def _carry_out(self, bot: Json, wanted: str, parameters: Parameters, entry: Json) -> tuple[int, Json]:
        """Without a pause from the first check to the journal: a kill leaves all of it or nothing."""
        call = Call(self.world, self.messages, self.files, self.events, bot, parameters)
        try:
            result: Any = METHODS[wanted][1](call)
        except ApiError as error:
            _tell(entry, error)
            entry["stored"] = False
            entry.update(digest(call.text))
            return error.code, _refusal(error)
        self.number += 1
        entry["n"] = self.number
        self.world.commit(self.number)
        entry["outcome"] = "ok"
        entry["stored"] = call.stored
        if call.touched:
            entry["message_id"] = call.touched[0]
        entry.update(digest(call.text))
        return 200, {"ok": True, "result": result}

    async def _go_wrong(
        self,
        request: web.BaseRequest,
        fault: Fault,
        bot: Json,
        wanted: str,
        parameters: Parameters,
        entry: Json,
        chat: Chat | None,
    ) -> web.StreamResponse:
        entry["fault"] = fault.kind
        if fault.kind == "slow" and not fault.stored:
            await asyncio.sleep(fault.seconds)
        status, body = 200, dict[str, Any]()
        if fault.stored or fault.kind == "slow":
            status, body = self._carry_out(bot, wanted, parameters, entry)
        else:
            entry["stored"] = False
            entry.update(digest(_words(parameters)))
        seen = {"502": "html", "cut": "cut", "reset_before": "reset", "reset_after": "reset", "hang": "none"}
        if fault.kind == "429":
            held = None if fault.scope == "bot" or chat is None else chat.id
            self.rates.hold(bot["id"], held, wanted, fault.retry_after, time.monotonic())
            raise too_many_requests(fault.retry_after)
        if fault.kind == "500":
            error = ApiError(500, "Internal Server Error")
            _tell(entry, error)
            status, body = 500, _refusal(error)
        elif fault.kind in seen:
            entry["outcome"] = seen[fault.kind]
        self._write(entry)
        if fault.kind == "slow" and fault.stored:
            await asyncio.sleep(fault.seconds)
        if fault.kind == "502":
            return web.Response(status=502, text=BAD_GATEWAY, content_type="text/html")
        if fault.kind == "cut":
            whole_body = json.dumps(body)
            return web.Response(status=status, text=whole_body[: len(whole_body) // 2], content_type="application/json")
        if fault.kind in ("reset_before", "reset_after"):
            return _reset(request)
        if fault.kind == "hang":
            return await _silence(request)
        return await self._answer(request, body, status)

    async def _poll(
        self, request: web.BaseRequest, bot: Json, wanted: str, parameters: Parameters, entry: Json
    ) -> web.StreamResponse:
        fault = self.faults.draw(wanted, (), bot["id"]) if self.faults.orders else None
        if fault is not None:
            if fault.kind not in ("slow",):
                return await self._go_wrong(request, fault, bot, wanted, parameters, entry, None)
            entry["fault"] = fault.kind
            await asyncio.sleep(fault.seconds)
        if wanted == "getupdates":
            result: Any = await self.polling.updates(bot["id"], parameters, self.world.commit)
            entry["updates"] = [update["update_id"] for update in result]
            if _gone(request):
                entry["outcome"] = "gone"
                self._write(entry)
                return web.Response()
        else:
            if parameters.flag("drop_pending_updates"):
                self.world.confirm(bot["id"], 2**62)
                self.world.commit()
            result = webhook(wanted, parameters, len(self.world.updates.get(bot["id"], {})))
        entry["outcome"] = "ok"
        self._write(entry)
        return await self._answer(request, {"ok": True, "result": result}, 200)

    async def _answer(self, request: web.BaseRequest, body: Json, status: int) -> web.Response:
        if self.latency:
            await asyncio.sleep(self.latency / 2)
        headers = None
        if status == 429:
            headers = {"Retry-After": str(body["parameters"]["retry_after"])}
        return web.Response(
            status=status,
            body=json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace"),
            content_type="application/json",
            headers=headers,
        )

    def _write(self, entry: Json) -> None:
        if entry["n"] is None:
            self.number += 1
            entry["n"] = self.number
        entry["ms"] = round((time.time() - entry["at"]) * 1000, 1)
        self.log.write(entry)

    def _greet(self, bot: Json) -> None:
        if bot["id"] not in self.heard:
            self.world.commit()
            self.events.publish("bot", bot=bot["id"])
        self.heard[bot["id"]] = time.time()

    def _known_chat(self, bot: int, named: Any) -> Chat | None:
        try:
            return find_chat(self.world, bot, named)
        except ApiError:
            return None


def _gone(request: web.BaseRequest) -> bool:
    return request.transport is None or request.transport.is_closing()


def _words(parameters: Parameters) -> str | None:
    """Of a call that is not carried out."""
    return parameters.text("text") or parameters.text("caption") or None


def _tell(entry: Json, error: ApiError) -> None:
    entry.update({"outcome": "error", "code": error.code, "description": error.description})
    entry.setdefault("stored", False)
    if error.parameters:
        entry.update(error.parameters)


def _refusal(error: ApiError) -> Json:
    body: Json = {"ok": False, "error_code": error.code, "description": error.description}
    if error.parameters:
        body["parameters"] = error.parameters
    return body


def _reset(request: web.BaseRequest) -> web.Response:
    """The connection breaks as if the machine behind it had died: RST, not FIN."""
    transport = request.transport
    if transport is not None:
        connection = transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    return web.Response()


async def _silence(request: web.BaseRequest) -> web.Response:
    """Until the client has enough."""
    while not _gone(request):  # noqa: ASYNC110 -- aiohttp tells nobody
        await asyncio.sleep(0.2)
    return web.Response()
