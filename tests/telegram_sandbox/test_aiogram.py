"""A stock aiogram bot works unchanged."""

from __future__ import annotations

from typing import Any

from telegram_sandbox.client import Sandbox
from tests.telegram_sandbox.conftest import EchoBot


def texts(answers: list[dict[str, Any]]) -> list[str]:
    return [a["message"].get("text", a["message"].get("caption", "")) for a in answers if a["kind"] == "message"]


def test_it_echoes(sandbox: Sandbox, echo_bot: EchoBot, person: str) -> None:
    assert texts(sandbox.say("привет 😀", person, bot=echo_bot.id, wait=10, quiet=0.3)) == ["привет 😀"]


def test_its_buttons_are_answered_and_its_message_is_edited(sandbox: Sandbox, echo_bot: EchoBot, person: str) -> None:
    sandbox.say("/buttons", person, bot=echo_bot.id, wait=10, quiet=0.3)
    answers = sandbox.press("Нет", person, bot=echo_bot.id, wait=10, quiet=0.3)
    assert {"kind": "answer", "text": "Вы выбрали no", "alert": True} in answers
    assert texts(answers) == ["Выбрано: no"]
    assert [answer["edited"] for answer in answers if answer["kind"] == "message"] == [True]


def test_it_uploads_and_downloads_files(sandbox: Sandbox, echo_bot: EchoBot, person: str, tmp_path: Any) -> None:
    photo, document = sandbox.say("/picture", person, bot=echo_bot.id, wait=10, quiet=0.5)
    assert photo["message"]["photo"][0]["width"] == 320
    assert document["message"]["document"]["file_name"] == "отчёт.pdf"
    (tmp_path / "заметка.txt").write_text("содержимое", encoding="utf-8")
    sent = sandbox.upload(tmp_path / "заметка.txt", person, bot=echo_bot.id)
    assert texts(sandbox.answers(person, bot=echo_bot.id, after=sent["seq"], quiet=0.3)) == ["заметка.txt: содержимое"]


def test_a_deep_link_reaches_its_handler(sandbox: Sandbox, echo_bot: EchoBot, person: str) -> None:
    started = sandbox.start("invite_1", person, echo_bot.id)
    assert texts(sandbox.answers(person, bot=echo_bot.id, after=started["seq"], quiet=0.3)) == ["code invite_1"]
