"""Entities and their places, counted in UTF-16 units as Telegram counts them; those that Telegram finds by itself."""

from __future__ import annotations

import re

from telegram_sandbox.errors import Json


class ParseError(Exception):
    """Told to the bot after "can't parse entities: "."""


def utf16_length(text: str) -> int:
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def byte_offset(source: str, index: int) -> int:
    return len(source[:index].encode())


def in_order(entities: list[Json]) -> list[Json]:
    """As Telegram lists them: by place, the outer one first."""
    return sorted(entities, key=lambda entity: (entity["offset"], -entity["length"]))


def trimmed(text: str, entities: list[Json]) -> tuple[str, list[Json]]:
    """Without white space at both ends; what an entity loses with it is cut off."""
    shown = text.strip()
    gone = utf16_length(text[: len(text) - len(text.lstrip())])
    length = utf16_length(shown)
    kept = []
    for entity in entities:
        start = max(0, entity["offset"] - gone)
        end = min(length, entity["offset"] + entity["length"] - gone)
        if end > start:
            kept.append({**entity, "offset": start, "length": end - start})
    return shown, kept


def link(offset: int, length: int, url: str) -> Json | None:
    """None: Telegram shows the text and forgets what is no link."""
    mention = re.fullmatch(r"tg:(?://)?user\?id=(\d{1,15})", url, re.IGNORECASE)
    if mention:
        user = {"id": int(mention[1]), "is_bot": False, "first_name": "User"}
        return {"type": "text_mention", "offset": offset, "length": length, "user": user}
    if not re.match(r"[a-z][a-z0-9+.-]*:", url, re.IGNORECASE):
        url = f"http://{url}"
    match = re.fullmatch(r"(https?|ftp|tg|ton|tonsite)://([^/?#\s]+)([/?#]\S*)?", url, re.IGNORECASE)
    if match is None:
        return None
    scheme, host, rest = match[1].lower(), match[2].lower(), match[3] or ""
    if scheme.startswith("http") and "." not in host.rsplit("@")[-1] and not host.startswith(("localhost", "[")):
        return None
    if scheme.startswith("http") and not rest.startswith("/"):
        rest = f"/{rest}"
    return {"type": "text_link", "offset": offset, "length": length, "url": f"{scheme}://{host}{rest}"}


_TOP_LEVEL = (
    "com|org|net|info|biz|io|me|dev|app|ai|ru|su|рф|de|fr|uk|eu|us|by|kz|ua|ch|at|it|es|nl|pl|cz|tv|co|in|cn|jp"
)
_FOUND = re.compile(
    r"(?P<email>(?<![\w.+-])[\w.+-]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,})"
    r"|(?P<url>(?<![\w@])(?:(?:https?|tg|ftp)://[^\s<>\"«»]+"
    rf"|(?:[\w-]+\.)+(?:{_TOP_LEVEL})(?::\d{{1,5}})?(?![\w-])(?:[/?\#][^\s<>\"«»]*)?))"
    r"|(?P<bot_command>(?<![\w/@<>])/[A-Za-z0-9_]{1,64}(?:@[A-Za-z0-9_]{3,32})?(?![\w/]))"
    r"|(?P<mention>(?<![\w@/])@[A-Za-z0-9_]{4,32}(?!\w))"
    r"|(?P<hashtag>(?<![\w&#])#(?=\w*[^\W\d])\w{1,256})",
    re.IGNORECASE,
)
_HINT = re.compile(r"[@/#.]")
_CLOSED = frozenset({"code", "pre", "text_link", "text_mention"})


def found_in(text: str) -> list[Json]:
    """Commands, mentions, hashtags, addresses."""
    if _HINT.search(text) is None:
        return []
    found = []
    for match in _FOUND.finditer(text):
        words, kind = match[0], match.lastgroup
        if kind == "url":
            words = words.rstrip(".,:;!?'…")
            while words.endswith(")") and words.count(")") > words.count("("):
                words = words[:-1].rstrip(".,:;!?'…")
        found.append({"type": kind, "offset": utf16_length(text[: match.start()]), "length": utf16_length(words)})
    return found


def with_found(text: str, entities: list[Json]) -> list[Json]:
    found = found_in(text)
    closed = [(e["offset"], e["offset"] + e["length"]) for e in entities if e["type"] in _CLOSED]
    free = [e for e in found if not any(e["offset"] < end and e["offset"] + e["length"] > at for at, end in closed)]
    return in_order(entities + free) if free else in_order(entities) if len(entities) > 1 else entities
