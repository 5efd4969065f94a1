"""What goes into a message: text, caption, a file, the message it answers."""

from __future__ import annotations

from typing import Any

from telegram_sandbox.chats import Chat, find_chat
from telegram_sandbox.errors import Json, bad_request
from telegram_sandbox.files import Upload, as_content
from telegram_sandbox.markup import formatted, utf16_length
from telegram_sandbox.methods.call import Call
from telegram_sandbox.parameters import Parameters

#: In UTF-16 units, after the markup was parsed.
LONGEST_TEXT = 4096
LONGEST_CAPTION = 1024


def text_of(call: Call) -> Json:
    parameters = call.parameters
    text, entities = formatted(
        parameters.text("text"),
        parameters.text("parse_mode"),
        parameters.json("entities", "can't parse entities JSON object"),
    )
    if not text:
        raise bad_request("message text is empty")
    if utf16_length(text) > LONGEST_TEXT:
        raise bad_request("message is too long")
    call.text = text
    content: Json = {"text": text}
    if entities:
        content["entities"] = entities
    return content


def caption_of(call: Call, given: Parameters | None = None) -> Json:
    """Empty: no caption."""
    parameters = given or call.parameters
    text, entities = formatted(
        parameters.text("caption"),
        parameters.text("parse_mode"),
        parameters.json("caption_entities", "can't parse entities JSON object"),
    )
    if utf16_length(text) > LONGEST_CAPTION:
        raise bad_request("message caption is too long")
    call.text = text or call.text
    content: Json = {"caption": text} if text else {}
    if entities:
        content["caption_entities"] = entities
    if parameters.flag("show_caption_above_media"):
        content["show_caption_above_media"] = True
    return content


def file_of(call: Call, kind: str, value: Any) -> Json:
    """From attach://NAME, a file_id, or an upload under the name of the field itself. Saved only here: check before."""
    upload = named_upload(call, kind, value)
    if upload is not None:
        return as_content(call.files.save(kind, upload))
    facts = call.world.files.get(str(value))
    if facts is None:
        raise bad_request("wrong file identifier/HTTP URL specified")
    if facts["kind"] != kind:
        was, wanted = str(facts["kind"]).capitalize(), kind.capitalize()
        raise bad_request(f"can't use file of type {was} as {wanted}")
    return as_content(facts)


def named_upload(call: Call, kind: str, value: Any) -> Upload | None:
    uploads = call.parameters.uploads
    if value is None or value == "":
        if kind not in uploads:
            raise bad_request(f"there is no {kind} in the request")
        return uploads[kind]
    if isinstance(value, str) and value.startswith("attach://"):
        name = value.removeprefix("attach://")
        if name not in uploads:
            raise bad_request(f'file "{name}" is not attached')
        return uploads[name]
    return None


def answered(call: Call, chat: Chat) -> Json:
    """The message that this one replies to, as a part of it."""
    parameters = call.parameters
    reply = parameters.json("reply_parameters", "can't parse reply parameters JSON object") or {}
    if not isinstance(reply, dict):
        raise bad_request("object expected as reply parameters")
    reply = Parameters(reply)
    id_ = reply.integer("message_id") or parameters.integer("reply_to_message_id")
    if not id_:
        return {}
    where = chat
    if reply.values.get("chat_id") is not None:
        where = find_chat(call.world, call.bot["id"], reply.values["chat_id"])
    stored = call.messages.find(where, id_)
    if stored is None:
        if reply.flag("allow_sending_without_reply") or parameters.flag("allow_sending_without_reply"):
            return {}
        raise bad_request("message to be replied not found")
    return {"reply_to_message": bare(stored["message"])}


def bare(message: Json) -> Json:
    """Without the message that it replied to itself: Telegram nests one level deep."""
    return {key: value for key, value in message.items() if key != "reply_to_message"}
