"""Methods that ask about chats and their members."""

from __future__ import annotations

from typing import Any

from telegram_sandbox.chats import bot_view, may_speak, membership, must_be_member, user_view
from telegram_sandbox.errors import Json, bad_request
from telegram_sandbox.methods.call import Call, method

ACTIONS = (
    "typing upload_photo record_video upload_video record_audio upload_audio record_voice upload_voice upload_document"
    " choose_sticker find_location record_video_note upload_video_note"
)


@method("sendChatAction")
def send_chat_action(call: Call) -> Any:
    chat = call.chat()
    may_speak(call.world, call.bot["id"], chat)
    action = call.parameters.text("action")
    if action not in ACTIONS.split():
        raise bad_request("wrong parameter action in request")
    call.events.publish("action", place=chat.place, bot=call.bot["id"], action=action)
    return True


@method("getChat")
def get_chat(call: Call) -> Any:
    chat = call.chat()
    must_be_member(call.world, call.bot["id"], chat)
    accepted = ("unlimited_gifts", "limited_gifts", "unique_gifts", "premium_subscription", "gifts_from_channels")
    full = {
        **chat.view,
        "accent_color_id": 0,
        "max_reaction_count": 11,
        "accepted_gift_types": dict.fromkeys(accepted, False),
    }
    if chat.kind != "private" and call.world.chats[chat.id].get("description"):
        full["description"] = call.world.chats[chat.id]["description"]
    return full


@method("getChatMember")
def get_chat_member(call: Call) -> Any:
    chat = call.chat()
    user = call.parameters.integer("user_id")
    if user not in call.world.users and user not in call.world.bots:
        raise bad_request("invalid user_id specified" if user <= 0 else "PARTICIPANT_ID_INVALID")
    must_be_member(call.world, call.bot["id"], chat)
    if chat.kind == "private":
        return {"status": "member", "user": _person(call, user)}
    return member_view(call, call.world.chats[chat.id], user)


@method("getChatAdministrators")
def get_chat_administrators(call: Call) -> Any:
    chat = call.chat()
    if chat.kind == "private":
        raise bad_request("there are no administrators in the private chat")
    must_be_member(call.world, call.bot["id"], chat)
    facts = call.world.chats[chat.id]
    return [
        member_view(call, facts, int(id_))
        for id_, member in facts["members"].items()
        if member["status"] in ("creator", "administrator")
        # As in Telegram: of the bots, only the one that asks.
        and (int(id_) not in call.world.bots or int(id_) == call.bot["id"])
    ]


@method("getChatMemberCount")
def get_chat_member_count(call: Call) -> Any:
    chat = call.chat()
    must_be_member(call.world, call.bot["id"], chat)
    if chat.kind == "private":
        return 2
    members = call.world.chats[chat.id]["members"].values()
    return sum(member["status"] not in ("left", "kicked") for member in members)


def member_view(call: Call, chat: Json, id_: int) -> Json:
    facts = chat["members"].get(str(id_), {"status": "left"})
    return membership(_person(call, id_), facts["status"], chat["type"], facts.get("rights"))


def _person(call: Call, id_: int) -> Json:
    return bot_view(call.world.bots[id_]) if id_ in call.world.bots else user_view(call.world.users[id_])
