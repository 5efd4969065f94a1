"""/queues and /dlq: what admins see and steer."""

from __future__ import annotations

import uuid

from chronos.models.new_task import NewTask
from tests.bot.conftest import Bot, Who, buttons_of
from tests.processes import eventually


def dead_letters(bot: Bot, reasons: list[str], error_class: str = "PermanentError") -> None:
    for reason in reasons:
        task = bot.here.submit(NewTask("broadcast", "ping", {}))[0].id
        bot.sql(
            "update tasks set status = 'failed', error_message = :reason, finished_at = clock_timestamp() where id = :id",
            id=task, reason=reason,
        )  # fmt: skip
        bot.sql(
            "insert into dead_letters (id, task_id, original_queue, original_job_id, original_job_data, failure_reason,"
            " attempts_made, error_class, fingerprint) values (:letter, :id, 'broadcast', cast(:id as text), '{}',"
            " :reason, 1, :class, md5(:reason))",
            letter=uuid.uuid4(), id=task, reason=reason, **{"class": error_class},
        )  # fmt: skip


def test_a_queue_is_paused_for_a_time_and_resumed_by_button(bot: Bot, admin: Who) -> None:
    shown = admin.says("/queues")
    assert "доставка файлов" in shown["text"] and "⏸ доставка файлов" in buttons_of(shown)
    asked = admin.presses("⏸ доставка файлов")
    assert buttons_of(asked) == ["10 минут", "1 час", "Пока не возобновлю", "‹ Назад"]
    assert "доставка файлов: остановлена, ещё" in admin.presses("10 минут")["text"]
    paused = "select paused_until - paused_at between interval '9 minutes' and interval '11 minutes' from queue_states"
    assert bot.sql(f"{paused} where queue = 'delivery'") == [(True,)]
    assert "доставка файлов: пусто" in admin.presses("▶️ доставка файлов")["text"]
    admin.presses("⏸ доставка файлов")
    assert "остановлена до возобновления" in admin.presses("Пока не возобновлю")["text"]
    admin.presses("▶️ доставка файлов")


def test_dead_letters_are_grouped_retried_and_cleared_by_button(bot: Bot, admin: Who) -> None:
    bot.sql("delete from dead_letters")
    assert "Неудачных задач нет" in admin.says("/dlq")["text"]
    dead_letters(bot, ["the user has blocked the bot"] * 2 + ["KeyError('chat')"])
    listed = admin.says("/dlq")["text"]
    assert "⚠️ 3 задачи не удались" in listed
    assert "1. рассылки, 2: человек заблокировал бота" in listed
    assert "KeyError" not in listed and "внутренняя ошибка" in listed
    assert buttons_of(admin.presses("Показать 1")) == ["Повторить все (2)", "Забыть все (2)", "‹ Назад"]
    assert "1 задача не удалась" in admin.presses("Повторить все (2)")["text"]
    assert bot.sql("select count(*) from tasks where queue = 'broadcast' and status = 'pending'") == [(2,)]
    admin.presses("Показать 1")
    assert "Забыть 1 задачу?" in admin.presses("Забыть все (1)")["text"]
    assert bot.sql("select count(*) from dead_letters where retried_at is null") == [(1,)]
    assert "Неудачных задач нет" in admin.presses("Да, забыть")["text"]
    assert bot.sql("select count(*) from dead_letters where retried_at is null") == [(0,)]


def test_a_cause_that_is_gone_is_said_and_the_list_shown(bot: Bot, admin: Who) -> None:
    dead_letters(bot, ["the text is empty"])
    admin.says("/dlq")
    bot.sql("delete from dead_letters")
    assert admin.is_answered("Показать 1") == "Этих задач здесь больше нет"
    eventually(lambda: "Неудачных задач нет" in admin.last()["text"], 10)
