"""One line to the admins about what failed: grouped, at most one a minute, in each admin's language."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text

from chronos import alarms
from chronos.runtime import Runtime
from tests.cards.conftest import ADMIN, Chat
from tests.processes import eventually

LETTER = """insert into dead_letters (id, original_queue, original_job_id, original_job_data, failure_reason,
    attempts_made, error_class, fingerprint)
    values (gen_random_uuid(), 'report', 'x', '{}', '''chat''', 1, 'KeyError', :mark)"""
ALARMS = "select extract(epoch from run_at)::float, status from tasks where task_name = 'alarm' order by run_at"


def rows(runtime: Runtime, statement: str, **facts: Any) -> list[Any]:
    with runtime.database.statement() as connection:
        result = connection.execute(text(statement), facts)
        return [tuple(row) for row in result] if result.returns_rows else []


def test_admins_get_one_line_about_all_that_failed_alike(chat: Chat) -> None:
    chat.sandbox.start(as_=ADMIN, bot=chat.bot)
    chat.sql("insert into bots (id) values (:bot)", bot=chat.bot)
    chat.sql("insert into users (id, language_code, role) values (:id, 'ru', 'admin')", id=ADMIN)
    # An admin who never started the bot keeps nobody from being told.
    chat.sql("insert into users (id, role) values (1002, 'admin')")
    # All three before the alarm looks, however slow this machine is.
    chat.sql("insert into queue_states (queue, paused_at) values ('system', clock_timestamp())")
    for _ in range(3):
        chat.submit(card=False, fail="the bot is not a member of the chat", permanent=True)
    eventually(lambda: chat.sql("select count(*) from dead_letters") == [(3,)])
    chat.sql("delete from queue_states")
    told = chat.becomes("⚠️ post: 3 задачи не удались, одна причина: бот не состоит в чате", who=ADMIN)
    buttons = chat.messages(ADMIN)[-1]["reply_markup"]["inline_keyboard"][0]
    cause = chat.sql("select left(fingerprint, 8) from dead_letters limit 1")[0][0]
    assert [(button["text"], button["callback_data"]) for button in buttons] == [
        ("Показать", f"dlq:show:{cause}:post"), ("Повторить все", f"dlq:retry:{cause}:post"),
    ]  # fmt: skip
    chat.settled()
    assert chat.texts(ADMIN) == told
    assert chat.sql("select count(*) from dead_letters where told_at is null") == [(0,)]
    assert chat.sql("select status from tasks where task_name = 'alarm'") == [("completed",)]


def test_letters_gather_for_one_alarm(runtime: Runtime) -> None:
    rows(runtime, "insert into bots (id) values (8)")
    for _ in range(3):
        rows(runtime, LETTER, mark="a")
    assert len(rows(runtime, ALARMS)) == 1


def test_the_next_alarm_comes_a_minute_after_the_last_one(runtime: Runtime) -> None:
    rows(runtime, "insert into bots (id) values (8)")
    rows(runtime, LETTER, mark="a")
    rows(runtime, "update tasks set status = 'completed', finished_at = now(), started_at = now()")
    for _ in range(3):
        rows(runtime, LETTER, mark="a")
    (first, _), (second, status) = rows(runtime, ALARMS)
    assert second - first == pytest.approx(60) and status == "pending"


def test_an_alarm_that_has_begun_does_not_stand_for_what_comes_later(runtime: Runtime) -> None:
    rows(runtime, "insert into bots (id) values (8)")
    rows(runtime, LETTER, mark="a")
    rows(runtime, "update tasks set started_at = now(), run_at = now() + interval '5 seconds'")
    rows(runtime, LETTER, mark="a")
    assert len(rows(runtime, ALARMS)) == 2


def test_without_a_bot_there_is_nobody_to_tell(runtime: Runtime) -> None:
    rows(runtime, LETTER, mark="a")
    assert rows(runtime, ALARMS) == []


def test_an_alarm_that_fails_raises_no_alarm(runtime: Runtime) -> None:
    rows(runtime, "insert into bots (id) values (8)")
    rows(
        runtime, "insert into tasks (id, queue, task_name, max_attempts) select gen_random_uuid(), 'system', 'alarm', 3"
    )
    id_ = rows(runtime, "select id from tasks")[0][0]
    rows(runtime, LETTER.replace("(id,", "(task_id, id,").replace("values (", "values (:task, "), mark="a", task=id_)
    assert len(rows(runtime, ALARMS)) == 1


def test_an_update_that_is_put_aside_is_told(runtime: Runtime) -> None:
    rows(runtime, "insert into bots (id) values (8)")
    rows(runtime, "insert into updates (bot_id, update_id, chat, payload) values (8, 1, 1, '{}')")
    assert rows(runtime, ALARMS) == []
    rows(runtime, "update updates set put_aside_at = now(), error = 'x'")
    assert len(rows(runtime, ALARMS)) == 1
    id_ = rows(runtime, "select id from tasks")[0][0]
    with runtime.database.transaction() as connection:
        news = alarms.take(connection, id_)
    assert alarms.words_of(news, "ru") == "⚠️ 1 сообщение боту не удалось обработать, отложено"
    assert alarms.words_of(news, "en") == "⚠️ 1 message to the bot could not be handled and was put aside"
    assert rows(runtime, "select result_payload from tasks")[0][0] == news
    with runtime.database.transaction() as connection:
        assert alarms.words_of(alarms.take(connection, id_), "ru") is None


def test_several_causes_are_one_line(runtime: Runtime) -> None:
    rows(runtime, "insert into bots (id) values (8)")
    for mark in "aabc":
        rows(runtime, LETTER, mark=mark)
    id_ = rows(runtime, "select id from tasks")[0][0]
    with runtime.database.transaction() as connection:
        news = alarms.take(connection, id_)
    assert alarms.words_of(news, "ru") == "⚠️ report: 4 задачи не удались, 3 причины, чаще всего: внутренняя ошибка"
    assert alarms.words_of(news, "en") == "⚠️ report: 4 tasks failed, 3 causes, most often: an internal error"


def test_admins_of_the_setting_are_told_too(runtime: Runtime) -> None:
    runtime.settings.admins = "5, 6"
    rows(runtime, "insert into users (id, role, language) values (6, 'admin', 'ru'), (7, 'user', 'ru')")
    assert [(admin.id, admin.language) for admin in alarms.admins(runtime)] == [(5, "en"), (6, "ru")]
