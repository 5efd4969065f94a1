"""Why something failed, in words that a reader of a chat understands: never an exception's name."""

from __future__ import annotations

import re

from chronos.telegram.reasons import SENTENCES

#: What the sender says of Telegram's answers, for Russian readers. The English sentences are its own.
_OF_TELEGRAM = {
    "blocked": "человек заблокировал бота",
    "deactivated": "человек удалил свой аккаунт",
    "not started": "человек ещё не запускал бота",
    "kicked": "бота удалили из чата",
    "not a member": "бот не состоит в чате",
    "no rights": "у бота нет на это прав в чате",
    "chat not found": "такого чата нет, или бот его никогда не видел",
    "too long": "текст длиннее, чем позволяет Telegram",
    "caption too long": "подпись длиннее, чем позволяет Telegram",
    "empty": "текст пустой",
    "bad formatting": "сломано оформление текста",
    "bad button": "в кнопке то, чего Telegram не позволяет",
    "bad file": "Telegram не знает этого файла или не может его прочитать",
    "bad link": "Telegram не смог скачать файл по его адресу",
    "file too big": "файл больше, чем позволяет Telegram",
    "file gone": "файла больше нет",
    "moved": "группа стала супергруппой",
    "message gone": "сообщения больше нет, или его нельзя изменить",
    "unknown method": "сервер Bot API не знает такого запроса",
    "redirected": "адрес сервера Bot API ведёт в другое место",
    "refused": "Telegram отказал",
    "unsure": "ответ Telegram потерялся: сообщение могло дойти",
    "unreachable": "Telegram недоступен",
    "busy": "Telegram просит подождать",
    "budget": "лимит бота исчерпан",
    "chat limit": "лимит чата исчерпан",
    "database": "база данных не отвечает",
    "stopped": "Telegram не принимает токен бота",
    "other bot": "у процесса токен другого бота",
}
_SENTENCES = {
    sentence: {"ru": _OF_TELEGRAM.get(reason, sentence), "en": sentence} for reason, sentence in SENTENCES.items()
}

#: A pattern of what else is raised, and the same in Russian and in English; \\1 is what the pattern's group found.
_KNOWN = tuple(
    (re.compile(pattern), {"ru": russian, "en": english})
    for pattern, russian, english in (
        (r"^the report to make again is not there", "того отчёта больше нет: попросите новый",
         "that report is no longer there: ask for a new one"),
        (r"expired before its effect|not started in time", "она опоздала и поэтому не выполнена",
         "it was late, so it was not done"),
        (r"stored params do not fit", "задача записана в старом виде: попросите её заново",
         "the task was written in an old form: ask for it again"),
        (r"while an effect was being made|may have been made", "отправка оборвалась: сообщение могло дойти",
         "a send was cut short: the message may have arrived"),
        (r"the worker died", "процесс, который её выполнял, погиб", "the process that ran it died"),
        (r"TimeLimitExceeded|[Tt]imed out|TimeoutError", "не хватило отведённого времени",
         "it took longer than it may"),
        (r"UnknownActor", "ни один процесс не знает такой задачи", "no process knows such a task"),
        (r"answered (\d{3})", r"источник ответил ошибкой \1", r"the source answered with error \1"),
        (r"[Cc]onnection ?[Rr]efused", "сервер не принимает соединений", "the server takes no connections"),
        (r"No space left", "кончилось место на диске", "the disk is full"),
    )
)  # fmt: skip

#: What only a programmer could read: the name of an exception, or nothing at all.
_TECHNICAL = re.compile(r"^\W*$|^[\w.]*(?:Error|Exception|Interrupt|Warning)\b|^'[^']*'$|Traceback|object at 0x")

LONGEST = 110


def known(words: str, error_class: str | None, language: str) -> str | None:
    """What happened, when it is one of the things that we have words for; no full stop at its end."""
    if words in _SENTENCES:
        return _SENTENCES[words][language]
    for where in (words, error_class or ""):
        for pattern, said in _KNOWN:
            if found := pattern.search(where):
                return found.expand(said[language])
    return None


def is_technical(words: str, error_class: str | None) -> bool:
    """Whether only a programmer could read it."""
    return _TECHNICAL.search(words) is not None or words == error_class


def quoted(words: str, language: str) -> str:
    shown = words if len(words) <= LONGEST else words[: LONGEST - 1].rstrip() + "…"
    return f"«{shown}»" if language == "ru" else f"“{shown}”"


def for_a_chat(words: str, error_class: str | None, language: str) -> str | None:
    """The same for somebody who has no command line; None: they are told that it was an error of ours.

    An actor's own PermanentError is written for people. One in a script that the reader may not read is not shown.
    """
    if said := known(words, error_class, language):
        return said
    readable = language == "en" or re.search("[а-яё]", words, re.IGNORECASE)
    if error_class == "PermanentError" and readable and not is_technical(words, error_class):
        return quoted(words, language)
    return None
