"""The one message about a task: real workers, the real sandbox, real PostgreSQL."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cards.conftest import Chat
from tests.processes import Workers, eventually

READY = "✅ Задача walk: готово за "


def test_the_card_shows_progress_and_then_the_end(chat: Chat) -> None:
    chat.submit(gate=str(chat.gate))
    chat.becomes("⚙️ Задача walk: считаю…\n▓▓▓▓▓░░░ 62 %")
    assert list(chat.buttons()) == ["Отмена"]
    chat.gate.touch()
    chat.becomes(READY)
    assert chat.buttons() == {}
    chat.settled()
    assert [(name, status) for name, status, *_ in chat.tasks()] == [("walk", "completed"), ("tell", "completed")]


def test_a_card_is_not_edited_with_each_progress(chat: Chat) -> None:
    chat.submit(gate=str(chat.gate), count=True)
    chat.becomes("⚙️ Задача walk: считаю")
    noted = "select (progress ->> 'done')::int from tasks where task_name = 'walk'"
    # Progress is stored several times within the seconds of one edit.
    first = chat.sql(noted)[0][0]
    eventually(lambda: chat.sql(noted)[0][0] >= first + 20)
    assert chat.edits() == 1
    chat.gate.touch()
    chat.becomes(READY)
    chat.settled()
    assert chat.edits() == 2


def test_an_actor_that_is_a_coroutine_shows_its_progress_too(chat: Chat) -> None:
    chat.submit(actor="stroll", gate=str(chat.gate))
    chat.becomes("⚙️ Задача stroll: считаю…\n▓▓▓▓▓░░░ 62 %")
    chat.gate.touch()
    chat.becomes("✅ Задача stroll: готово за ")


def test_progress_that_telegram_refuses_costs_the_run_nothing(chat: Chat) -> None:
    chat.sandbox.fault("429", next=1, retry_after=2, method="editMessageText", bot=chat.bot)
    chat.submit(gate=str(chat.gate))
    eventually(chat.edits)
    chat.gate.touch()
    eventually(lambda: chat.sql("select 1 from tasks where task_name = 'walk' and status = 'completed'"), 1.5)
    assert chat.tasks()[0][2] == 1
    chat.becomes(READY)
    assert not any(entry.get("inside_retry_after") for entry in chat.sandbox.log(bot=chat.bot))


def test_a_worker_that_is_killed_between_progress_and_end_leaves_a_card_that_ends(mortal: Chat) -> None:
    (first,) = mortal.workers.start(1)
    mortal.submit(gate=str(mortal.gate))
    mortal.becomes("⚙️ Задача walk: считаю")
    Workers.kill(first)
    mortal.gate.touch()
    mortal.workers.start(1)
    mortal.becomes(READY)
    mortal.settled()
    assert len([name for name, *_ in mortal.tasks() if name == "tell"]) == 1


def test_a_worker_that_is_killed_between_the_end_and_its_notice_tells_it_all_the_same(mortal: Chat) -> None:
    mortal.sql("insert into queue_states (queue, paused_at) values ('system', clock_timestamp())")
    (first,) = mortal.workers.start(1)
    mortal.submit()
    eventually(lambda: mortal.sql("select 1 from tasks where task_name = 'walk' and status = 'completed'"))
    Workers.kill(first)
    assert mortal.texts() == ["…"], "nobody has told it"
    mortal.sql("delete from queue_states")
    mortal.workers.start(1)
    mortal.becomes(READY)


def test_a_run_is_cancelled_from_the_chat(chat: Chat) -> None:
    chat.submit(gate=str(chat.gate))
    chat.becomes("⚙️ Задача walk: считаю")
    cancel = chat.buttons()["Отмена"]
    assert chat.press("Отмена") == "Останавливаю"
    chat.becomes("🚫 Задача walk: отменено")
    chat.settled()
    assert chat.press("Отмена", data=cancel) == "Уже решено: вот как сейчас"
    assert chat.texts() == ["🚫 Задача walk: отменено"]


def test_a_card_that_people_deleted_ends_quietly(chat: Chat) -> None:
    id_ = chat.submit()
    chat.call("deleteMessage", chat_id=chat.user, message_id=chat.messages()[0]["message_id"])
    chat.settled()
    assert chat.texts() == []
    assert chat.sql("select message_id, shown from cards where task_id = :id", id=id_) == [(None, None)]
    assert chat.sql("select count(*) from dead_letters") == [(0,)]


@pytest.mark.parametrize(
    ("params", "words", "buttons"),
    [
        ({"fail": "the user has blocked the bot", "permanent": True},
         "❌ Задача walk: не получилось: человек заблокировал бота", ["Повторить"]),
        ({"fail": "нет листа «Март»", "permanent": True},
         "❌ Задача walk: не получилось: «нет листа «Март»»", ["Повторить"]),
        ({"fail": "chat_id", "permanent": True},
         "❌ Задача walk: не получилось: внутренняя ошибка, администратор уже видит её. ID: ", ["Повторить"]),
        ({"expire": True}, "⌛ Задача walk: не началось вовремя", []),
    ],
)  # fmt: skip
def test_an_end_is_told_in_words_for_people(
    chat: Chat, params: dict[str, object], words: str, buttons: list[str]
) -> None:
    chat.submit(**params)
    chat.becomes(words)
    assert list(chat.buttons()) == buttons


def test_a_failed_task_is_tried_again_from_its_card(chat: Chat) -> None:
    id_ = chat.submit(fail="no", permanent=True)
    chat.becomes("❌ Задача walk")
    with chat.workers.runtime.database.statement() as connection:
        from sqlalchemy import text

        connection.execute(text("update tasks set params = '{}' where id = :id"), {"id": id_})
    assert chat.press("Повторить") == "Пробую снова"
    chat.becomes(READY)


def test_a_card_says_that_a_run_failed_and_when_the_next_one_comes(chat: Chat) -> None:
    chat.submit(fail="chat")
    chat.becomes("⏳ Задача walk: не получилось, попробую снова в ")
    chat.press("Отмена")
    chat.becomes("🚫 Задача walk: отменено")


def test_a_stranger_decides_nothing(chat: Chat) -> None:
    chat.submit(fail="no", permanent=True)
    chat.becomes("❌ Задача walk")
    assert chat.press("Повторить", user=666) == "Это чужая задача"
    chat.settled()
    assert chat.tasks()[0][1] == "failed"


# ------------------------------------------------------------------------------------------------- in doubt


def test_a_message_in_doubt_that_arrived_is_not_sent_again(chat: Chat) -> None:
    chat.sandbox.fault("reset_after", next=1, method="sendMessage", bot=chat.bot)
    chat.submit(card=False, send=["one", "two"])
    chat.no_card_will_come()
    told = chat.becomes("one", "❓ Задача walk: ответ Telegram потерялся, сообщение могло дойти.")
    assert list(chat.buttons()) == ["Отправить ещё раз", "Дошло"], told
    arrived = chat.buttons()["Дошло"]
    assert chat.press("Дошло") == "Записал: дошло"
    chat.becomes("one", READY, "two")
    chat.settled()
    assert chat.press("Дошло", 1, data=arrived) == "Уже решено: вот как сейчас"
    assert chat.becomes("one", READY, "two")
    assert chat.tasks()[0][:2] == ("walk", "completed")


def test_a_message_in_doubt_is_sent_again_exactly_once(chat: Chat) -> None:
    chat.submit(send=["one"])
    chat.sandbox.fault("reset_before", next=1, method="sendMessage", bot=chat.bot)
    chat.becomes("❓ Задача walk: ответ Telegram потерялся")
    again = chat.buttons()["Отправить ещё раз"]
    assert chat.press("Отправить ещё раз") == "Отправляю ещё раз"
    chat.becomes(READY, "one")
    chat.settled()
    assert chat.press("Отправить ещё раз", 0, data=again) == "Уже решено: вот как сейчас"
    chat.settled()
    assert chat.becomes(READY, "one")
    assert chat.sql("select key, state from sends where task_id = (select min(id::text)::uuid from tasks)") == [
        ("one", "sent")
    ]


# ---------------------------------------------------------------------------------------------- without a card


def test_a_task_without_a_card_ends_with_a_message(chat: Chat) -> None:
    id_ = chat.submit(card=False)
    chat.no_card_will_come()
    chat.becomes(READY)
    chat.settled()
    assert chat.sql("select c.message_id from cards c where task_id = :id", id=id_) == [
        (chat.messages()[0]["message_id"],)
    ]
    assert len(chat.texts()) == 1


def test_a_result_that_came_to_the_chat_needs_no_other_words(chat: Chat) -> None:
    chat.submit(card=False, send=["the result"])
    chat.no_card_will_come()
    chat.settled()
    assert chat.texts() == ["the result"]
    assert chat.tasks()[1][4] == {"told": "by its result"}


def test_a_notice_to_somebody_who_blocked_the_bot_is_no_failure(chat: Chat) -> None:
    chat.sandbox.block(chat.user, bot=chat.bot)
    chat.submit(card=False)
    chat.no_card_will_come()
    chat.settled()
    name, status, _, _, result = chat.tasks()[1]
    assert (name, status, result["told"]) == ("tell", "completed", "nobody")
    assert chat.sql("select count(*) from dead_letters") == [(0,)]


def test_a_notice_whose_answer_got_lost_comes_again(chat: Chat) -> None:
    """Twice is better than never; the second one is the card."""
    chat.sandbox.fault("reset_before", next=1, method="sendMessage", bot=chat.bot)
    chat.submit(card=False)
    chat.no_card_will_come()
    chat.becomes(READY)
    chat.settled()


def test_a_worker_without_a_bot_lets_the_notice_go(mortal: Chat) -> None:
    del mortal.workers.environment["CHRONOS_BOT_TOKEN"]
    mortal.workers.start(1)
    mortal.submit(card=False)
    mortal.settled()
    assert mortal.tasks()[1][:2] == ("tell", "completed")


def test_a_press_of_a_task_that_is_gone_says_so(chat: Chat) -> None:
    chat.submit(fail="no", permanent=True)
    chat.becomes("❌ Задача walk")
    chat.settled()
    chat.sql("delete from tasks")
    assert chat.press("Повторить") == "Этой задачи больше нет"
    assert chat.press("", data="dlq:") == "Эта кнопка больше не действует"


# ------------------------------------------------------------------------------------------------- a report


def test_a_second_tap_on_pdf_gives_the_same_task(chat: Chat) -> None:
    chat.submit(actor="report", queue="report", period="today", language="ru", zone="Europe/Moscow", parts=["chart"])
    eventually(lambda: "PDF" in chat.buttons(0) and len(chat.messages()) == 2, 60)
    assert chat.texts()[0].startswith("📊 Отчёт за сегодня готов за ")
    pdf = chat.buttons(0)["PDF"]
    assert chat.press("PDF", 0, data=pdf) == "Готовлю PDF"
    assert chat.press("PDF", 0, data=pdf) == "Готовлю PDF"
    eventually(lambda: chat.texts()[0].startswith("📄 PDF отчёта за сегодня готов за "), 60)
    assert [sorted({"photo", "document"} & set(message)) for message in chat.messages()] == [
        [],
        ["photo"],
        ["document"],
    ]
    chat.settled()
    assert len([name for name, *_ in chat.tasks() if name == "report"]) == 2
    assert chat.texts()[0].startswith("📄 PDF отчёта"), "the notice of the first report is no reason to show that again"


def test_the_command_line_submits_for_a_chat(chat: Chat) -> None:
    environment = {**chat.workers.environment, "CHRONOS_LOG_LEVEL": "error"}
    command = [sys.executable, "-m", "chronos.cli", "task", "submit", "walk", "--chat", str(chat.user)]
    done = subprocess.run(
        [*command, "--user", str(chat.user)], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    chat.no_card_will_come()
    chat.becomes(READY)
    assert chat.sql("select chat, user_id from tasks where task_name = 'walk'") == [(chat.user, chat.user)]
