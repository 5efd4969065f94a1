"""Updates are stored first, handled in order per chat and several chats at once, and put aside when nothing helps."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from chronos.bot.inbox import MOST_TRIES, Inbox, order_key
from chronos.models.user import Role
from chronos.runtime import Runtime
from private_services import PrivatePostgres
from tests.bot.conftest import Bot, Who
from tests.processes import eventually

_numbers = itertools.count(2_000_000_001)


def update(chat: int, words: str = "x", **more: Any) -> dict[str, Any]:
    return {"update_id": next(_numbers), "message": {"chat": {"id": chat}, "from": {"id": chat}, "text": words}, **more}


@pytest.fixture
def inbox(runtime: Runtime) -> Inbox:
    return Inbox(runtime.database, 1)


def test_what_telegram_gives_again_is_stored_once(inbox: Inbox) -> None:
    first, second = update(5), update(6)
    inbox.store([first, second])
    inbox.store([first, second])
    assert [waiting.update_id for waiting in inbox.claim([], 10)] == [first["update_id"], second["update_id"]]


def test_only_the_oldest_of_a_chat_is_handled_and_no_busy_chat(inbox: Inbox) -> None:
    updates = [update(5), update(5), update(6), update(7)]
    inbox.store(updates)
    assert [waiting.chat for waiting in inbox.claim([6], 10)] == [5, 7]
    inbox.done(updates[0]["update_id"])
    assert [waiting.update_id for waiting in inbox.claim([6, 7], 10)] == [updates[1]["update_id"]]


def test_an_update_that_ends_the_process_each_time_is_put_aside(inbox: Inbox) -> None:
    inbox.store([update(5), update(5)])
    for _ in range(MOST_TRIES):
        assert not inbox.claim([], 1)[0].aside
    [ended] = inbox.claim([], 1)
    assert ended.aside
    assert inbox.claim([], 1)[0].update_id > ended.update_id


def test_a_try_that_was_given_back_does_not_count(inbox: Inbox) -> None:
    inbox.store([update(5)])
    for _ in range(MOST_TRIES + 2):
        [waiting] = inbox.claim([], 1)
        assert waiting.tries == 1
        inbox.give_back(waiting.update_id)


def test_text_that_postgresql_cannot_hold_is_stored_without_it(inbox: Inbox) -> None:
    inbox.store([update(5, "a\x00b \ud83d \\u0000")])
    assert inbox.claim([], 1)[0].payload["message"]["text"] == "ab ? \\u0000"


def test_an_update_of_a_kind_that_we_do_not_know_has_a_place_too() -> None:
    assert order_key({"update_id": 1, "poll_answer": {"from": {"id": 7}}}) == 7
    assert order_key({"update_id": 1, "callback_query": {"message": {"chat": {"id": -5}}, "from": {"id": 7}}}) == -5
    assert order_key({"update_id": 1, "news": "x"}) == 0


def test_a_broken_update_is_put_aside_and_the_next_of_its_chat_goes_on(bot: Bot, user: Who) -> None:
    user.says("/help")
    bot.deliver(update(user.id, "/<b>broken"))
    found = "select put_aside_at is not null, error is not null from updates where chat = :id and handled_at is null"
    eventually(lambda: bot.sql(found, id=user.id) == [(True, True)], 20)
    eventually(lambda: "Я не смог выполнить «/<b>broken»" in user.last()["text"], 10)
    assert "/report" in user.says("/help")["text"]


def test_one_chat_is_answered_in_order_while_a_slow_one_delays_nobody(bot: Bot) -> None:
    slow, quick = bot.new(Role.USER), bot.new(Role.USER)
    fault = bot.sandbox.fault("slow", chat=slow.id, seconds=4, next=1)
    for words in ("/fly", "hello", "/status"):
        bot.sandbox.post("say", **{"as": slow.id}, text=words, bot=bot.id)
    quick.says("/help")
    assert slow.messages() == []
    eventually(lambda: len(slow.messages()) == 3, 20)
    assert ["Такой команды" in slow.messages()[0]["text"], "Я понимаю" in slow.messages()[1]["text"]] == [True, True]
    bot.sandbox.clear_faults(fault["id"])


def test_while_postgresql_is_away_each_chat_is_told_once_and_nothing_is_lost(
    bot: Bot, postgres: PrivatePostgres
) -> None:
    talker, other = bot.new(Role.USER), bot.new(Role.USER, language="en")
    talker.says("/help")
    postgres.kill()
    try:
        assert "База данных сейчас недоступна" in talker.says("/status", 30)["text"]
        bot.sandbox.post("say", **{"as": talker.id}, text="/fly", bot=bot.id)
        assert "The database is away" in other.says("/help", 30)["text"]
        assert sum("недоступна" in message["text"] for message in talker.messages()) == 1
    finally:
        postgres.start()
    eventually(lambda: [message["text"][:8] for message in talker.messages()[-2:]] == ["Задач по", "Такой ко"], 40)
    eventually(lambda: "This is what I can do" in other.last()["text"], 20)
    assert bot.sql("select count(*) from updates where chat = :id and handled_at is not null", id=talker.id) == [(3,)]
