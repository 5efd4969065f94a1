"""The old parse mode Markdown: no nesting, and one complaint."""

from __future__ import annotations

import re

from telegram_sandbox.errors import Json
from telegram_sandbox.markup.entities import ParseError, byte_offset, link, utf16_length

_SPECIAL = re.compile(r"\\[_*`\[]|[_*`\[]")
KINDS = {"_": "italic", "*": "bold", "`": "code"}


def parse_markdown(source: str) -> tuple[str, list[Json]]:
    parts: list[str] = []
    entities: list[Json] = []
    offset = at = 0

    def add(text: str) -> None:
        nonlocal offset
        parts.append(text)
        offset += utf16_length(text)

    while (special := _SPECIAL.search(source, at)) is not None:
        add(source[at : special.start()])
        at = special.end()
        mark = special[0]
        if len(mark) == 2:
            add(mark[1])
            continue
        fence = mark == "`" and source.startswith("``", at)
        language = ""
        if fence:
            language, at = opened_fence(source, at + 2)
        closing = "```" if fence else "]" if mark == "[" else mark
        end = source.find(closing, at)
        if end < 0:
            where = byte_offset(source, special.start())
            raise ParseError(f"Can't find end of the entity starting at byte offset {where}")
        words, start = source[at:end], offset
        add(words)
        at = end + len(closing)
        url = words
        if mark == "[" and source.startswith("(", at):
            closed = source.find(")", at)
            closed = len(source) if closed < 0 else closed
            url, at = source[at + 1 : closed], closed + 1
        if words:
            place = {"offset": start, "length": offset - start}
            if mark == "[":
                made = link(start, offset - start, url)
                entities += [made] if made else []
            elif fence:
                entities.append({"type": "pre", **place, **({"language": language} if language else {})})
            else:
                entities.append({"type": KINDS[mark], **place})
    add(source[at:])
    return "".join(parts), entities


def opened_fence(source: str, at: int) -> tuple[str, int]:
    """The language of a code block, if one is named, and where its text begins: one line break is skipped."""
    language = ""
    name = re.compile(r"[^\s`]+").match(source, at)
    if name and name.end() < len(source) and source[name.end()] != "`":
        language, at = name[0], name.end()
    if source[at : at + 1] == "\n":
        at += 1
    return language, at
