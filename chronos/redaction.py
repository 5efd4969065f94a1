"""Secrets of this process by value: wherever a text leaves it (a log, a stored error, a traceback) they are hidden."""

from __future__ import annotations

from urllib.parse import quote

HIDDEN = "***"
#: A shorter text is no secret, and hiding it would garble others.
SHORTEST = 8

_hidden: tuple[str, ...] = ()


def hide(secret: str) -> None:
    """Never show this value again. Of a bot token the digits stay: they say which bot, and everybody may know them."""
    global _hidden
    value = secret.rpartition(":")[2]
    if len(value) < SHORTEST or value in _hidden:
        return
    # Longest first: a secret may be a part of another.
    _hidden = tuple(sorted({*_hidden, value, quote(value, safe="")}, key=len, reverse=True))


def without_secrets(text: str) -> str:
    for value in _hidden:
        if value in text:
            text = text.replace(value, HIDDEN)
    return text
