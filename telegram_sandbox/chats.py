"""Chats as a bot names them and sees them, and whether it may speak there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from telegram_sandbox.errors import Json, bad_request, forbidden, upgraded
from telegram_sandbox.world import World, talk


@dataclass(frozen=True)
class Chat:
    id: int
    kind: str  # private, group, supergroup, channel
    #: Where its messages are kept.
    place: str
    #: As the Bot API shows it.
    view: Json


def user_view(user: Json) -> Json:
    shown = {"id": user["id"], "is_bot": False, "first_name": user["first_name"]}
    for key in ("last_name", "username", "language_code"):
        if user.get(key):
            shown[key] = user[key]
    return shown


def bot_view(bot: Json) -> Json:
    return {"id": bot["id"], "is_bot": True, "first_name": bot["name"], "username": bot["username"]}


def private_chat(bot: int, user: Json) -> Chat:
    view = {"id": user["id"], "first_name": user["first_name"]}
    view.update({key: user[key] for key in ("last_name", "username") if user.get(key)})
    return Chat(user["id"], "private", talk(bot, user["id"]), {**view, "type": "private"})


def shared_chat(chat: Json) -> Chat:
    view = {"id": chat["id"], "title": chat["title"], "type": chat["type"]}
    if chat.get("username"):
        view["username"] = chat["username"]
    return Chat(chat["id"], chat["type"], str(chat["id"]), view)


def find_chat(world: World, bot: int, named: Any) -> Chat:
    """By its number or @name; a private chat by its user's number."""
    if named is None or named == "":
        raise bad_request("chat_id is empty")
    try:
        id_ = int(named)
    except (TypeError, ValueError, OverflowError):
        name = str(named).lower().removeprefix("@")
        for chat in world.chats.values():
            if str(named).startswith("@") and chat.get("username", "").lower() == name:
                return shared_chat(chat)
        raise bad_request("chat not found") from None
    if id_ in world.users:
        return private_chat(bot, world.users[id_])
    if id_ in world.chats:
        return shared_chat(world.chats[id_])
    raise bad_request("chat not found")


def may_speak(world: World, bot: int, chat: Chat) -> None:
    if chat.kind == "private":
        if world.users[chat.id].get("deactivated"):
            raise forbidden("user is deactivated")
        if world.blocked(bot, chat.id):
            raise forbidden("bot was blocked by the user")
        if not world.started(bot, chat.id):
            raise forbidden("bot can't initiate conversation with a user")
        return
    facts = world.chats[chat.id]
    if facts.get("upgraded_to"):
        raise upgraded(facts["upgraded_to"])
    must_be_member(world, bot, chat)
    if chat.kind == "channel" and world.status(facts, bot) != "administrator":
        raise bad_request("need administrator rights in the channel chat")


def must_be_member(world: World, bot: int, chat: Chat) -> None:
    if chat.kind == "private":
        return
    status = world.status(world.chats[chat.id], bot)
    if status == "kicked":
        raise forbidden(f"bot was kicked from the {chat.kind} chat")
    if status == "left":
        raise forbidden(f"bot is not a member of the {chat.kind} chat")


RIGHTS = (
    "can_manage_chat can_delete_messages can_manage_video_chats can_restrict_members can_promote_members"
    " can_change_info can_invite_users can_post_stories can_edit_stories can_delete_stories"
    " can_send_welcome_messages"
)
CHANNEL_RIGHTS = ("can_post_messages", "can_edit_messages")
GROUP_RIGHTS = ("can_pin_messages", "can_manage_topics")


def membership(person: Json, status: str, kind: str, rights: Json | None = None) -> Json:
    """A ChatMember. An administrator may do everything but promote, unless its rights say otherwise."""
    view: Json = {"status": status, "user": person}
    if status == "creator":
        view["is_anonymous"] = False
    elif status == "administrator":
        given = rights or {}
        view.update({"can_be_edited": False, "is_anonymous": False})
        for right in (*RIGHTS.split(), *(CHANNEL_RIGHTS if kind == "channel" else GROUP_RIGHTS)):
            view[right] = bool(given.get(right, right != "can_promote_members"))
    elif status == "kicked":
        view["until_date"] = 0
    return view
