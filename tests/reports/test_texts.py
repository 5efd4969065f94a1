"""What a person reads: right plurals, no exception's name, room left in a caption."""

from __future__ import annotations

import re
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chronos.errors import BadInput
from chronos.failures import _OF_TELEGRAM
from chronos.language import language_of
from chronos.reports.activity import Activity, Cause, Counts, Sends
from chronos.reports.causes import in_words
from chronos.reports.texts import lines_of, text_of
from chronos.telegram.reasons import SENTENCES
from tests.reports.conftest import NOTHING, figures


def line(activity: Activity, language: str, number: int) -> str:
    return lines_of(activity, language)[number].replace("\u00a0", " ")


def test_the_text_is_a_title_and_five_lines() -> None:
    assert text_of(figures(), "ru").replace("\u00a0", " ").splitlines() == [
        "📊 Отчёт за 7 дней, 12–18 нояб. 2026 г.",
        "• Выполнена 721 задача из 742",
        "• Удачно 97,2 %, на 2,2 п. п. лучше, чем за 7 дней до этого",
        "• Чаще всего не удавалось: посты, 21 раз: человек заблокировал бота",
        "• Дольше всего: отчёты, половина быстрее 1 мин 35 с, 95 % быстрее 3 мин 20 с",
        "• Сообщения: доставлено 700, не доставлено 21, неизвестно 2",
    ]
    assert text_of(figures(), "en").replace("\u00a0", " ").splitlines() == [
        "📊 Report for 7 days, Nov 12 – 18, 2026",
        "• 721 of 742 tasks done",
        "• Went well: 97.2%, 2.2 points better than in the 7 days before",
        "• Failed most: posts, 21 times: the user has blocked the bot",
        "• Slowest: reports, half within 1 min 35 sec, 95% within 3 min 20 sec",
        "• Messages: 700 delivered, 21 not delivered, 2 unknown",
    ]


def test_sample_data_is_named_so() -> None:
    assert "пример данных" in text_of(figures(sample=True), "ru")
    assert "sample data" in text_of(figures(sample=True), "en")
    assert "пример" not in text_of(figures(), "ru") and "sample" not in text_of(figures(), "en")


@pytest.mark.parametrize(
    ("done", "russian", "english"),
    [
        (1, "Выполнена 1 задача", "1 task done"),
        (2, "Выполнено 2 задачи", "2 tasks done"),
        (5, "Выполнено 5 задач", "5 tasks done"),
        (11, "Выполнено 11 задач", "11 tasks done"),
        (21, "Выполнена 21 задача", "21 tasks done"),
        (112, "Выполнено 112 задач", "112 tasks done"),
        (1234, "Выполнено 1 234 задачи", "1,234 tasks done"),
    ],
)
def test_plurals_are_right(done: int, russian: str, english: str) -> None:
    activity = figures(counts=Counts(completed=done))
    assert (line(activity, "ru", 0), line(activity, "en", 0)) == (russian, english)


@pytest.mark.parametrize(
    ("counts", "before", "russian", "english"),
    [
        (Counts(completed=9, failed=1), Counts(), "Удачно 90 %", "Went well: 90%"),
        (
            Counts(completed=9, failed=1),
            Counts(completed=9, failed=1),
            "Удачно 90 %, так же, как за 7 дней до этого",
            "Went well: 90%, the same as in the 7 days before",
        ),
        (
            Counts(completed=89, failed=11),
            Counts(completed=9, failed=1),
            "Удачно 89 %, на 1 п. п. хуже, чем за 7 дней до этого",
            "Went well: 89%, 1 point worse than in the 7 days before",
        ),
        (Counts(completed=99_999, failed=1), Counts(), "Удачно 99,9 %", "Went well: 99.9%"),
        (Counts(completed=1, failed=99_999), Counts(), "Удачно 0,1 %", "Went well: 0.1%"),
        (Counts(completed=5), Counts(), "Удачно 100 %", "Went well: 100%"),
        (Counts(failed=5), Counts(), "Удачно 0 %", "Went well: 0%"),
    ],
)
def test_the_share_never_says_all_or_none_when_it_is_not(
    counts: Counts, before: Counts, russian: str, english: str
) -> None:
    activity = figures(counts=counts, before=before)
    assert (line(activity, "ru", 1), line(activity, "en", 1)) == (russian, english)


