"""The settings of the chat; those of the engine are tested where they act."""

from __future__ import annotations

import pytest

from chronos.config import Settings, settings
from chronos.errors import BadInput

TOKEN = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1"


def read(monkeypatch: pytest.MonkeyPatch, **values: str) -> Settings:
    for name, value in values.items():
        monkeypatch.setenv(f"CHRONOS_{name.upper()}", value)
    settings.cache_clear()
    try:
        return settings()
    finally:
        settings.cache_clear()


def test_the_digits_of_the_token_are_the_bots_id(monkeypatch: pytest.MonkeyPatch) -> None:
    made = read(monkeypatch, bot_token=f" {TOKEN} ", telegram_url="http://127.0.0.1:8081/", admins="7, 8,")
    assert made.bot_id == 110201543
    assert made.telegram_url == "http://127.0.0.1:8081"
    assert made.admin_ids == {7, 8}
    assert TOKEN not in repr(made)


def test_empty_settings_of_the_chat_are_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    made = read(monkeypatch, bot_token=" ", telegram_url="", admins="")
    assert (made.bot_token, made.bot_id, made.telegram_url, made.admin_ids) == (None, None, None, frozenset())


@pytest.mark.parametrize("token", [TOKEN[:-1], TOKEN + "x", "x" + TOKEN, TOKEN.replace(":", ""), TOKEN[:20] + "/" * 25])
def test_a_wrong_token_is_named_in_one_line_and_never_shown(monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    with pytest.raises(BadInput, match=r"^CHRONOS_BOT_TOKEN .*: no bot token: @BotFather gives it") as error:
        read(monkeypatch, bot_token=token)
    assert token not in str(error.value)
    assert token[12:] not in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("telegram_url", "127.0.0.1:8081", "no address of a Bot API server: write http://host:port"),
        ("telegram_url", "http://user:secret@host", "no address of a Bot API server"),
        ("telegram_url", "http://host:none", "no address of a Bot API server"),
        ("admins", "7,@ann", "'@ann' is no numeric Telegram id"),
        ("admins", "-100", "'-100' is no numeric Telegram id"),
        ("paid_broadcast", "perhaps", "CHRONOS_PAID_BROADCAST"),
    ],
)
def test_a_wrong_setting_of_the_chat_is_named_in_one_line(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str
) -> None:
    with pytest.raises(BadInput) as error:
        read(monkeypatch, **{name: value})
    assert words in str(error.value)
    assert "secret" not in str(error.value)
