"""Why something failed, in words that a reader of a chat understands: never an exception's name."""

from __future__ import annotations

import re

from chronos.reports.activity import Cause

#: A pattern of what was raised, and the same in Russian and in English; \\1 is what the pattern's group found.
_KNOWN: tuple[tuple[str, str, str], ...] = (
    (
        r"worker died while an effect was being made|may have (?:been made|arrived)",
        "связь оборвалась во время отправки: могло дойти",
        "the connection broke during a send: it may have arrived",
    ),
    (r"worker died|worker is dead", "процесс, который её выполнял, погиб", "the process that ran it died"),
    (
        r"TimeLimitExceeded|longer than its time limit|timed? ?out|TimeoutError",
        "не хватило отведённого времени",
        "it took longer than it may",
    ),
    (
        r"UnknownActor|no worker (?:knows|has known)",
        "ни один процесс не знает такой задачи",
        "no process knows such a task",
    ),
    (r"bot was blocked|has blocked the bot", "человек заблокировал бота", "the person has blocked the bot"),
    (r"chat not found|channel does not exist", "такого чата больше нет", "there is no such chat any more"),
    (
        r"not (?:a member|an administrator) of the channel|need administrator rights|not enough rights",
        "у бота нет прав в канале",
        "the bot has no rights in the channel",
    ),
    (r"answered (\d{3})", r"источник ответил ошибкой \1", r"the source answered with error \1"),
    (r"[Cc]onnection ?refused", "сервер не принимает соединений", "the server takes no connections"),
    (r"No space left|DiskFull", "кончилось место на диске", "the disk is full"),
)
_KNOWN_PATTERNS = tuple((re.compile(pattern), {"ru": russian, "en": english}) for pattern, russian, english in _KNOWN)

#: What only a programmer could read: the name of an exception, or nothing at all.
_TECHNICAL = re.compile(r"^\W*$|^[\w.]*(?:Error|Exception|Interrupt|Warning)\b|^'[^']*'$|Traceback|object at 0x")
_INSIDE = {"ru": "внутренняя ошибка, подробности в chronos dlq", "en": "an internal error, chronos dlq tells more"}

LONGEST = 110


def in_words(cause: Cause, language: str) -> str:
    for where in (cause.words, cause.error_class or ""):
        for pattern, words in _KNOWN_PATTERNS:
            if found := pattern.search(where):
                return found.expand(words[language])
    if _TECHNICAL.search(cause.words) or cause.words == cause.error_class:
        return _INSIDE[language]
    words = cause.words if len(cause.words) <= LONGEST else cause.words[: LONGEST - 1].rstrip() + "…"
    return f"«{words}»" if language == "ru" else f"“{words}”"
