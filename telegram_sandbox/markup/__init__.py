"""Formatted text: from parse modes to Telegram's entities."""

from __future__ import annotations

from collections.abc import Callable

from telegram_sandbox.errors import Json, bad_request
from telegram_sandbox.markup.entities import ParseError, found_in, trimmed, utf16_length, with_found
from telegram_sandbox.markup.html import parse_html
from telegram_sandbox.markup.markdown import parse_markdown
from telegram_sandbox.markup.markdown_v2 import parse_markdown_v2

PARSERS: dict[str, Callable[[str], tuple[str, list[Json]]]] = {
    "html": parse_html,
    "markdown": parse_markdown,
    "markdownv2": parse_markdown_v2,
}

__all__ = ["formatted", "found_in", "utf16_length"]

#: What a bot may pass in `entities`; the rest Telegram finds by itself.
GIVEN = (
    "bold italic underline strikethrough spoiler blockquote expandable_blockquote code pre"
    " text_link text_mention custom_emoji"
)


def formatted(text: str, parse_mode: str, given: object) -> tuple[str, list[Json]]:
    """The text as people see it and its entities, as Telegram would make them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise bad_request("strings must be encoded in UTF-8") from None
    text = text.replace("\r", "").replace("\x00", "")
    entities: list[Json] = []
    if parse_mode:
        parser = PARSERS.get(parse_mode.lower())
        if parser is None:
            raise bad_request("unsupported parse_mode")
        try:
            text, entities = parser(text)
        except ParseError as error:
            raise bad_request(f"can't parse entities: {error}") from None
    elif isinstance(given, list):
        length = utf16_length(text)
        entities = [entity for entity in (_checked(item, length) for item in given) if entity is not None]
    if text and (text[0].isspace() or text[-1].isspace()):
        text, entities = trimmed(text, entities)
    return text, with_found(text, entities)


def _checked(item: object, length: int) -> Json | None:
    if not isinstance(item, dict) or not isinstance(item.get("type"), str):
        raise bad_request("can't parse MessageEntity: expected an Object")
    offset, size = item.get("offset"), item.get("length")
    if not isinstance(offset, int) or not isinstance(size, int):
        raise bad_request("can't parse MessageEntity: Can't find field \"offset\"")
    if item["type"] not in GIVEN.split() or size <= 0 or offset < 0 or offset >= length:
        return None
    kept = {key: item[key] for key in ("url", "user", "language", "custom_emoji_id") if key in item}
    return {"type": item["type"], "offset": offset, "length": min(size, length - offset), **kept}
