"""What people call a task, and the messages that it sends."""

from __future__ import annotations

from typing import Any, Protocol

from chronos.errors import BadInput
from chronos.language import language_of
from chronos.models.period import Period

_EFFECTS = {"ru": {"chart": "график", "pdf": "PDF"}, "en": {"chart": "the chart", "pdf": "the PDF"}}


class Asked(Protocol):
    """What somebody asked for: a task's row, or a line of a list."""

    @property
    def task_name(self) -> str: ...

    @property
    def params(self) -> dict[str, Any]: ...


def title_of(task: Asked, language: str) -> str:
    if task.task_name == "report":
        return _report(task, language)
    return f"Задача {task.task_name}" if language == "ru" else f"Task {task.task_name}"


def with_icon(task: Asked, language: str) -> str:
    icon = "⚙️" if task.task_name != "report" else "📄" if task.params.get("parts") == ["pdf"] else "📊"
    return f"{icon} {title_of(task, language)}"


def _report(task: Asked, language: str) -> str:
    only_pdf = task.params.get("parts") == ["pdf"]
    if language == "ru":
        return ("PDF отчёта " if only_pdf else "Отчёт ") + _period(task.params.get("period", "7d"), language)
    return ("PDF of the report " if only_pdf else "Report ") + _period(task.params.get("period", "7d"), language)


def _period(asked: str, language: str) -> str:
    speak, to = language_of(language), "за" if language == "ru" else "for"
    try:
        period = Period.parse(asked)
    except BadInput:
        return f"{to} {asked}"
    if period.days is not None:
        today = "сегодня" if language == "ru" else "today"
        return f"{to} {today if period.days == 1 else speak.days_of(period.days)}"
    if period.first is None or period.last is None:
        return f"{to} {asked}"
    return f"{to} {speak.day(period.first) if period.first == period.last else speak.days(period.first, period.last)}"


def effect_name(key: str, number: int, language: str) -> str:
    """A message of a task, by its key in the ledger."""
    return _EFFECTS[language].get(key) or f"№ {number}"
