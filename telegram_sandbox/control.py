"""The control API, /sandbox/NAME: what people do, faults and limits, the log. JSON both ways."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from telegram_sandbox import faults, request_log
from telegram_sandbox.bot_api import BotApi
from telegram_sandbox.chats import Chat
from telegram_sandbox.errors import Json, SandboxError
from telegram_sandbox.files import Upload
from telegram_sandbox.people import People
from telegram_sandbox.request_log import stamp
from telegram_sandbox.views import Views

Verb = Callable[[Json], Any]

#: Seconds that a call may wait for something to happen.
LONGEST_WAIT = 60.0


class Control:
    def __init__(self, api: BotApi, people: People, views: Views) -> None:
        self.api = api
        self.world = api.world
        self.people = people
        self.views = views
        self.reads: dict[str, Verb | Callable[[Json], Awaitable[Any]]] = {
            "health": lambda wish: {"ok": True},
            "state": self.state,
            "messages": self.messages,
            "answers": self.answers,
            "changes": self.changes,
            "log": self.log,
            "faults": lambda wish: [faults.shown(order) for order in api.faults.orders],
            "limits": lambda wish: api.rates.shown(),
            "latency": lambda wish: {"seconds": api.latency},
            "bots": lambda wish: [self.views.bot(bot) for bot in self.world.bots.values()],
            "users": lambda wish: list(self.world.users.values()),
        }
        self.writes: dict[str, Verb] = {
            "say": self.say,
            "press": self.press,
            "start": self.start,
            "forward": self.forward,
            "block": lambda wish: self.block(wish, True),
            "unblock": lambda wish: self.block(wish, False),
            "deactivate": self.deactivate,
            "join": lambda wish: self.member(wish, "member"),
            "leave": lambda wish: self.member(wish, "left"),
            "kick": lambda wish: self.member(wish, "kicked"),
            "promote": lambda wish: self.member(wish, "administrator"),
            "chats": self.new_chat,
            "users": self.new_user,
            "upgrade": self.upgrade,
            "bots": self.change_bot,
            "faults": lambda wish: faults.shown(api.faults.order(wish)),
            "faults/clear": lambda wish: {"cleared": api.faults.clear(wish.get("id"))},
            "limits": self.limits,
            "latency": self.latency,
        }

    async def read(self, name: str, wish: Json) -> Any:
        answer = self.reads[name](wish)
        return await answer if isinstance(answer, Awaitable) else answer

    def write(self, name: str, wish: Json) -> Any:
        answer = self.writes[name](wish)
        self.world.commit()
        return answer

    # -- reading

    def state(self, wish: Json) -> Json:
        return self.views.state(self.people.user(wish.get("as", "admin")))

    def messages(self, wish: Json) -> Json:
        _, chat = self._where(wish)
        return self.views.messages(chat, int(wish.get("limit", 100)), int(wish.get("before", 2**62)))

    async def answers(self, wish: Json) -> Json:
        """What bots said in this chat after `after`, and what they answered to presses: waits for the first of it."""
        user, chat = self._where(wish)
        after = int(wish.get("after", self.api.events.last))
        ends = asyncio.get_running_loop().time() + min(float(wish.get("wait", 0)), LONGEST_WAIT)
        while True:
            found = self.views.of_bots(self.api.events.after(after), chat, user)
            left = ends - asyncio.get_running_loop().time()
            if found or left <= 0:
                return {"seq": self.api.events.last, "events": found}
            await self.api.events.change(left)

    async def changes(self, wish: Json) -> Json:
        after = int(wish.get("after", self.api.events.last))
        if self.api.events.last <= after:
            await self.api.events.change(min(float(wish.get("wait", 0)), LONGEST_WAIT))
        return {"seq": self.api.events.last, "events": self.api.events.after(after)}

    async def log(self, wish: Json) -> list[Json]:
        limit = int(wish.pop("limit", 1000))
        wanted = {key: _plain(value) for key, value in wish.items()}
        return await asyncio.to_thread(request_log.read, self.api.log.path, wanted, limit)

    # -- people

    def _where(self, wish: Json) -> tuple[Json, Chat]:
        user = self.people.user(wish.get("as", "admin"))
        return user, self.people.chat(user, wish.get("chat"), wish.get("bot"))

    def _did(self, wish: Json, deed: str, facts: Json, text: str | None = None) -> None:
        """People's deeds are in the log too, between the requests that answer them."""
        entry = {**stamp(time.time()), "user": facts.pop("user"), "did": deed, **facts}
        self.api.log.write({**entry, **request_log.digest(text)})

    def say(self, wish: Json) -> Json:
        user, chat = self._where(wish)
        after = self.api.events.last
        message = self.people.say(user, chat, _text(wish, "text"), _number(wish, "reply_to"))
        self._did(wish, "say", {"user": user["id"], "chat": chat.id, "place": chat.place}, message["text"])
        return {"seq": after + 1, "place": chat.place, "message": message}

    def press(self, wish: Json) -> Json:
        user, chat = self._where(wish)
        after = self.api.events.last
        pressed = self.people.press(user, chat, _text(wish, "button"), _number(wish, "message_id"))
        self._did(wish, "press", {"user": user["id"], "chat": chat.id, "place": chat.place}, _text(wish, "button"))
        return {"seq": after, "place": chat.place, **pressed}

    def upload(self, wish: Json, file: Upload) -> Json:
        user, chat = self._where(wish)
        kind = wish.get("kind", "document")
        if kind not in ("photo", "document"):
            raise SandboxError("kind is photo or document")
        after = self.api.events.last
        message = self.people.upload(user, chat, file, str(wish.get("caption", "")), kind, _number(wish, "reply_to"))
        self.world.commit()
        self._did(wish, "upload", {"user": user["id"], "chat": chat.id, "place": chat.place}, file.name)
        return {"seq": after + 1, "place": chat.place, "message": message}

    def start(self, wish: Json) -> Json:
        user, bot = self.people.user(wish.get("as", "admin")), self.people.bot(wish.get("bot"))
        after = self.api.events.last
        message = self.people.start(user, bot, str(wish.get("code", "")))
        self._did(wish, "start", {"user": user["id"], "chat": user["id"], "bot": bot["id"]})
        return {"seq": after + 1, "message": message}

    def forward(self, wish: Json) -> Json:
        user, source = self._where(wish)
        chat = self.people.chat(user, wish.get("to"), wish.get("to_bot", wish.get("bot")))
        after = self.api.events.last
        message = self.people.forward(user, source, _number(wish, "message_id") or 0, chat)
        self._did(wish, "forward", {"user": user["id"], "chat": chat.id, "place": chat.place})
        return {"seq": after + 1, "place": chat.place, "message": message}

    def block(self, wish: Json, blocked: bool) -> Json:
        user, bot = self.people.user(wish.get("as")), self.people.bot(wish.get("bot"))
        self.people.block(user, bot, blocked)
        self._did(wish, "block" if blocked else "unblock", {"user": user["id"], "bot": bot["id"]})
        return {"user": user["id"], "bot": bot["id"], "blocked": blocked}

    def deactivate(self, wish: Json) -> Json:
        user = self.people.user(wish.get("as"))
        self.world.put({**user, "deactivated": bool(wish.get("deactivated", True))}, "users", user["id"])
        return {"user": user["id"], "deactivated": bool(wish.get("deactivated", True))}

    def member(self, wish: Json, status: str) -> Json:
        """Of a bot when `bot` is given, else of the user `as`."""
        user = self.people.user(wish.get("as", "admin"))
        if wish.get("chat") in (None, ""):
            raise SandboxError("say in which chat: a group or a channel")
        chat = self.people.chat(user, wish["chat"])
        who = self.people.bot(wish["bot"])["id"] if wish.get("bot") is not None else user["id"]
        self.people.set_member(user, chat.id, who, status, wish.get("rights"))
        return {"chat": chat.id, "member": who, "status": status}

    # -- the world

    def new_chat(self, wish: Json) -> Json:
        """A group, supergroup or channel of a user's own, with the bots and users that are named in `members`."""
        owner, kind = self.people.user(wish.get("as", "admin")), wish.get("type", "supergroup")
        if kind not in ("group", "supergroup", "channel"):
            raise SandboxError("type is group, supergroup or channel")
        known = [id_ for id_ in self.world.chats if (id_ < -(10**12)) == (kind != "group")]
        id_ = min(known, default=-4_000_000 if kind == "group" else -(10**12)) - 1
        members = {str(owner["id"]): {"status": "creator"}}
        members |= {str(int(member)): {"status": "member"} for member in wish.get("members", [])}
        chat = {"id": id_, "type": kind, "title": _text(wish, "title"), "members": members}
        if wish.get("username"):
            chat["username"] = str(wish["username"]).removeprefix("@")
        self.world.put(chat, "chats", id_)
        self.api.events.publish("chat", place=str(id_))
        return chat

    def new_user(self, wish: Json) -> Json:
        id_ = _number(wish, "id") or max(self.world.users) + 1
        if id_ in self.world.users or id_ <= 0:
            raise SandboxError(f"the user id {id_} is taken or not above 0")
        user = {"id": id_, "key": str(wish.get("key", id_)), "first_name": str(wish.get("first_name", f"User {id_}"))}
        user |= {key: wish[key] for key in ("last_name", "username", "language_code", "subscriber") if wish.get(key)}
        self.world.put(user, "users", id_)
        return user

    def upgrade(self, wish: Json) -> Json:
        """A basic group becomes a supergroup: whoever writes to the old number is told the new one."""
        user = self.people.user(wish.get("as", "admin"))
        old = self.world.chats[self.people.chat(user, wish.get("chat") or "?").id]
        if old["type"] != "group":
            raise SandboxError("only a basic group can be upgraded")
        kept = {key: old[key] for key in ("title", "members")}
        new = self.new_chat({"as": user["id"], "title": old["title"], "type": "supergroup"})
        self.world.put({**new, **kept}, "chats", new["id"])
        self.world.put({**old, "upgraded_to": new["id"]}, "chats", old["id"])
        return {"from": old["id"], "to": new["id"]}

    def change_bot(self, wish: Json) -> Json:
        """Make one known before it calls, name it, let it read all of a group, revoke its token."""
        id_ = _number(wish, "id")
        if not id_ or id_ < 1:
            raise SandboxError("say which bot: id is the digits of its token")
        bot = self.world.bots.get(id_) or self.world.add_bot(id_)
        changes = {key: wish[key] for key in ("name", "username", "reads_all", "revoked") if key in wish}
        self.world.put({**bot, **changes}, "bots", id_)
        self.api.events.publish("bot", bot=id_)
        return self.views.bot(self.world.bots[id_])

    def limits(self, wish: Json) -> Json:
        self.api.rates.change(wish)
        return self.api.rates.shown()

    def latency(self, wish: Json) -> Json:
        seconds = wish.get("seconds")
        if not isinstance(seconds, int | float) or not 0 <= seconds <= 60:
            raise SandboxError("latency is a number of seconds from 0 to 60, for example 0.08")
        self.api.latency = float(seconds)
        return {"seconds": self.api.latency}


def _text(wish: Json, name: str) -> str:
    value = wish.get(name)
    if not isinstance(value, str) or not value.strip():
        raise SandboxError(f"{name} is missing")
    return value


def _number(wish: Json, name: str) -> int | None:
    value = wish.get(name)
    if value in (None, ""):
        return None
    try:
        return int(value)
    except (TypeError, ValueError):
        raise SandboxError(f"{name} is a number") from None


def _plain(value: Any) -> Any:
    """From a query string: true, 5 and sendMessage mean what they look like."""
    if value in ("true", "false"):
        return value == "true"
    if isinstance(value, str) and value.lstrip("-").isdigit():
        return int(value)
    return value


def as_json(data: Any, status: int = 200) -> web.Response:
    return web.json_response(data, status=status)
