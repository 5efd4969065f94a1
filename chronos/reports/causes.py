"""The cause of failures in a report: in words that we have, else as it was said."""

from __future__ import annotations

from chronos.failures import is_technical, known, quoted
from chronos.reports.activity import Cause

_INSIDE = {"ru": "внутренняя ошибка, подробности в chronos dlq", "en": "an internal error, chronos dlq tells more"}


def in_words(cause: Cause, language: str) -> str:
    if said := known(cause.words, cause.error_class, language):
        return said
    return _INSIDE[language] if is_technical(cause.words, cause.error_class) else quoted(cause.words, language)
