"""The parse mode MarkdownV2: nesting, quotes, and the characters that must be escaped."""

from __future__ import annotations

import re
from dataclasses import dataclass

from telegram_sandbox.errors import Json
from telegram_sandbox.markup.entities import ParseError, byte_offset, in_order, link, utf16_length
from telegram_sandbox.markup.markdown import opened_fence

NAMES = {
    "bold": "Bold",
    "italic": "Italic",
    "underline": "Underline",
    "strikethrough": "Strikethrough",
    "spoiler": "Spoiler",
    "code": "Code",
    "pre": "Pre",
    "text_link": "TextUrl",
    "custom_emoji": "CustomEmoji",
    "blockquote": "BlockQuote",
}
#: Longer marks first.
MARKS = {"__": "underline", "||": "spoiler", "![": "custom_emoji", "_": "italic", "*": "bold", "~": "strikethrough"}
ENDS = {
    **{kind: mark for mark, kind in MARKS.items()},
    "custom_emoji": "]",
    "text_link": "]",
    "code": "`",
    "pre": "```",
}

_PLAIN = re.compile(r"[^\\_*\[\]()~`>#+\-=|{}.!\n]+")
_PLAIN_IN_CODE = re.compile(r"[^\\`]+")


@dataclass
class _Open:
    kind: str
    offset: int  # UTF-16
    at: int
    text_at: int
    language: str = ""


class _Parser:
    def __init__(self, source: str) -> None:
        self.source = source
        self.parts: list[str] = []
        self.offset = 0
        self.at = 0
        self.open: list[_Open] = []
        self.quoted = False
        self.entities: list[Json] = []

    def add(self, text: str) -> None:
        self.parts.append(text)
        self.offset += utf16_length(text)

    def parse(self) -> tuple[str, list[Json]]:
        source = self.source
        while self.at < len(source):
            inside = self.open[-1].kind if self.open else ""
            in_code = inside in ("code", "pre")
            if plain := (_PLAIN_IN_CODE if in_code else _PLAIN).match(source, self.at):
                self.add(plain[0])
                self.at = plain.end()
            elif source[self.at] == "\\":
                escapes = "\x00" < source[self.at + 1 : self.at + 2] <= "\x7e"
                self.add(source[self.at + 1] if escapes else "\\")
                self.at += 2 if escapes else 1
            elif source[self.at] == "\n" and self.quoted and not source.startswith(">", self.at + 1):
                self.end_quote()
                self.add("\n")
                self.end_entity_of_quote()
                self.at += 1
            elif self.ends(inside):
                self.close()
            elif in_code:
                self.add("`")
                self.at += 1
            else:
                self.begin()
        if self.quoted:
            self.end_quote()
            self.end_entity_of_quote()
        if self.open:
            raise self.no_end(self.open[-1])
        return "".join(self.parts), in_order(self.entities)

    def ends(self, inside: str) -> bool:
        if inside == "italic" and self.source.startswith("__", self.at):
            return False
        return inside in ENDS and self.source.startswith(ENDS[inside], self.at)

    def no_end(self, entity: _Open) -> ParseError:
        name = "PreCode" if entity.kind == "pre" and entity.language else NAMES[entity.kind]
        return ParseError(f"Can't find end of {name} entity at byte offset {byte_offset(self.source, entity.at)}")

    def begin(self) -> None:
        source, at = self.source, self.at
        if source[at] == "\n":
            self.add("\n")
            self.at += 1
            if source.startswith(">", self.at):
                self.at += 1
                if not self.quoted:
                    self.start("blockquote", at + 1)
        elif source.startswith("**>", at) and (at == 0 or source[at - 1] == "\n"):
            # An empty bold between two quotes separates them.
            self.at += 3
            self.start("blockquote", at + 2)
        elif source[at] == ">" and at == 0:
            self.at += 1
            self.start("blockquote", at)
        elif source.startswith("```", at):
            language, begin = opened_fence(source, at + 3)
            self.at = begin
            self.start("pre", at, language)
        elif source[at] == "`":
            self.at += 1
            self.start("code", at)
        elif source[at] == "[":
            self.at += 1
            self.start("text_link", at)
        elif mark := next((mark for mark in MARKS if source.startswith(mark, at)), None):
            self.at += len(mark)
            self.start(MARKS[mark], at)
        else:
            raise ParseError(f"Character '{source[at]}' is reserved and must be escaped with the preceding '\\'")

    def start(self, kind: str, at: int, language: str = "") -> None:
        self.quoted = self.quoted or kind == "blockquote"
        self.open.append(_Open(kind, self.offset, at, len(self.parts), language))

    def close(self) -> None:
        entity = self.open.pop()
        self.at += len(ENDS[entity.kind])
        length = self.offset - entity.offset
        made: Json | None = {"type": entity.kind, "offset": entity.offset, "length": length}
        if entity.kind == "text_link":
            url = self.url("a URL") if self.source.startswith("(", self.at) else None
            made = link(entity.offset, length, "".join(self.parts[entity.text_at :]) if url is None else url)
        elif entity.kind == "custom_emoji":
            if not self.source.startswith("(", self.at):
                raise ParseError("Custom emoji entity must contain a tg://emoji URL")
            found = re.fullmatch(
                r"tg:(?://)?emoji/?\?(?:.*&)?id=([1-9]\d*)(?:[&#].*)?", self.url("a custom emoji URL"), re.I
            )
            if found is None:
                raise ParseError("Invalid custom emoji identifier specified")
            made = {"type": "custom_emoji", "offset": entity.offset, "length": length, "custom_emoji_id": found[1]}
        elif entity.language:
            made = {"type": "pre", "offset": entity.offset, "length": length, "language": entity.language}
        if made and length:
            self.entities.append(made)

    def url(self, what: str) -> str:
        begin, at = self.at, self.at + 1
        url: list[str] = []
        while at < len(self.source) and self.source[at] != ")":
            if self.source[at] == "\\" and "\x00" < self.source[at + 1 : at + 2] <= "\x7e":
                at += 1
            url.append(self.source[at])
            at += 1
        if at >= len(self.source):
            raise ParseError(f"Can't find end of {what} at byte offset {byte_offset(self.source, begin + 1)}")
        self.at = at + 1
        return "".join(url)

    def end_quote(self) -> None:
        """A last "||" of a quote, opened and never closed, hides the rest of it: an expandable quote."""
        last = self.open[-1]
        if last.kind == "spoiler" and last.offset == self.offset and len(self.open) > 1:
            self.open.pop()
            self.open[-1].language = "expandable" if self.open[-1].kind == "blockquote" else ""
        if self.open[-1].kind != "blockquote":
            raise self.no_end(self.open[-1])

    def end_entity_of_quote(self) -> None:
        quote = self.open.pop()
        self.quoted = False
        kind = "expandable_blockquote" if quote.language else "blockquote"
        if self.offset > quote.offset:
            self.entities.append({"type": kind, "offset": quote.offset, "length": self.offset - quote.offset})


def parse_markdown_v2(source: str) -> tuple[str, list[Json]]:
    return _Parser(source).parse()
