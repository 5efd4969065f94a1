"""Methods that create, change and remove messages."""

from __future__ import annotations

from typing import Any

from telegram_sandbox.chats import Chat, may_speak, must_be_member
from telegram_sandbox.errors import Json, bad_request
from telegram_sandbox.keyboards import markup_of
from telegram_sandbox.methods.call import Call, method
from telegram_sandbox.methods.content import answered, caption_of, file_of, text_of
from telegram_sandbox.parameters import Parameters

#: Seconds; an older message can no longer be deleted.
DELETABLE = 48 * 3600

CONTENT = ("text", "entities", "caption", "caption_entities", "photo", "document", "show_caption_above_media")


@method("sendMessage")
def send_message(call: Call) -> Any:
    content = text_of(call)
    return _send(call, content)


@method("sendPhoto")
def send_photo(call: Call) -> Any:
    return _send_file(call, "photo")


@method("sendDocument")
def send_document(call: Call) -> Any:
    return _send_file(call, "document")


def _send_file(call: Call, kind: str) -> Json:
    caption = caption_of(call)
    chat = call.chat()
    may_speak(call.world, call.bot["id"], chat)
    markup_of(call.parameters)
    answered(call, chat)
    return _send(call, {**file_of(call, kind, call.parameters.values.get(kind)), **caption})


def _send(call: Call, content: Json) -> Json:
    chat = call.chat()
    may_speak(call.world, call.bot["id"], chat)
    inline, keyboard = markup_of(call.parameters)
    content = {**answered(call, chat), **content}
    if inline:
        content["reply_markup"] = inline
    if call.parameters.flag("protect_content"):
        content["has_protected_content"] = True
    message = call.messages.from_bot(call.bot, chat, content, keyboard)
    call.touched.append(message["message_id"])
    call.stored = True
    return message


@method("copyMessage")
def copy_message(call: Call) -> Any:
    source = _source(call, "message to copy not found")
    content = {key: source[key] for key in CONTENT if key in source}
    if not content:
        raise bad_request("message can't be copied")
    if "caption" in call.parameters.values and ("photo" in content or "document" in content):
        content = {key: content[key] for key in ("photo", "document") if key in content} | caption_of(call)
    call.text = content.get("text", content.get("caption"))
    return {"message_id": _send(call, content)["message_id"]}


@method("forwardMessage")
def forward_message(call: Call) -> Any:
    source = _source(call, "message to forward not found")
    content = {key: source[key] for key in CONTENT if key in source}
    if not content:
        raise bad_request("message can't be forwarded")
    call.text = content.get("text", content.get("caption"))
    return _send(call, {**content, "forward_origin": origin_of(source)})


def origin_of(message: Json) -> Json:
    if "forward_origin" in message:
        return dict(message["forward_origin"])
    if message["chat"]["type"] == "channel":
        return {
            "type": "channel",
            "chat": message["chat"],
            "message_id": message["message_id"],
            "date": message["date"],
        }
    return {"type": "user", "sender_user": message["from"], "date": message["date"]}


def _source(call: Call, words: str) -> Json:
    chat = call.chat("from_chat_id")
    must_be_member(call.world, call.bot["id"], chat)
    stored = call.messages.find(chat, call.parameters.integer("message_id"))
    if stored is None:
        raise bad_request(words)
    return dict(stored["message"])


@method("editMessageText")
def edit_text(call: Call) -> Any:
    content = text_of(call)
    chat, message = _own(call)
    if "text" not in message:
        raise bad_request("there is no text in the message to edit")
    return _edit(call, chat, message, content, ("text", "entities"))


@method("editMessageCaption")
def edit_caption(call: Call) -> Any:
    content = caption_of(call)
    chat, message = _own(call)
    if "text" in message:
        raise bad_request("there is no caption in the message to edit")
    return _edit(call, chat, message, content, ("caption", "caption_entities", "show_caption_above_media"))


@method("editMessageMedia")
def edit_media(call: Call) -> Any:
    media = call.parameters.json("media", "can't parse input media JSON object")
    if not isinstance(media, dict):
        raise bad_request("media must be non-empty" if media is None else "object expected as input media")
    kind = media.get("type")
    if kind not in ("photo", "document"):
        raise bad_request("can't parse InputMedia: the sandbox knows the types photo and document")
    caption = caption_of(call, Parameters(media))
    chat, message = _own(call)
    if "text" in message:
        raise bad_request("there is no media in the message to edit")
    markup_of(call.parameters)
    content = {**file_of(call, kind, media.get("media")), **caption}
    return _edit(call, chat, message, content, ("photo", "document", "caption", "caption_entities"))


@method("editMessageReplyMarkup")
def edit_reply_markup(call: Call) -> Any:
    chat, message = _own(call)
    call.text = message.get("text", message.get("caption"))
    return _edit(call, chat, message, {}, ())


def _own(call: Call) -> tuple[Chat, Json]:
    if "inline_message_id" in call.parameters.values:
        raise bad_request("MESSAGE_ID_INVALID")
    chat = call.chat()
    may_speak(call.world, call.bot["id"], chat)
    stored = call.messages.find(chat, call.parameters.integer("message_id"))
    if stored is None:
        raise bad_request("message to edit not found")
    if stored.get("bot") != call.bot["id"] and chat.kind != "channel":
        raise bad_request("message can't be edited")
    return chat, dict(stored["message"])


def _edit(call: Call, chat: Chat, old: Json, content: Json, replaced: tuple[str, ...]) -> Json:
    inline, _ = markup_of(call.parameters)
    new = {key: value for key, value in old.items() if key not in replaced and key != "reply_markup"}
    new.update(content)
    if inline:
        new["reply_markup"] = inline
    if {**new, "edit_date": 0} == {**old, "edit_date": 0}:
        raise bad_request(
            "message is not modified: specified new message content and reply markup are exactly the same"
            " as a current content and reply markup of the message"
        )
    if content or replaced:
        new["edit_date"] = int(call.now)
    call.messages.change(chat, new["message_id"], new)
    call.touched.append(new["message_id"])
    return new


@method("deleteMessage")
def delete_message(call: Call) -> Any:
    chat = call.chat()
    _delete(call, chat, call.parameters.integer("message_id"))
    return True


@method("deleteMessages")
def delete_messages(call: Call) -> Any:
    ids = call.parameters.json("message_ids", "can't parse message identifiers JSON object")
    if not isinstance(ids, list) or not 1 <= len(ids) <= 100:
        raise bad_request("message identifiers must be 1 to 100")
    chat = call.chat()
    for id_ in ids:
        if isinstance(id_, int) and call.messages.find(chat, id_) is not None:
            _delete(call, chat, id_)
    return True


def _delete(call: Call, chat: Chat, id_: int) -> None:
    must_be_member(call.world, call.bot["id"], chat)
    stored = call.messages.find(chat, id_)
    if stored is None:
        raise bad_request("message to delete not found")
    own = stored.get("bot") == call.bot["id"]
    admin = chat.kind != "private" and call.world.status(call.world.chats[chat.id], call.bot["id"]) == "administrator"
    too_old = call.now - stored["message"]["date"] > DELETABLE and not (admin and chat.kind != "private")
    if too_old or not (own or admin or chat.kind == "private"):
        raise bad_request("message can't be deleted")
    call.messages.remove(chat, id_)
    call.touched.append(id_)
