"""Messages are made, changed and removed here, whoever does it; the pages hear of it, bots get their updates."""

from __future__ import annotations

import re
import time
from typing import Any

from telegram_sandbox.chats import Chat, bot_view, private_chat, shared_chat, user_view
from telegram_sandbox.errors import Json
from telegram_sandbox.events import Events
from telegram_sandbox.world import World


class Messages:
    def __init__(self, world: World, events: Events) -> None:
        self.world = world
        self.events = events

    def find(self, chat: Chat, id_: int) -> Json | None:
        return self.world.messages.get(chat.place, {}).get(id_)

    def from_bot(self, bot: Json, chat: Chat, content: Json, keyboard: Json | None = None) -> Json:
        """The stored message, as the Bot API shows it."""
        sender: Json = {"sender_chat": chat.view} if chat.kind == "channel" else {"from": bot_view(bot)}
        message = self._add(chat, sender, content, bot["id"], keyboard)
        if chat.kind == "channel":
            # Other bots of the channel hear of the post; the one that wrote it does not.
            self._tell_members(chat, message, "channel_post", bot["id"])
        return message

    def from_user(self, user: Json, chat: Chat, content: Json) -> Json:
        sender: Json = {"sender_chat": chat.view} if chat.kind == "channel" else {"from": user_view(user)}
        message = self._add(chat, sender, content, 0, None, user["id"])
        if chat.kind == "private":
            self.world.enqueue(int(chat.place.partition(":")[0]), "message", message)
        else:
            self._tell_members(chat, message, "channel_post" if chat.kind == "channel" else "message", None)
        return message

    def _add(self, chat: Chat, sender: Json, content: Json, bot: int, keyboard: Json | None, user: int = 0) -> Json:
        world = self.world
        id_ = world.next(world.counter_of(chat.place))
        message = {"message_id": id_, **sender, "chat": chat.view, "date": int(time.time()), **content}
        stored: Json = {"message": message, "seq": self.events.next()}
        if bot:
            stored["bot"] = bot
        if user:
            stored["user"] = user
        if keyboard:
            stored["keyboard"] = keyboard
        world.put(stored, "messages", chat.place, id_)
        world.forget_old(chat.place)
        self.events.publish("message", place=chat.place, stored=stored)
        return message

    def change(self, chat: Chat, id_: int, message: Json) -> None:
        stored = {**self.world.messages[chat.place][id_], "message": message, "seq": self.events.next()}
        self.world.put(stored, "messages", chat.place, id_)
        self.events.publish("edit", place=chat.place, stored=stored)

    def remove(self, chat: Chat, id_: int) -> None:
        self.world.put(None, "messages", chat.place, id_)
        self.events.publish("delete", place=chat.place, message_id=id_)

    def _tell_members(self, chat: Chat, message: Json, kind: str, author: int | None) -> None:
        members: dict[str, Any] = self.world.chats[chat.id]["members"]
        for id_, bot in self.world.bots.items():
            status = members.get(str(id_), {}).get("status")
            if id_ == author or status not in ("member", "administrator"):
                continue
            if kind == "channel_post" and status != "administrator":
                continue
            if kind == "channel_post" or status == "administrator" or bot.get("reads_all") or _concerns(bot, message):
                self.world.enqueue(id_, kind, message)

    def chat_of(self, place: str) -> Chat:
        bot, colon, user = place.partition(":")
        if colon:
            return private_chat(int(bot), self.world.users[int(user)])
        return shared_chat(self.world.chats[int(place)])


def _concerns(bot: Json, message: Json) -> bool:
    """Privacy mode: in a group a bot hears commands, mentions and answers to itself."""
    if message.get("reply_to_message", {}).get("from", {}).get("id") == bot["id"]:
        return True
    if "new_chat_members" in message or "left_chat_member" in message:
        return True
    text = str(message.get("text", message.get("caption", ""))).lower()
    if f"@{bot['username']}".lower() in text:
        return True
    return re.match(r"/\w+(?!\w*@)", text) is not None
