"""Rates, ordered faults, and what the log says of both."""

from __future__ import annotations

import http.client
import json
from collections import Counter
from typing import Any

import pytest

from telegram_sandbox.client import Sandbox
from telegram_sandbox.errors import SandboxError
from telegram_sandbox.faults import Faults
from telegram_sandbox.rates import Rates
from telegram_sandbox.seed import GROUP
from tests.telegram_sandbox.conftest import Caller

BOT = 1


def allowed(rates: Rates, times: int, at: float, **call: Any) -> int:
    wish = {"bot": BOT, "method": "sendmessage", "chat": 5, "kind": "private", "paid": False, **call}
    return sum(rates.take(**wish, now=at) is None for _ in range(times))


def test_a_private_chat_takes_three_at_once_and_then_one_a_second() -> None:
    rates = Rates()
    assert allowed(rates, 10, 0.0) == 3
    assert [allowed(rates, 3, second) for second in (1.0, 2.0, 5.5, 100.0)] == [1, 1, 3, 3]


def test_a_group_takes_twenty_a_minute_and_edits_count_for_themselves() -> None:
    rates = Rates()
    group = {"chat": -5, "kind": "supergroup"}
    assert allowed(rates, 30, 0.0, **group) == 20
    assert allowed(rates, 5, 2.9, **group) == 0
    rates = Rates()
    assert [allowed(rates, 30, 0.0, **group, method=method) for method in ("sendmessage", "deletemessage")] == [20, 30]
    assert allowed(Rates(), 30, 0.0, **group, method="editmessagetext") == 20


def test_a_bot_takes_thirty_a_second_and_paid_a_thousand() -> None:
    for paid, most in ((False, 30), (True, 1000)):
        rates = Rates()
        assert sum(allowed(rates, 1, 0.0, chat=chat, paid=paid) for chat in range(1500)) == most


def test_calls_inside_a_retry_after_are_marked_and_wait_no_longer_for_it() -> None:
    rates = Rates()
    allowed(rates, 3, 0.0)
    over = rates.take(BOT, "sendmessage", 5, "private", False, 0.1)
    assert over is not None
    assert (over.retry_after, over.scope, over.inside) == (1, "chat", False)
    again = rates.take(BOT, "sendmessage", 5, "private", False, 0.5)
    assert again is not None
    assert again.inside
    assert rates.take(BOT, "sendmessage", 6, "private", False, 0.5) is None
    assert rates.take(BOT, "sendmessage", 5, "private", False, 1.1) is None


def test_over_http_a_429_says_when(bot: Caller, sandbox: Sandbox) -> None:
    sandbox.limits(enabled=True, private={"amount": 1, "seconds": 60, "burst": 3})
    answers = [bot.raw("sendMessage", chat_id=2001, text=f"{n}") for n in range(5)]
    assert [status for status, _, _ in answers] == [200, 200, 200, 429, 429]
    refused = json.loads(answers[3][2])
    seconds = refused["parameters"]["retry_after"]
    assert refused["description"] == f"Too Many Requests: retry after {seconds}"
    assert answers[3][1]["retry-after"] == str(seconds)
    logged = sandbox.log(bot=bot.id, method="sendMessage")
    assert [entry.get("inside_retry_after", False) for entry in logged] == [False] * 4 + [True]
    assert [entry["stored"] for entry in logged] == [True] * 3 + [False] * 2
    sandbox.limits(private={"amount": 1, "seconds": 1, "burst": 3})


def outcome(bot: Caller, text: str) -> str:
    try:
        status, _, body = bot.raw("sendMessage", chat_id=2001, text=text, seconds=1)
    except TimeoutError:
        return "silence"
    except (ConnectionError, http.client.HTTPException):
        return "reset"
    try:
        return f"{status} {'ok' if json.loads(body)['ok'] else 'refused'}"
    except ValueError:
        return f"{status} {'html' if body.startswith(b'<html>') else 'cut'}"


@pytest.mark.parametrize(
    ("kind", "seen", "stored"),
    [
        ("429", "429 refused", False),
        ("500", "500 refused", False),
        ("502", "502 html", False),
        ("cut", "200 cut", True),
        ("reset_before", "reset", False),
        ("reset_after", "reset", True),
        ("slow", "200 ok", True),
        ("hang", "silence", False),
    ],
)
def test_a_fault_looks_as_ordered_and_the_log_says_what_was_stored(
    bot: Caller, sandbox: Sandbox, kind: str, seen: str, stored: bool
) -> None:
    sandbox.fault(kind, bot=bot.id, seconds=0.2, retry_after=0)
    assert outcome(bot, "wrong") == seen
    assert outcome(bot, "right") == "200 ok"
    texts = [message["text"] for message in sandbox.messages("subscriber1", bot=bot.id)]
    assert texts == (["wrong", "right"] if stored else ["right"])
    wrong, right = sandbox.log(bot=bot.id, method="sendMessage")
    assert (wrong["fault"], wrong["stored"], wrong["text"]) == (kind, stored, "wrong")
    assert "fault" not in right
    assert bot.token not in json.dumps(sandbox.log(bot=bot.id))


