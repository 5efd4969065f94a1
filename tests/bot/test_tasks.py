"""/report, /status, /tasks, /cancel: one task per wish, everybody sees their own."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

from chronos.models.new_task import NewTask
from chronos.models.user import Role
from tests.bot.conftest import Bot, Who, buttons_of, call
from tests.processes import eventually


def waiting_task(bot: Bot, who: Who, queue: str = "post", name: str = "ping") -> uuid.UUID:
    later = datetime.now(UTC) + timedelta(hours=1)
    return bot.here.submit(NewTask(queue, name, {}, user_id=who.id, chat=who.id, bot_id=bot.id, run_at=later))[0].id


def test_a_report_is_asked_for_by_buttons_and_acknowledged_with_its_id(bot: Bot, user: Who) -> None:
    asked = user.says("/report")
    assert asked["text"] == "За какой срок сделать отчёт?"
    assert buttons_of(asked) == ["Сегодня", "7 дней", "30 дней", "Отмена"]
    card = user.presses("7 дней")
    [(task, params, key)] = bot.sql(
        "select id::text, params, idempotency_key from tasks where user_id = :id", id=user.id
    )
    assert card["message_id"] == asked["message_id"]
    assert card["text"].startswith(f"✅ Задача принята в обработку. ID: {task[:13]}")
    assert params == {"period": "7d", "language": "ru", "zone": "Europe/Moscow"}
    assert key.startswith(f"bot:{bot.id}:")
    assert bot.sql("select chat, message_id from cards where task_id = :id", id=task) == [(user.id, card["message_id"])]


def test_a_repeated_tap_is_the_same_task(bot: Bot, user: Who) -> None:
    asked = user.says("/generate_report")
    data = [button["callback_data"] for row in asked["reply_markup"]["inline_keyboard"] for button in row]
    sender = {"id": user.id, "is_bot": False, "first_name": "x", "language_code": "ru"}
    for number, pressed in enumerate((data[1], data[1], data[2]), start=1):
        query = {"id": str(number), "from": sender, "message": asked, "chat_instance": "1", "data": pressed}
        bot.deliver({"update_id": 2_100_000_000 + number, "callback_query": query})
    done = "select count(*) from updates where chat = :id and handled_at is null"
    eventually(lambda: bot.sql(done, id=user.id) == [(0,)], 20)
    assert bot.sql("select count(*), min(params ->> 'period') from tasks where user_id = :id", id=user.id) == [
        (1, "7d")
    ]


def test_a_period_can_be_written(bot: Bot, user: Who) -> None:
    said = user.says("/report 2026-11-01..2026-11-05")
    assert "Задача принята" in said["text"] and "Отмена" in buttons_of(said)
    card = "select message_id from cards where chat = :id"
    eventually(lambda: bot.sql(card, id=user.id) == [(said["message_id"],)], 10)
    assert "не похоже на период" in user.says("/report <b>завтра")["text"]


def test_the_zone_is_asked_before_the_first_report_and_the_report_goes_on(bot: Bot) -> None:
    newcomer = bot.new(Role.USER, zone=None)
    asked = newcomer.says("/report 30d")
    assert buttons_of(asked) == ["Москва", "Берлин", "Другой"]
    card = newcomer.presses("Берлин")
    assert "Задача принята" in card["text"] and card["message_id"] == asked["message_id"]
    assert bot.sql("select params ->> 'zone', params ->> 'period' from tasks where user_id = :id", id=newcomer.id) == [
        ("Europe/Berlin", "30d")
    ]
    assert "За какой срок" in newcomer.says("/report")["text"]


def test_a_city_can_be_typed_as_zone(bot: Bot) -> None:
    newcomer = bot.new(Role.USER, zone=None)
    newcomer.says("/report")
    assert "Напишите город" in newcomer.presses("Другой")["text"]
    assert "Не нашёл «Урюпинск<>»" in newcomer.says("Урюпинск<>")["text"]
    confirm = newcomer.says("алматы")
    assert "Asia/Almaty" in confirm["text"] and buttons_of(confirm) == ["Да, верно", "Нет, другой"]
    assert "За какой срок" in newcomer.presses("Да, верно")["text"]
    assert bot.sql("select time_zone from users where id = :id", id=newcomer.id) == [("Asia/Almaty",)]


def test_status_lists_ones_own_tasks_and_tells_the_story_of_one(bot: Bot, user: Who) -> None:
    task = waiting_task(bot, user)
    listed = user.says("/status")
    assert "Задача ping" in listed["text"] and str(task)[:13] in listed["text"]
    story = user.presses(f"⏳ {str(task)[:13]}")
    assert "начнётся" in story["text"] and "задача принята" in story["text"]
    assert "начнётся" in user.says(f"/status {str(task)[:13]}")["text"]


def test_nobody_sees_or_cancels_the_tasks_of_others(bot: Bot, user: Who, admin: Who) -> None:
    task = waiting_task(bot, admin)
    for words in (f"/status {task}", f"/cancel {task}"):
        assert f"Задачи {task} нет" in user.says(words)["text"]
    assert user.says("/tasks")["text"].startswith("Задач пока нет")
    theirs = waiting_task(bot, user)
    assert str(theirs)[:13] in admin.says("/tasks")["text"]
    assert bot.sql("select status from tasks where id = :id", id=task) == [("pending",)]


def test_a_task_is_cancelled_by_its_button_in_the_list(bot: Bot, user: Who) -> None:
    task = waiting_task(bot, user)
    user.says("/tasks")
    after = user.presses(f"✖ {str(task)[:13]}")
    assert "отменено" in after["text"] and not any("✖" in button for button in buttons_of(after))
    assert bot.sql("select status from tasks where id = :id", id=task) == [("cancelled",)]


def test_cancel_takes_the_only_one_or_asks(bot: Bot, user: Who) -> None:
    assert "Отменять нечего" in user.says("/cancel")["text"]
    only = waiting_task(bot, user)
    assert user.says("/cancel")["text"] == f"🚫 Отменено: Задача ping, {str(only)[:13]}"
    several = [waiting_task(bot, user) for _ in range(2)]
    asked = user.says("/cancel")
    assert "Что отменить?" in asked["text"]
    user.presses(f"✖ {str(several[0])[:13]}")
    states = "select status from tasks where user_id = :id and queue = 'post' order by id"
    assert sorted(bot.sql(states, id=user.id)) == [("cancelled",), ("cancelled",), ("pending",)]
    assert "Уже поздно" in user.says(f"/cancel {only}")["text"]


def test_a_long_list_has_pages(bot: Bot) -> None:
    busy = bot.new(Role.USER)
    made = [waiting_task(bot, busy) for _ in range(11)]
    first = busy.says("/tasks")
    assert "Старше ›" in buttons_of(first)
    second = busy.presses("Старше ›")
    assert second["text"].count("Задача ping") == 3 and str(made[0])[:13] in second["text"]
    assert "‹ Новые" in buttons_of(second)


def test_the_card_can_be_cancelled(bot: Bot, user: Who) -> None:
    user.says("/report 7d")
    assert "отменено" in user.presses("Отмена")["text"]


def test_words_without_a_command_get_one_friendly_line(user: Who) -> None:
    assert "/help" in user.says("<b>что ты умеешь?")["text"]
    assert "Такой команды" in user.says("/fly")["text"]
    assert "не похоже на номер" in user.says("/status <i>")["text"]


def test_a_press_on_an_old_button_is_answered(bot: Bot, user: Who) -> None:
    user.says("/help")
    keyboard = {"inline_keyboard": [[{"text": "Старая", "callback_data": "gone:1"}]]}
    call(bot, "sendMessage", chat_id=user.id, text="x", reply_markup=keyboard)
    assert user.is_answered("Старая") == "Эта кнопка больше не действует, начните заново"


def test_the_language_is_changed_and_back_to_telegrams(bot: Bot, user: Who) -> None:
    user.says("/settings")
    user.presses("Язык")
    assert user.presses("English")["text"].startswith("⚙️ Settings\nLanguage: English")
    assert user.says("/report")["text"] == "Which days should the report cover?"
    user.says("/settings")
    user.presses("Language")
    assert "как в Telegram (Русский)" in user.presses("as in Telegram")["text"]
