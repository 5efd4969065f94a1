"""Both languages say the same, and nobody's words become formatting."""

from __future__ import annotations

import ast
from pathlib import Path
from string import Formatter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import chronos
from chronos.bot.commands import COMMANDS
from chronos.bot.talk import LONGEST_TEXT, cut
from chronos.bot.texts import TEXTS, Html, fields_of, say, words_of
from chronos.errors import BadInput
from chronos.language import language_of
from chronos.models import TaskStatus
from chronos.models.user import Role
from telegram_sandbox.markup.html import parse_html

SOURCES = Path(chronos.__file__).parent


def test_both_languages_have_the_same_texts_with_the_same_fields() -> None:
    russian, english = TEXTS["ru"], TEXTS["en"]
    assert russian.keys() == english.keys()
    differing = [key for key in russian if fields_of(russian[key]) != fields_of(english[key])]
    assert differing == []


@pytest.mark.parametrize("language", ["ru", "en"])
def test_a_text_with_a_count_has_every_form_of_its_language(language: str) -> None:
    needed = {"ru": {"one", "few", "many"}, "en": {"one", "other"}}[language]
    assert needed <= {language_of(language).locale.plural_form(count) for count in range(30)} | {"other"}
    for key, text in TEXTS[language].items():
        if not isinstance(text, str):
            assert set(text) == needed, key
            assert all({name for _, name, _, _ in Formatter().parse(form) if name} == fields_of(text)
                       for form in text.values()), key  # fmt: skip


def test_counts_are_worded_as_people_do() -> None:
    assert [say("ru", "report.days", count=count) for count in (1, 3, 7, 21)] == [
        "1 день",
        "3 дня",
        "7 дней",
        "21 день",
    ]
    assert say("en", "queues.waiting", count=1) == "1 waits"
    assert say("en", "queues.waiting", count=1200) == "1,200 wait"


@given(words=st.text(min_size=1, max_size=40).filter(lambda words: words.strip() == words and "\r" not in words))
def test_words_of_people_are_shown_as_they_are_and_format_nothing(words: str) -> None:
    for key, text in TEXTS["ru"].items():
        names = fields_of(text) - {"count"}
        if not names:
            continue
        fields: dict[str, str | float] = dict.fromkeys(names, words)
        plain, entities = parse_html(say("ru", key, count=5, **fields))
        assert plain.count(words) >= len(names), key
        _, harmless = parse_html(say("ru", key, count=5, **dict.fromkeys(names, "x")))
        assert [entity["type"] for entity in entities] == [entity["type"] for entity in harmless], key


def test_a_long_text_is_cut_at_a_line() -> None:
    text = Html("\n".join(f"<b>{number}</b> {'ы' * 90}" for number in range(100)))
    shown = cut(text)
    assert len(shown) <= LONGEST_TEXT and shown.endswith("\n…")
    assert shown.count("<b>") == shown.count("</b>")


def test_every_reason_of_an_error_is_said_in_both_languages() -> None:
    reasons = set()
    for file in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "BadInput" and len(node.args) > 1:
                assert isinstance(node.args[1], ast.Constant)
                reasons.add((node.args[1].value, frozenset(word.arg for word in node.keywords)))
    assert len(reasons) >= 10
    for reason, fields in reasons:
        assert fields_of(TEXTS["en"][f"error.{reason}"]) <= fields, reason
    assert {key.removeprefix("error.") for key in TEXTS["en"] if key.startswith("error.")} - {
        reason for reason, _ in reasons
    } == {"away", "not_so"}


def test_an_error_without_a_reason_shows_nothing_technical() -> None:
    said = words_of(BadInput("params of x: KeyError('y')"), "ru")
    assert said == TEXTS["ru"]["error.not_so"]


def test_every_command_role_and_status_has_its_words() -> None:
    needed = {f"command.{command.name}" for command in COMMANDS}
    needed |= {f"role.{role}" for role in Role} | {f"state.{status}" for status in TaskStatus}
    assert needed <= TEXTS["en"].keys()


def test_every_text_is_used() -> None:
    source = "\n".join(file.read_text(encoding="utf-8") for file in SOURCES.rglob("bot/**/*.py") if "texts/" not in
                       str(file) or file.name == "__init__.py")  # fmt: skip
    built = ("command.", "role.", "state.", "error.", "event.", "zone.Europe", "language.")
    unused = [key for key in TEXTS["en"] if not key.startswith(built) and f'"{key}"' not in source]
    assert unused == []
