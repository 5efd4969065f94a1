"""What a card shows, from the facts of its task: one text and its buttons, in Russian and in English."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

from chronos import failures
from chronos.cards.facts import CardFacts
from chronos.cards.titles import effect_name, title_of, with_icon
from chronos.cards.waiting import why_it_waits
from chronos.language import language_of
from chronos.models.buttons import Button, Press, mark_of
from chronos.models.task import TaskStateRecord, short_id

if TYPE_CHECKING:
    from aiogram.types import InlineKeyboardMarkup

#: Cells of the progress bar.
CELLS = 8
#: Buttons of one card: Telegram takes 100, a person can tell apart fewer.
MOST_DOUBTS = 8

_BUTTONS = {
    "ru": {
        Press.CANCEL: "Отмена", Press.RETRY: "Повторить", Press.AGAIN: "Отправить ещё раз", Press.ARRIVED: "Дошло",
        Press.PDF: "PDF",
    },
    "en": {
        Press.CANCEL: "Cancel", Press.RETRY: "Try again", Press.AGAIN: "Send again", Press.ARRIVED: "It arrived",
        Press.PDF: "PDF",
    },
}  # fmt: skip

Row = list[tuple[str, Button]]


class Words(NamedTuple):
    text: str
    keyboard: InlineKeyboardMarkup | None

    @property
    def fingerprint(self) -> str:
        buttons = "" if self.keyboard is None else self.keyboard.model_dump_json()
        return hashlib.sha256(f"{self.text}\n{buttons}".encode()).hexdigest()[:32]


def words_of(facts: CardFacts, language: str) -> Words:
    text, rows = _said(facts, language)
    return Words(text, _keyboard(rows) if rows else None)


def _keyboard(rows: list[Row]) -> InlineKeyboardMarkup:
    from aiogram.types import InlineKeyboardButton, InlineKeyboardMarkup

    return InlineKeyboardMarkup(
        inline_keyboard=[
            [InlineKeyboardButton(text=label, callback_data=str(button)) for label, button in row] for row in rows
        ]
    )


def _said(facts: CardFacts, language: str) -> tuple[str, list[Row]]:
    task = facts.task
    cancel = _row(task, language, Press.CANCEL)
    if task.status == "pending":
        return _waits(facts, language), [cancel]
    if task.status == "in_progress":
        return _runs(task, language), [] if task.cancel_requested_at else [cancel]
    if task.status == "completed":
        return _done(task, language), [_row(task, language, Press.PDF)] if _has_pdf(task) else []
    if task.status == "failed":
        return _failed(task, language), [_row(task, language, Press.RETRY)]
    if task.status == "unknown":
        return _in_doubt(facts, language), _doubt_rows(facts, language)
    title = title_of(task, language)
    if task.status == "cancelled":
        return f"🚫 {title}: {'отменено' if language == 'ru' else 'cancelled'}", []
    late = (
        "не началось вовремя и уже не начнётся" if language == "ru" else "did not start in time and will not any more"
    )
    return f"⌛ {title}: {late}", []


def _row(task: TaskStateRecord, language: str, press: Press) -> Row:
    return [(_BUTTONS[language][press], Button(press, task.id))]


# ------------------------------------------------------------------------------------------------ before the end


def _waits(facts: CardFacts, language: str) -> str:
    task, title = facts.task, title_of(facts.task, language)
    why = why_it_waits(facts, language)
    if task.started_at is not None:
        return f"⏳ {title}: {why or ('сейчас продолжится' if language == 'ru' else 'goes on in a moment')}"
    accepted = "Задача принята в обработку" if language == "ru" else "The task was accepted"
    return f"✅ {accepted}. ID: {short_id(task.id)}\n{with_icon(task, language)}" + (f": {why}" if why else "")


def _runs(task: TaskStateRecord, language: str) -> str:
    title, progress = with_icon(task, language), task.progress or {}
    if task.cancel_requested_at is not None:
        return f"{title}: {'останавливаю…' if language == 'ru' else 'stopping…'}"
    note = str(progress.get("note") or ("выполняется" if language == "ru" else "running"))
    return f"{title}: {note}…" + _bar(progress.get("done"), progress.get("total"), language)


def _bar(done: float | None, total: float | None, language: str) -> str:
    if not total or done is None or total < 0:
        return ""
    share = min(max(done / total, 0.0), 1.0)
    filled = int(CELLS * share + 0.5) if share < 1 else CELLS
    space = "\u00a0" if language == "ru" else ""
    return f"\n{'▓' * filled}{'░' * (CELLS - filled)} {int(share * 100)}{space}%"


# ------------------------------------------------------------------------------------------------------ its end


def _done(task: TaskStateRecord, language: str) -> str:
    title, took = title_of(task, language), ""
    if task.started_at and task.finished_at:
        seconds = max(0.001, (task.finished_at - task.started_at).total_seconds())
        took = f" {'за' if language == 'ru' else 'in'} {language_of(language).duration(seconds)}"
    if task.task_name == "report":
        return f"{with_icon(task, language)} {'готов' if language == 'ru' else 'is ready'}{took}"
    return f"✅ {title}: {'готово' if language == 'ru' else 'done'}{took}"


def _has_pdf(task: TaskStateRecord) -> bool:
    """Whether a finished report can still be given as PDF."""
    return task.task_name == "report" and task.chat is not None and "pdf" not in task.params.get("parts", ["chart"])


def _failed(task: TaskStateRecord, language: str) -> str:
    why = failures.for_a_chat(task.error_message or "", task.error_class, language)
    if why is None:
        why = (
            f"внутренняя ошибка, администратор уже видит её. ID: {short_id(task.id)}" if language == "ru"
            else f"an internal error, the admin sees it already. ID: {short_id(task.id)}"
        )  # fmt: skip
    return f"❌ {title_of(task, language)}: {'не получилось' if language == 'ru' else 'it did not work'}: {why}"


def _in_doubt(facts: CardFacts, language: str) -> str:
    title, several = title_of(facts.task, language), len(facts.doubts) > 1
    if language == "ru":
        what = "сообщения могли дойти" if several else "сообщение могло дойти"
        look = "Посмотрите в чате, что пришло" if several else "Посмотрите в чате, пришло ли оно"
        return f"❓ {title}: ответ Telegram потерялся, {what}. {look}, и нажмите кнопку."
    what = "the messages may have arrived" if several else "the message may have arrived"
    look = "what came" if several else "whether it came"
    return f"❓ {title}: Telegram's answer got lost, {what}. Look in the chat {look}, then press a button."


def _doubt_rows(facts: CardFacts, language: str) -> list[Row]:
    """Two buttons for each message; of a task without a ledger of its own, for the whole task."""
    names, rows = _BUTTONS[language], []
    for number, key in enumerate(facts.doubts[:MOST_DOUBTS] or [""], start=1):
        mark = mark_of(key) if key else ""
        what = f": {effect_name(key, number, language)}" if len(facts.doubts) > 1 else ""
        rows.append(
            [(names[press] + what, Button(press, facts.task.id, mark)) for press in (Press.AGAIN, Press.ARRIVED)]
        )
    return rows