@pytest.mark.parametrize("kind", ["500", "502", "hang", "slow"])
def test_a_fault_can_be_ordered_to_come_after_the_effect(bot: Caller, sandbox: Sandbox, kind: str) -> None:
    sandbox.fault(kind, bot=bot.id, stored=True, seconds=0.1)
    outcome(bot, "x")
    assert [entry["stored"] for entry in sandbox.log(bot=bot.id, method="sendMessage")] == [True]
    assert [message["text"] for message in sandbox.messages("subscriber1", bot=bot.id)] == ["x"]


def test_an_ordered_429_holds_its_chat_or_the_whole_bot(bot: Caller, sandbox: Sandbox) -> None:
    sandbox.fault("429", bot=bot.id, retry_after=60)
    assert bot.refused("sendMessage", chat_id=2001, text="x") == "429 Too Many Requests: retry after 60"
    assert bot.call("sendMessage", chat_id=2002, text="x")
    assert bot.refused("sendMessage", chat_id=2001, text="x").startswith("429")
    sandbox.fault("429", bot=bot.id, retry_after=60, scope="bot")
    assert bot.refused("sendMessage", chat_id=2002, text="x").startswith("429")
    assert bot.refused("sendMessage", chat_id=2003, text="x").startswith("429")
    inside = [entry.get("inside_retry_after", False) for entry in sandbox.log(bot=bot.id, method="sendMessage")]
    assert inside == [False, False, True, False, True]


def test_an_ordered_429_holds_any_other_method_for_itself(bot: Caller, sandbox: Sandbox) -> None:
    sent = bot.call("sendMessage", chat_id=2001, text="x")["message_id"]
    sandbox.fault("429", bot=bot.id, method="deleteMessage", retry_after=60)
    for _ in range(2):
        assert bot.refused("deleteMessage", chat_id=2001, message_id=sent).startswith("429")
    assert bot.call("sendMessage", chat_id=2001, text="x")
    inside = [entry.get("inside_retry_after", False) for entry in sandbox.log(bot=bot.id, method="deleteMessage")]
    assert inside == [False, True]


def test_faults_are_filtered_by_method_chat_and_bot(bot: Caller, sandbox: Sandbox) -> None:
    sandbox.fault("500", bot=bot.id, method="edit*", chat=2002)
    sent = bot.call("sendMessage", chat_id=2002, text="x")["message_id"]
    other = bot.call("sendMessage", chat_id=2001, text="x")["message_id"]
    bot.call("editMessageText", chat_id=2001, message_id=other, text="y")
    assert bot.refused("editMessageText", chat_id=2002, message_id=sent, text="y") == "500 Internal Server Error"
    assert bot.call("editMessageText", chat_id=2002, message_id=sent, text="y")
    assert sandbox.faults() == []


def test_a_percentage_hits_evenly_over_its_kinds_and_the_same_with_the_same_seed() -> None:
    def drawn(seed: int) -> list[str]:
        faults = Faults()
        faults.order({"kinds": ["500", "cut", "429"], "percent": 15, "seed": seed})
        hits = [faults.draw("sendmessage", (1, "1"), 1) for _ in range(4000)]
        return [hit.kind if hit else "" for hit in hits]

    assert drawn(1) == drawn(1) != drawn(2)
    counted = Counter(drawn(1))
    assert 500 < 4000 - counted[""] < 700
    assert all(150 < counted[kind] < 250 for kind in ("500", "cut", "429"))


def test_polling_goes_wrong_only_when_it_is_named(bot: Caller, sandbox: Sandbox) -> None:
    sandbox.fault("500", bot=bot.id)
    assert bot.call("getUpdates") == []
    assert bot.refused("getMe") == "500 Internal Server Error"
    sandbox.fault("500", bot=bot.id, method="getUpdates")
    assert bot.refused("getUpdates") == "500 Internal Server Error"


@pytest.mark.parametrize(
    "order", [{"kinds": ["bogus"]}, {"kinds": []}, {"kinds": ["500"], "next": 0}, {"kinds": ["500"], "when": 1}]
)
def test_an_order_that_is_not_understood_is_refused_in_one_line(sandbox: Sandbox, order: dict[str, Any]) -> None:
    with pytest.raises(SandboxError) as error:
        sandbox.post("faults", **order)
    assert "\n" not in str(error.value)


def test_every_answer_takes_the_ordered_latency(bot: Caller, sandbox: Sandbox) -> None:
    sandbox.latency(0.05)
    bot.call("getMe")
    sandbox.latency(0)
    assert sandbox.log(bot=bot.id, method="getMe")[-1]["ms"] >= 20


def test_group_limits_are_of_the_group(bot: Caller, sandbox: Sandbox) -> None:
    sandbox.limits(enabled=True, group={"amount": 2, "seconds": 60, "burst": 2})
    codes = [bot.raw("sendMessage", chat_id=GROUP, text="x")[0] for _ in range(3)]
    sandbox.limits(group={"amount": 20, "seconds": 60, "burst": 20})
    assert codes == [200, 200, 429]
