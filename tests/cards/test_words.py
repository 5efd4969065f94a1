"""What a card says in each state, in both languages; and what its buttons carry."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chronos.cards import Button, CardFacts, Press, words_of
from chronos.language import language_for
from chronos.models import TaskStateRecord, TaskStatus
from chronos.models.buttons import mark_of
from chronos.task_facts import Facts, LimitFacts, WorkerFacts
from chronos.telegram.reasons import SENTENCES

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
ID = uuid.UUID("0192f1c8-1a2b-7000-8000-000000000001")
WORKER = WorkerFacts("w", NOW, False, None, 0.0, 4)


def task(**facts: Any) -> TaskStateRecord:
    plain: dict[str, Any] = dict.fromkeys(TaskStateRecord.model_fields)
    plain |= {
        "id": ID, "queue": "report", "task_name": "report", "params": {"period": "7d"}, "status": "pending",
        "priority": 5, "attempt": 0, "max_attempts": 5, "crashes": 0, "chat": 7, "user_id": 7,
    }  # fmt: skip
    plain |= dict.fromkeys(("run_at", "wake_at", "created_at", "updated_at"), NOW)
    return TaskStateRecord(**{**plain, **facts})


def around(**facts: Any) -> Facts:
    plain: dict[str, Any] = {
        "now": NOW, "lease": 15.0, "paused": False, "paused_until": None, "workers": [WORKER], "worker": None,
        "busy": 0, "before": 0, "limits": [], "events": [], "doubtful": [], "unknown_actor_minutes": 10.0,
    }  # fmt: skip
    return Facts(**{**plain, **facts})


class Event:
    def __init__(self, kind: str, detail: str = "") -> None:
        self.kind, self.detail, self.at, self.attempt = kind, detail, NOW, 1


def said(facts: CardFacts, language: str = "ru") -> str:
    return words_of(facts, language).text.replace("\u00a0", " ")


def labels(facts: CardFacts, language: str = "ru") -> list[str]:
    keyboard = words_of(facts, language).keyboard
    return [] if keyboard is None else [button.text for row in keyboard.inline_keyboard for button in row]


@pytest.mark.parametrize(
    ("facts", "russian", "english"),
    [
        (CardFacts(task(), around=around()), "✅ Задача принята в обработку. ID: 0192f1c8-1a2b\n📊 Отчёт за 7 дней",
         "✅ The task was accepted. ID: 0192f1c8-1a2b\n📊 Report for 7 days"),
        (CardFacts(task(status="in_progress", progress={"done": 62, "total": 100, "note": "x"})),
         "📊 Отчёт за 7 дней: x…\n▓▓▓▓▓░░░ 62 %", "📊 Report for 7 days: x…\n▓▓▓▓▓░░░ 62%"),
        (CardFacts(task(status="in_progress", progress={"done": 5, "total": None, "note": ""})),
         "📊 Отчёт за 7 дней: выполняется…", "📊 Report for 7 days: running…"),
        (CardFacts(task(status="completed", started_at=NOW, finished_at=NOW + timedelta(seconds=2.1))),
         "📊 Отчёт за 7 дней готов за 2,1 с", "📊 Report for 7 days is ready in 2.1 sec"),
        (CardFacts(task(status="cancelled", params={"period": "today"})),
         "🚫 Отчёт за сегодня: отменено", "🚫 Report for today: cancelled"),
        (CardFacts(task(status="cancelled", params={"period": "21d"})),
         "🚫 Отчёт за 21 день: отменено", "🚫 Report for 21 days: cancelled"),
        (CardFacts(task(status="cancelled", params={"period": "2026-11-03", "parts": ["pdf"]})),
         "🚫 PDF отчёта за 3 ноября 2026 г.: отменено", "🚫 PDF of the report for November 3, 2026: cancelled"),
    ],
)  # fmt: skip
def test_a_card_says_in_both_languages(facts: CardFacts, russian: str, english: str) -> None:
    assert said(facts) == russian
    assert said(facts, "en") == english


@pytest.mark.parametrize(
    ("surroundings", "facts", "why"),
    [
        ({"paused": True, "paused_until": NOW + timedelta(hours=3)}, {},
         "📊 Отчёт за 7 дней: остановлено администратором до 18:00"),
        ({"workers": []}, {}, "📊 Отчёт за 7 дней: ждёт: сейчас некому её выполнить"),
        ({"limits": [LimitFacts("queue report", None, 0, 5, 5, NOW)]}, {},
         "📊 Отчёт за 7 дней: ждёт: одновременно идёт не больше 5"),
        ({"limits": [LimitFacts("queue report", 2.0, 8.0, None, 0, None)]}, {},
         "📊 Отчёт за 7 дней: ждёт: лимит, пойдёт через 8 с"),
        ({"busy": 4}, {}, "📊 Отчёт за 7 дней: ждёт своей очереди"),
        ({}, {"run_at": NOW + timedelta(hours=20)}, "📊 Отчёт за 7 дней: начнётся в 19 нояб, 11:00"),
        ({"events": [Event("later", SENTENCES["chat limit"])]},
         {"run_at": NOW + timedelta(seconds=20), "started_at": NOW},
         "⏳ Отчёт за 7 дней: ждёт (лимит чата исчерпан), пойдёт в 15:00:20"),
        ({"events": [Event("retry", "the worker died while the task ran")]},
         {"run_at": NOW + timedelta(seconds=5), "started_at": NOW},
         "⏳ Отчёт за 7 дней: не получилось (процесс, который её выполнял, погиб), попробую снова в 15:00:05"),
        ({"events": [Event("retry", "KeyError: 'chat'")]},
         {"run_at": NOW + timedelta(seconds=5), "started_at": NOW, "error_class": "KeyError"},
         "⏳ Отчёт за 7 дней: не получилось, попробую снова в 15:00:05"),
    ],
)  # fmt: skip
def test_a_card_says_why_it_waits(surroundings: dict[str, Any], facts: dict[str, Any], why: str) -> None:
    waiting = CardFacts(task(**facts), zone="Europe/Moscow", around=around(**surroundings))
    assert said(waiting).splitlines()[-1] == why
    assert labels(waiting) == ["Отмена"]
    assert not re.search("[а-я]", said(waiting, "en"))


def test_a_time_of_a_reader_without_a_zone_says_whose_it_is() -> None:
    waiting = CardFacts(task(run_at=NOW + timedelta(minutes=1)), around=around())
    assert said(waiting).endswith("начнётся в 12:01:00 UTC")


@given(
    st.text(max_size=300), st.sampled_from(["KeyError", "OSError", "PermanentError", None, "TimeLimitExceeded"]),
    st.sampled_from(["ru", "en"]), st.sampled_from(list(TaskStatus)),
)  # fmt: skip
def test_no_card_shows_an_exceptions_name(words: str, error_class: str | None, language: str, status: str) -> None:
    facts = CardFacts(task(status=status, error_message=f"{words}Error: {words}", error_class=error_class))
    shown = said(facts, language)
    assert "KeyError" not in shown and "OSError" not in shown and "Traceback" not in shown
    assert len(shown) < 1000


@pytest.mark.parametrize("words", [*SENTENCES.values(), "Bad Request: chat not found", "'chat'"])
def test_a_russian_reader_reads_no_english_of_telegram(words: str) -> None:
    for error_class in ("PermanentError", "Ambiguous", "KeyError"):
        shown = said(CardFacts(task(status="failed", error_message=words, error_class=error_class)))
        left = re.sub(r"ID: [0-9a-f-]+|Telegram|Bot API|PDF", "", shown)
        assert not re.search("[a-z]{3}", left), shown


def test_each_message_in_doubt_has_two_buttons() -> None:
    one = CardFacts(task(status="unknown"), ["chart"])
    assert labels(one) == ["Отправить ещё раз", "Дошло"]
    two = CardFacts(task(status="unknown"), ["chart", "somebody's key"])
    assert labels(two) == ["Отправить ещё раз: график", "Дошло: график", "Отправить ещё раз: № 2", "Дошло: № 2"]
    whole = CardFacts(task(status="unknown"), [])
    assert labels(whole, "en") == ["Send again", "It arrived"]


def test_what_is_asked_to_stop_has_no_button_to_stop_it() -> None:
    assert labels(CardFacts(task(status="in_progress", cancel_requested_at=NOW))) == []


def test_only_a_report_without_its_pdf_offers_it() -> None:
    done = {"status": "completed", "started_at": NOW, "finished_at": NOW}
    assert labels(CardFacts(task(**done))) == ["PDF"]
    assert labels(CardFacts(task(**done, params={"parts": ["chart", "pdf"]}))) == []
    assert labels(CardFacts(task(**done, task_name="ping"))) == []


@given(st.sampled_from(list(Press)), st.uuids(), st.one_of(st.just(""), st.text(min_size=1).map(mark_of)))
def test_a_button_comes_back_as_it_went(press: Press, id_: uuid.UUID, mark: str) -> None:
    button = Button(press, id_, mark)
    assert Button.parse(str(button)) == button
    assert len(str(button).encode()) <= 64


@given(st.text(max_size=64))
def test_other_data_is_no_button_of_a_card(data: str) -> None:
    button = Button.parse(data)
    assert button is None or str(button) == data


def test_a_person_reads_their_language() -> None:
    assert language_for("en", "ru") == "en", "as they chose"
    assert [language_for(None, code) for code in ("ru", "uk", "ru-RU", "de", None)] == ["ru", "ru", "ru", "en", "en"]