def test_a_single_day_is_compared_with_the_day_before() -> None:
    day = {"first": date(2026, 11, 18), "last": date(2026, 11, 18), "unit": "hour"}
    assert line(figures(period="today", **day), "ru", 1).endswith("чем вчера")
    assert line(figures(period="2026-11-18", **day), "en", 1).endswith("than the day before")
    assert text_of(figures(period="today", **day), "ru").startswith("📊 Отчёт за сегодня, 18 ноября")


def test_nothing_is_said_in_one_line() -> None:
    assert lines_of(NOTHING, "ru") == ["Ни одна задача не завершилась."]
    assert lines_of(NOTHING, "en") == ["No task has ended."]
    quiet = figures(causes=[], sends=Sends(), counts=Counts(completed=1))
    assert lines_of(quiet, "ru")[2:] == ["Ни одной неудачи", lines_of(quiet, "ru")[3], "Сообщений не отправлялось"]
    late = figures(causes=[], counts=Counts(completed=1, expired=2))
    assert (line(late, "ru", 2), line(late, "en", 2)) == ("Опоздало: 2", "Expired: 2")


def cause(words: str, error_class: str | None = None) -> Cause:
    return Cause(queue="post", task_name="x", error_class=error_class, words=words, number=1)


@pytest.mark.parametrize(
    ("words", "error_class", "russian", "english"),
    [
        ("TimeLimitExceeded", "TimeLimitExceeded", "не хватило отведённого времени", "it took longer than it may"),
        ("the worker died while the task ran", None, "процесс, который её выполнял, погиб",
         "the process that ran it died"),
        ("KeyError", "KeyError", "внутренняя ошибка", "an internal error"),
        ("'chat'", "KeyError", "внутренняя ошибка", "an internal error"),
        ("sqlalchemy.exc.IntegrityError: duplicate key", "IntegrityError", "внутренняя ошибка", "an internal error"),
        ("<Thing object at 0x7f00>", "RuntimeError", "внутренняя ошибка", "an internal error"),
        ("", None, "внутренняя ошибка", "an internal error"),
        ("the source answered 404", None, "источник ответил ошибкой 404", "the source answered with error 404"),
        ("the moon is full", "PermanentError", "«the moon is full»", "“the moon is full”"),
    ],
)  # fmt: skip
def test_a_cause_is_words_and_never_an_exceptions_name(
    words: str, error_class: str | None, russian: str, english: str
) -> None:
    assert in_words(cause(words, error_class), "ru").startswith(russian)
    assert in_words(cause(words, error_class), "en").startswith(english)


def test_every_sentence_of_the_sender_has_its_russian() -> None:
    assert set(_OF_TELEGRAM) == set(SENTENCES)
    for sentence in SENTENCES.values():
        assert re.search("[а-я]", in_words(cause(sentence), "ru")) and in_words(cause(sentence), "en") == sentence


@given(st.text(max_size=400), st.integers(0, 10**12), st.sampled_from(["ru", "en"]))
def test_a_text_is_short_enough_for_a_caption_whatever_went_wrong(words: str, number: int, language: str) -> None:
    activity = figures(
        causes=[Cause(queue="a queue of somebody", task_name="x", error_class=None, words=words * 40, number=number)],
        counts=Counts(completed=number, failed=number), sends=Sends(sent=number, unknown=number), sample=True,
    )  # fmt: skip
    assert len(text_of(activity, language).encode("utf-16-le")) // 2 <= 1024


@pytest.mark.parametrize(
    ("seconds", "russian", "english"),
    [
        (0.0001, "1 мс", "1 ms"), (0.18, "180 мс", "180 ms"), (0.9996, "1 с", "1 sec"), (2.31, "2,3 с", "2.3 sec"),
        (9.96, "10 с", "10 sec"), (59.4, "59 с", "59 sec"), (59.6, "1 мин", "1 min"),
        (88, "1 мин 28 с", "1 min 28 sec"),
        (719, "12 мин", "12 min"), (3599, "1 ч", "1 hr"), (12_000, "3 ч 20 мин", "3 hr 20 min"),
        (86_400, "1 дн.", "1 day"), (100_000, "1 дн. 4 ч", "1 day 4 hr"), (200_000, "2 дн. 8 ч", "2 days 8 hr"),
    ],
)  # fmt: skip
def test_durations_are_words(seconds: float, russian: str, english: str) -> None:
    said = [language_of(code).duration(seconds).replace("\u00a0", " ") for code in ("ru", "en")]
    assert said == [russian, english]


def test_another_language_is_refused_in_one_line() -> None:
    with pytest.raises(BadInput, match="ru or en, not 'de'"):
        text_of(figures(), "de")
