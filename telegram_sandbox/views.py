"""What people see: their chats, a chat's messages, what a bot did."""

from __future__ import annotations

import json
from typing import Any

from telegram_sandbox.bot_api import BotApi
from telegram_sandbox.chats import Chat, private_chat, shared_chat
from telegram_sandbox.errors import Json
from telegram_sandbox.world import talk


class Views:
    def __init__(self, api: BotApi) -> None:
        self.api = api
        self.world = api.world

    def state(self, user: Json) -> Json:
        chats = [self._talk(user, bot) for bot in self.world.bots.values()]
        chats += [self._shared(user, chat) for chat in self.world.chats.values() if not chat.get("upgraded_to")]
        people = [person for person in self.world.users.values() if not person.get("subscriber")]
        return {"seq": self.api.events.last, "me": user, "users": people, "chats": chats}

    def _talk(self, user: Json, bot: Json) -> Json:
        place = talk(bot["id"], user["id"])
        return {
            "place": place,
            "kind": "private",
            "title": bot["name"],
            "bot": self.bot(bot),
            "chat": user["id"],
            "started": self.world.started(bot["id"], user["id"]),
            "blocked": self.world.blocked(bot["id"], user["id"]),
            "commands": self.commands(bot, user, private_chat(bot["id"], user)),
            "last": self._last(place),
            "keyboard": self._keyboard(place),
            "can_write": True,
        }

    def _shared(self, user: Json, facts: Json) -> Json:
        chat = shared_chat(facts)
        status = self.world.status(facts, user["id"])
        inside = [member for member in facts["members"].values() if member["status"] not in ("left", "kicked")]
        admin = status in ("creator", "administrator")
        bots = [self.world.bots[int(id_)] for id_ in facts["members"] if int(id_) in self.world.bots]
        return {
            "place": chat.place,
            "kind": chat.kind,
            "title": facts["title"],
            "username": facts.get("username"),
            "chat": chat.id,
            "members": len(inside),
            "status": status,
            "can_write": admin or (chat.kind != "channel" and status == "member"),
            "commands": [dict(c, bot=bot["username"]) for bot in bots for c in self.commands(bot, user, chat)]
            if chat.kind != "channel"
            else [],
            "last": self._last(chat.place),
            "keyboard": None,
        }

    def bot(self, bot: Json) -> Json:
        shown = {key: bot.get(key) for key in ("id", "name", "username", "description", "short_description", "revoked")}
        return {
            **shown,
            "heard": self.api.heard.get(bot["id"]),
            "polls": self.api.polling.polled_by_somebody(bot["id"]),
        }

    def messages(self, chat: Chat, limit: int, before: int) -> Json:
        kept = self.world.messages.get(chat.place, {})
        ids = [id_ for id_ in sorted(kept) if id_ < before]
        return {
            "seq": self.api.events.last,
            "place": chat.place,
            "messages": [kept[id_] for id_ in ids[-limit:]],
            "more": len(ids) > limit,
            "keyboard": self._keyboard(chat.place),
        }

    def of_bots(self, events: list[Json] | None, chat: Chat, user: Json) -> list[Json]:
        if events is None:
            return []
        return [
            event
            for event in events
            if event.get("place") == chat.place
            and (
                (event["kind"] in ("message", "edit") and event["stored"].get("bot"))
                or event["kind"] in ("delete", "action")
                or (event["kind"] == "answer" and event["user"] == user["id"])
            )
        ]

    def commands(self, bot: Json, user: Json, chat: Chat) -> list[Json]:
        """The narrowest scope that has commands, in the user's language or in none, as Telegram looks for them."""
        known: dict[str, Any] = bot.get("commands", {})
        private = chat.kind == "private"
        admin = not private and self.world.status(self.world.chats[chat.id], user["id"]) in ("creator", "administrator")
        scopes: list[Json] = [{"type": "chat_member", "chat_id": chat.id, "user_id": user["id"]}] if not private else []
        scopes += [{"type": "chat_administrators", "chat_id": chat.id}] if admin else []
        scopes += [{"type": "chat", "chat_id": chat.id}]
        scopes += [{"type": "all_chat_administrators"}] if admin else []
        scopes += [{"type": "all_private_chats" if private else "all_group_chats"}, {"type": "default"}]
        for scope in scopes:
            for language in (user.get("language_code", ""), ""):
                if found := known.get(json.dumps([scope, language], sort_keys=True)):
                    return list(found)
        return []

    def _last(self, place: str) -> Json | None:
        kept = self.world.messages.get(place)
        return kept[max(kept)] if kept else None

    def _keyboard(self, place: str) -> Json | None:
        """Of the newest message that set or removed one."""
        kept = self.world.messages.get(place, {})
        for id_ in sorted(kept, reverse=True)[:200]:
            if keyboard := kept[id_].get("keyboard"):
                return None if keyboard.get("remove_keyboard") else keyboard
        return None
