"""The parse mode HTML, with Telegram's tags and Telegram's complaints."""

from __future__ import annotations

import re
from dataclasses import dataclass

from telegram_sandbox.errors import Json
from telegram_sandbox.markup.entities import ParseError, byte_offset, in_order, link, utf16_length

TAGS = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strikethrough",
    "strike": "strikethrough",
    "del": "strikethrough",
    "tg-spoiler": "spoiler",
    "span": "spoiler",
    "blockquote": "blockquote",
    "code": "code",
    "pre": "pre",
    "a": "text_link",
    "tg-emoji": "custom_emoji",
}
NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}

_REFERENCE = re.compile(r"&(?:#x(?P<hex>[0-9a-fA-F]+)|#(?P<decimal>[0-9]+)|(?P<name>[A-Za-z]+));?")
_NAME = re.compile(r"[^\s>]*")
_ATTRIBUTE = re.compile(
    r"""\s*(?P<name>[^\s=>]+)(?:\s*=\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>[\w.-]+)))?"""
)
_SPECIAL = re.compile("[<&]")


@dataclass
class _Open:
    tag: str
    argument: str
    offset: int  # UTF-16
    text_at: int
    language: bool = False


def _character(match: re.Match[str]) -> str | None:
    if match["name"]:
        return NAMED.get(match["name"])
    number = int(match["hex"], 16) if match["hex"] else int(match["decimal"])
    return chr(number) if 0 < number < 0x10FFFF and len(match[0]) <= 10 else None


def _decoded(text: str) -> str:
    return _REFERENCE.sub(lambda match: _character(match) or match[0], text)


class _Parser:
    def __init__(self, source: str) -> None:
        self.source = source
        self.parts: list[str] = []
        self.offset = 0
        self.open: list[_Open] = []
        self.entities: list[Json] = []

    def add(self, text: str) -> None:
        if text:
            self.parts.append(text)
            self.offset += utf16_length(text)

    def parse(self) -> tuple[str, list[Json]]:
        at, source = 0, self.source
        while (special := _SPECIAL.search(source, at)) is not None:
            self.add(source[at : special.start()])
            at = special.start()
            if source[at] == "&":
                reference = _REFERENCE.match(source, at)
                character = _character(reference) if reference else None
                self.add(character or "&")
                at = reference.end() if reference and character else at + 1
            elif source.startswith("</", at):
                at = self.end_tag(at)
            else:
                at = self.start_tag(at)
        self.add(source[at:])
        if self.open:
            raise ParseError(f"Can't find end tag corresponding to start tag {self.open[-1].tag}")
        text = "".join(self.parts)
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ParseError(
                "Text contains invalid Unicode characters after decoding HTML entities,"
                " check for unmatched surrogate code units"
            ) from None
        return text, in_order(self.entities)

    def start_tag(self, begin: int) -> int:
        where = byte_offset(self.source, begin)
        name = _NAME.match(self.source, begin + 1)
        at = name.end() if name else begin
        if name is None or at == len(self.source):
            raise ParseError(f"Unclosed start tag at byte offset {where}")
        tag = name[0].lower()
        if tag not in TAGS:
            raise ParseError(f'Unsupported start tag "{tag}" at byte offset {where}')
        attributes: dict[str, str] = {}
        while True:
            at += len(self.source[at:]) - len(self.source[at:].lstrip())
            if at >= len(self.source):
                raise ParseError(f"Unclosed start tag at byte offset {where}")
            if self.source[at] == ">":
                break
            attribute = _ATTRIBUTE.match(self.source, at)
            if attribute is None:
                raise ParseError(f'Empty attribute name in the tag "{tag}" at byte offset {where}')
            value = next((attribute[k] for k in ("double", "single", "bare") if attribute[k] is not None), "")
            attributes[attribute["name"].lower()] = _decoded(value)
            at = attribute.end()
            if at < len(self.source) and self.source[at] == "=":
                raise ParseError(f'Unclosed start tag "{tag}" at byte offset {where}')
        self.open.append(_Open(tag, self.argument(tag, attributes, where), self.offset, len(self.parts)))
        return at + 1

    def argument(self, tag: str, attributes: dict[str, str], where: int) -> str:
        if tag == "a":
            return attributes.get("href", "")
        if tag == "code" and attributes.get("class", "").startswith("language-"):
            return attributes["class"].removeprefix("language-")
        if tag == "span" and attributes.get("class") != "tg-spoiler":
            raise ParseError(f'Tag "span" must have class "tg-spoiler" at byte offset {where}')
        if tag == "blockquote":
            return "expandable" if "expandable" in attributes else ""
        return attributes.get("emoji-id", "") if tag == "tg-emoji" else ""

    def end_tag(self, begin: int) -> int:
        where = byte_offset(self.source, begin)
        if not self.open:
            raise ParseError(f"Unexpected end tag at byte offset {where}")
        end = self.source.find(">", begin)
        if end < 0 or len(self.source[begin + 2 : end].split()) > 1:
            raise ParseError(f"Unclosed end tag at byte offset {where}")
        found, expected = self.source[begin + 2 : end].strip().lower(), self.open[-1].tag
        if found and found != expected:
            raise ParseError(f'Unmatched end tag at byte offset {where}, expected "</{expected}>", found "</{found}>"')
        self.close(self.open.pop())
        return end + 1

    def close(self, tag: _Open) -> None:
        length = self.offset - tag.offset
        if length == 0:
            return
        entity: Json = {"type": TAGS[tag.tag], "offset": tag.offset, "length": length}
        last = self.entities[-1] if self.entities else None
        same = last is not None and last["offset"] == tag.offset and last["length"] == length
        if tag.tag == "a":
            made = link(tag.offset, length, tag.argument or "".join(self.parts[tag.text_at :]))
            self.entities += [made] if made else []
            return
        if tag.tag == "tg-emoji":
            if not tag.argument.isdigit() or int(tag.argument) == 0:
                raise ParseError("Invalid custom emoji identifier specified")
            entity["custom_emoji_id"] = tag.argument
        elif tag.tag == "blockquote" and tag.argument:
            entity["type"] = "expandable_blockquote"
        elif tag.tag == "pre" and same and last is not None and last["type"] == "code":
            # <pre><code class="language-x">: one entity with the language.
            self.entities.pop()
            entity.update({"language": last["language"]} if "language" in last else {})
        elif tag.tag == "code" and tag.argument and self.open and self.open[-1].tag == "pre":
            entity["language"] = tag.argument
        self.entities.append(entity)


def parse_html(source: str) -> tuple[str, list[Json]]:
    text, entities = _Parser(source).parse()
    for entity in entities:
        if entity["type"] == "code":
            entity.pop("language", None)
    return text, entities
