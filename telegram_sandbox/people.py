"""What people do in their chats: say, press, upload, forward, start, block, join, leave, promote."""

from __future__ import annotations

import re
import secrets
import time
from typing import Any

from telegram_sandbox.chats import Chat, bot_view, membership, private_chat, shared_chat, user_view
from telegram_sandbox.errors import ApiError, Json, SandboxError
from telegram_sandbox.events import Events
from telegram_sandbox.files import Files, Upload, as_content
from telegram_sandbox.markup import found_in, utf16_length
from telegram_sandbox.messages import Messages
from telegram_sandbox.methods.content import LONGEST_TEXT, bare
from telegram_sandbox.methods.messages import CONTENT, origin_of
from telegram_sandbox.world import World, talk


class People:
    def __init__(self, world: World, messages: Messages, files: Files, events: Events, heard: dict[int, float]) -> None:
        self.world = world
        self.messages = messages
        self.files = files
        self.events = events
        self._heard = heard

    # -- who and where

    def user(self, named: Any) -> Json:
        for user in self.world.users.values():
            if str(named).lower().removeprefix("@") in (user.get("key"), str(user["id"]), user.get("username")):
                return user
        keys = ", ".join(str(u["key"]) for u in self.world.users.values() if not u.get("subscriber") and u.get("key"))
        raise SandboxError(
            f"there is no user {named!r}: choose one of {keys}, subscriber1 to subscriber50, or a user's id"
        )

    def bot(self, named: Any = None) -> Json:
        """None: the one that was heard last."""
        if named is None:
            if not self.world.bots:
                raise SandboxError("no bot has called yet: start one that uses the address of the sandbox")
            return max(self.world.bots.values(), key=lambda bot: (self._heard.get(bot["id"], 0), bot["since"]))
        for bot in self.world.bots.values():
            if str(named).lower().removeprefix("@") in (str(bot["id"]), bot["username"].lower()):
                return bot
        known = ", ".join(str(id_) for id_ in self.world.bots) or "none yet"
        raise SandboxError(f"there is no bot {named!r}; bots: {known}")

    def chat(self, user: Json, named: Any, bot: Any = None) -> Chat:
        """None: the private chat with the bot."""
        if named in (None, "", "private"):
            return private_chat(self.bot(bot)["id"], user)
        for chat in self.world.chats.values():
            wanted = str(named).lower()
            if wanted in (str(chat["id"]), chat["title"].lower(), f"@{chat.get('username')}", chat.get("username")):
                return shared_chat(chat)
            if wanted in ("channel", "group") and chat.get("seeded") and chat["type"].endswith(wanted):
                return shared_chat(chat)
        known = ", ".join(f"{chat['title']} ({chat['id']})" for chat in self.world.chats.values())
        raise SandboxError(
            f"there is no chat {named!r}: leave it out for the private chat with the bot, or choose {known}"
        )

    def _may_write(self, user: Json, chat: Chat) -> None:
        if chat.kind == "private":
            bot = int(chat.place.partition(":")[0])
            if self.world.blocked(bot, user["id"]):
                raise SandboxError(f"{user['key']} has blocked this bot: unblock it first")
            if not self.world.started(bot, user["id"]):
                self.world.put({"started": True, "blocked": False}, "talks", chat.place)
            return
        status = self.world.status(self.world.chats[chat.id], user["id"])
        if chat.kind == "channel" and status not in ("creator", "administrator"):
            raise SandboxError(f"{user['key']} is no admin of {chat.view['title']}: only admins write in a channel")
        if status in ("left", "kicked"):
            raise SandboxError(f"{user['key']} is no member of {chat.view['title']}: let them join first")

    # -- messages

    def say(self, user: Json, chat: Chat, text: str, reply_to: int | None = None) -> Json:
        text = text.replace("\r", "").strip()
        if not text:
            raise SandboxError("there is nothing to say: the text is empty")
        if utf16_length(text) > LONGEST_TEXT:
            raise SandboxError(f"the text is too long: at most {LONGEST_TEXT} characters")
        self._may_write(user, chat)
        content: Json = {"text": text}
        if entities := found_in(text):
            content["entities"] = entities
        return self._deliver(user, chat, {**self._answered(chat, reply_to), **content})

    def upload(
        self, user: Json, chat: Chat, file: Upload, caption: str, kind: str, reply_to: int | None = None
    ) -> Json:
        """kind: photo or document."""
        try:
            self._may_write(user, chat)
            content = as_content(self.files.save(kind, file))
        except ApiError as error:
            raise SandboxError(f"{file.name}: {error.description.removeprefix('Bad Request: ')}") from None
        if caption.strip():
            content["caption"] = caption.strip()
            if entities := found_in(content["caption"]):
                content["caption_entities"] = entities
        return self._deliver(user, chat, {**self._answered(chat, reply_to), **content})

    def forward(self, user: Json, source: Chat, id_: int, chat: Chat) -> Json:
        stored = self.messages.find(source, id_)
        if stored is None:
            raise SandboxError(f"there is no message {id_} to forward")
        self._may_write(user, chat)
        message = stored["message"]
        content = {key: message[key] for key in CONTENT if key in message}
        return self._deliver(user, chat, {**content, "forward_origin": origin_of(message)})

    def _answered(self, chat: Chat, reply_to: int | None) -> Json:
        if reply_to is None:
            return {}
        stored = self.messages.find(chat, reply_to)
        if stored is None:
            raise SandboxError(f"there is no message {reply_to} to reply to")
        return {"reply_to_message": bare(stored["message"])}

    def _deliver(self, user: Json, chat: Chat, content: Json) -> Json:
        message = self.messages.from_user(user, chat, content)
        self.world.commit()
        return message

    # -- buttons

    def press(self, user: Json, chat: Chat, wanted: str, id_: int | None = None) -> Json:
        """The newest button with this text or data: {"query": ...}, {"url": ...} or {"message": ...} (a keyboard's)."""
        messages = self.world.messages.get(chat.place, {})
        seen: list[str] = []
        for fits in (_equals, _contains):
            for number in sorted(messages, reverse=True):
                if id_ is not None and number != id_:
                    continue
                stored = messages[number]
                for row in stored["message"].get("reply_markup", {}).get("inline_keyboard", []):
                    for button in row:
                        seen.append(button["text"])
                        if fits(wanted, button["text"], button.get("callback_data")):
                            return self._pressed(user, chat, number, stored, button)
                for row in stored.get("keyboard", {}).get("keyboard", []) if id_ is None else []:
                    for button in row:
                        seen.append(button["text"])
                        if fits(wanted, button["text"], None):
                            return {"message": self.say(user, chat, button["text"])}
        known = ", ".join(f"[{text}]" for text in dict.fromkeys(seen[:12])) or "none"
        raise SandboxError(f"there is no button {wanted!r} in this chat; buttons: {known}")

    def _pressed(self, user: Json, chat: Chat, number: int, stored: Json, button: Json) -> Json:
        if "url" in button:
            return {"url": button["url"]}
        if "callback_data" not in button or not stored.get("bot"):
            raise SandboxError(f"the sandbox cannot press [{button['text']}]: it is no callback button")
        id_ = str(secrets.randbits(62))
        query = {
            "id": id_,
            "from": user_view(user),
            "message": stored["message"],
            "chat_instance": str(abs(int.from_bytes(chat.place.encode()[-7:], "big"))),
            "data": button["callback_data"],
        }
        facts = {"bot": stored["bot"], "user": user["id"], "place": chat.place, "message_id": number, "at": time.time()}
        self.world.put({**facts, "data": button["callback_data"]}, "queries", id_)
        self.world.enqueue(stored["bot"], "callback_query", query)
        self.world.commit()
        return {"query": id_, "message_id": number}

    # -- membership

    def start(self, user: Json, bot: Json, payload: str = "") -> Json:
        """The START button, or a deep link."""
        if payload and not re.fullmatch("[A-Za-z0-9_-]{1,64}", payload):
            raise SandboxError("a start code has 1 to 64 characters of A-Z a-z 0-9 _ -")
        self.block(user, bot, False)
        return self.say(user, private_chat(bot["id"], user), f"/start {payload}".strip())

    def block(self, user: Json, bot: Json, blocked: bool = True) -> None:
        was = self.world.blocked(bot["id"], user["id"])
        if was == blocked:
            return
        place = talk(bot["id"], user["id"])
        self.world.put({"started": self.world.started(bot["id"], user["id"]), "blocked": blocked}, "talks", place)
        self._tell_bot(
            bot, user, private_chat(bot["id"], user), "kicked" if was else "member", "kicked" if blocked else "member"
        )
        self.world.commit()
        self.events.publish("chat", place=place)

    def set_member(self, by: Json, chat_id: int, who: int, status: str, rights: Json | None = None) -> None:
        """Of a user or a bot, in a group or channel: member, administrator, left, kicked."""
        chat = self.world.chats[chat_id]
        was = self.world.status(chat, who)
        facts: Json = {"status": status, **({"rights": rights} if rights else {})}
        self.world.put({**chat, "members": {**chat["members"], str(who): facts}}, "chats", chat_id)
        if who in self.world.bots:
            self._tell_bot(self.world.bots[who], by, shared_chat(chat), was, status)
        self.world.commit()
        self.events.publish("chat", place=str(chat_id))

    def _tell_bot(self, bot: Json, by: Json, chat: Chat, was: str, now: str) -> None:
        change = {
            "chat": chat.view,
            "from": user_view(by),
            "date": int(time.time()),
            "old_chat_member": membership(bot_view(bot), was, chat.kind),
            "new_chat_member": membership(bot_view(bot), now, chat.kind),
        }
        self.world.enqueue(bot["id"], "my_chat_member", change)


def _equals(wanted: str, text: str, data: str | None) -> bool:
    return wanted in (text, data)


def _contains(wanted: str, text: str, data: str | None) -> bool:
    return wanted.lower() in text.lower()
