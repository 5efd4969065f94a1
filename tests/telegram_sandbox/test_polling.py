"""getUpdates: what waits, what is confirmed, who polls."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

from telegram_sandbox.client import Sandbox
from tests.processes import eventually
from tests.telegram_sandbox.conftest import Caller


def ids(updates: list[dict[str, int]]) -> list[int]:
    return [update["update_id"] for update in updates]


def polls(sandbox: Sandbox, bot: Caller) -> bool:
    return any(known["id"] == bot.id and known["polls"] for known in sandbox.bots())


def test_an_update_comes_again_until_it_is_confirmed(bot: Caller, sandbox: Sandbox) -> None:
    for text in ("one", "two", "three"):
        sandbox.say(text, "user1", bot=bot.id)
    first = bot.call("getUpdates")
    assert [update["message"]["text"] for update in first] == ["one", "two", "three"]
    assert ids(bot.call("getUpdates", limit=1)) == ids(first)[:1]
    assert ids(bot.call("getUpdates", offset=ids(first)[1])) == ids(first)[1:]
    assert ids(bot.call("getUpdates")) == ids(first)[1:]
    assert ids(bot.call("getUpdates", offset=-1)) == ids(first)[2:]
    assert bot.call("getUpdates", offset=ids(first)[2] + 1) == []
    sandbox.say("four", "user1", bot=bot.id)
    assert ids(bot.call("getUpdates")) == [ids(first)[2] + 1]


def test_a_long_poll_ends_with_the_first_update(bot: Caller, sandbox: Sandbox) -> None:
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(bot.call, "getUpdates", timeout=15)
        eventually(lambda: polls(sandbox, bot), 10)
        sandbox.say("here", "user1", bot=bot.id)
        assert waiting.result(10)[0]["message"]["text"] == "here"


def test_a_newer_poller_ends_the_older_one_with_a_conflict(bot: Caller, sandbox: Sandbox) -> None:
    with ThreadPoolExecutor() as pool:
        older = pool.submit(bot.refused, "getUpdates", timeout=15)
        eventually(lambda: polls(sandbox, bot), 10)
        newer = pool.submit(bot.call, "getUpdates", timeout=15)
        assert older.result(10) == (
            "409 Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
        )
        sandbox.say("x", "user1", bot=bot.id)
        assert len(newer.result(10)) == 1


def test_only_wanted_kinds_of_updates_are_kept(bot: Caller, sandbox: Sandbox) -> None:
    bot.call("getUpdates", allowed_updates=json.dumps(["callback_query"]))
    sandbox.say("unheard", "user1", bot=bot.id)
    bot.call("getUpdates", allowed_updates=[])
    sandbox.say("heard", "user1", bot=bot.id)
    assert [update["message"]["text"] for update in bot.call("getUpdates")] == ["heard"]


def test_dropping_pending_updates_forgets_them(bot: Caller, sandbox: Sandbox) -> None:
    sandbox.say("old", "user1", bot=bot.id)
    assert bot.call("getWebhookInfo") == {"url": "", "has_custom_certificate": False, "pending_update_count": 1}
    assert bot.call("deleteWebhook", drop_pending_updates=True) is True
    assert bot.call("getUpdates") == []


def test_in_a_group_a_bot_hears_what_concerns_it_and_as_admin_all(bot: Caller, sandbox: Sandbox) -> None:
    name = bot.call("getMe")["username"]
    for text in ("idle talk", "/go", "/go@other_bot", f"/go@{name}", f"ask @{name}"):
        sandbox.say(text, "user1", chat="group")
    heard = [update["message"]["text"] for update in bot.call("getUpdates") if "message" in update]
    assert heard == ["/go", f"/go@{name}", f"ask @{name}"]
    bot.call("deleteWebhook", drop_pending_updates=True)
    sandbox.post("promote", chat="group", bot=bot.id)
    sandbox.say("idle talk", "user1", chat="group")
    promoted, talk = bot.call("getUpdates")
    assert promoted["my_chat_member"]["new_chat_member"]["status"] == "administrator"
    assert talk["message"]["text"] == "idle talk"


def test_blocking_tells_the_bot(bot: Caller, sandbox: Sandbox) -> None:
    sandbox.block("subscriber4", bot.id)
    change = bot.call("getUpdates")[0]["my_chat_member"]
    assert (change["new_chat_member"]["status"], change["from"]["id"]) == ("kicked", 2004)
    sandbox.block("subscriber4", bot.id, blocked=False)


def test_a_channel_post_of_an_admin_reaches_the_bot(bot: Caller, sandbox: Sandbox) -> None:
    sandbox.say("post", "editor", chat="news")
    assert bot.call("getUpdates")[0]["channel_post"]["sender_chat"]["title"] == "Новости"


def test_a_deep_link_sends_its_code(bot: Caller, sandbox: Sandbox) -> None:
    sandbox.start("abc_1", "user1", bot.id)
    message = bot.call("getUpdates")[0]["message"]
    assert message["text"] == "/start abc_1"
    assert message["entities"] == [{"type": "bot_command", "offset": 0, "length": 6}]
