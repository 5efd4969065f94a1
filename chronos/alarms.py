"""What the admins are told of: dead letters and updates that were put aside; in one line, at most once a minute."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, text

from chronos import failures
from chronos.language import language_for, language_of
from chronos.runtime import Runtime

if TYPE_CHECKING:
    from aiogram.methods import SendMessage

#: What the buttons send: the bot's list of dead letters; of a single cause, that cause, and all of it again.
LIST, SHOW, RETRY = "dlq:", "dlq:show:{cause}:{queue}", "dlq:retry:{cause}:{queue}"

_TAKE = text("""
with letters as (
  update dead_letters set told_at = clock_timestamp() where told_at is null
  returning original_queue, error_class, failure_reason, fingerprint, retried_at
), aside as (
  update updates set told_at = clock_timestamp() where put_aside_at is not null and told_at is null returning 1
), causes as (
  select original_queue as queue, left(fingerprint, 8) as cause, min(error_class) as error_class,
    min(failure_reason) as reason, count(*) as number
  from letters where retried_at is null group by 1, 2
), news as (
  select jsonb_build_object(
    'failed', coalesce(sum(number), 0), 'causes', count(*), 'queues', count(distinct queue),
    'worst', (select to_jsonb(c) from causes c order by number desc, reason limit 1),
    'aside', (select count(*) from aside)) as facts
  from causes
)
update tasks set result_payload = news.facts from news where id = :id returning result_payload
""")


def take(connection: Connection, alarm_id: uuid.UUID) -> dict[str, Any]:
    """Mark all that nobody was told of, and keep what it comes to with the alarm, in the caller's transaction."""
    found = connection.execute(_TAKE, {"id": alarm_id}).scalar_one()
    return dict(found) if isinstance(found, dict) else dict(json.loads(found))


@dataclass(frozen=True)
class Admin:
    id: int
    language: str


_ADMINS = text("""
select a.id, u.language, u.language_code
from (select id from users where role = 'admin' union select unnest(cast(:ids as bigint[]))) a
left join users u on u.id = a.id order by a.id
""")


def admins(runtime: Runtime) -> list[Admin]:
    with runtime.database.statement() as connection:
        rows = connection.execute(_ADMINS, {"ids": sorted(runtime.settings.admin_ids)}).all()
    return [Admin(row.id, language_for(row.language, row.language_code)) for row in rows]


def words_of(news: dict[str, Any], language: str) -> str | None:
    """One line; None: there is nothing to tell."""
    said = [line for line in (_failed(news, language), _aside(news["aside"], language)) if line]
    return "⚠️ " + "; ".join(said) if said else None


def _failed(news: dict[str, Any], language: str) -> str:
    number, worst = news["failed"], news["worst"]
    if not number or worst is None:
        return ""
    speak = language_of(language)
    why = failures.known(worst["reason"], worst["error_class"], language)
    if why is None:
        technical = failures.is_technical(worst["reason"], worst["error_class"])
        inside = "внутренняя ошибка" if language == "ru" else "an internal error"
        why = inside if technical else failures.quoted(worst["reason"], language)
    count, causes = speak.number(number), speak.number(news["causes"])
    where, most = (f"{worst['queue']}: ", "") if news["queues"] == 1 else ("", f" {worst['queue']}")
    if language == "ru":
        tasks = speak.plural(number, one="задача не удалась", few="задачи не удались", many="задач не удались")
        if news["causes"] == 1:
            return f"{where}{count} {tasks}" + (", одна причина" if number > 1 else "") + f": {why}"
        of = speak.plural(news["causes"], one="причина", few="причины", many="причин")
        return f"{where}{count} {tasks}, {causes} {of}, чаще всего{most}: {why}"
    tasks = speak.plural(number, one="task failed", other="tasks failed")
    if news["causes"] == 1:
        return f"{where}{count} {tasks}" + (", one cause" if number > 1 else "") + f": {why}"
    return f"{where}{count} {tasks}, {causes} causes, most often{most}: {why}"


def _aside(number: int, language: str) -> str:
    if not number:
        return ""
    speak = language_of(language)
    if language == "ru":
        what = speak.plural(number, one="сообщение боту", few="сообщения боту", many="сообщений боту")
        return f"{speak.number(number)} {what} не удалось обработать, отложено"
    what = speak.plural(number, one="message to the bot", other="messages to the bot")
    return f"{speak.number(number)} {what} could not be handled and {'was' if number == 1 else 'were'} put aside"


def message_to(admin: Admin, words: str, news: dict[str, Any]) -> SendMessage:
    from aiogram.methods import SendMessage
    from aiogram.types import InlineKeyboardButton, InlineKeyboardMarkup

    ru, number = admin.language == "ru", news["failed"]
    show, again = ("Показать" if ru else "Show"), ("Повторить" if ru else "Try again")
    data = [(show, LIST)]
    if news["causes"] == 1:
        data = [(show, SHOW.format(**news["worst"]))]
        if number > 1:
            again = "Повторить все" if ru else "Try all again"
        data.append((again, RETRY.format(**news["worst"])))
    row = [InlineKeyboardButton(text=label, callback_data=said) for label, said in data]
    return SendMessage(chat_id=admin.id, text=words, reply_markup=InlineKeyboardMarkup(inline_keyboard=[row]))
