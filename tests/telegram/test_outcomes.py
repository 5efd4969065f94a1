"""Every answer that Telegram can give, over real HTTP, and what the sender makes of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiogram.methods
import pytest
from aiogram.methods import (
    AnswerCallbackQuery,
    DeleteMessage,
    EditMessageText,
    GetChat,
    GetMe,
    GetUpdates,
    SendDocument,
    SendMessage,
    SendPhoto,
)
from aiogram.types import BufferedInputFile, FSInputFile
from aiohttp import ClientConnectorDNSError, ClientConnectorError

from chronos.errors import Ambiguous, Later, PermanentError
from chronos.telegram import methods
from chronos.telegram.budget import BotStopped
from chronos.telegram.outcomes import RULES
from chronos.telegram.reasons import SENTENCES
from chronos.telegram.sender import AnotherPoller, MessageGone
from chronos.telegram.session import allowed_seconds
from chronos.telegram.urgency import BROADCAST
from telegram_sandbox.client import Sandbox
from tests.telegram.conftest import Canned, Line

SEND = SendMessage(chat_id=5, text="hello")
EDIT = EditMessageText(chat_id=5, message_id=1, text="hello")


def refusal(code: int, description: str | None, **parameters: int) -> str:
    body: dict[str, Any] = {"ok": False, "error_code": code}
    if description is not None:
        body["description"] = description
    if parameters:
        body["parameters"] = parameters
    return json.dumps(body)


FINAL = [
    (400, "Bad Request: chat not found", "chat not found"),
    (400, "Bad Request: message is too long", "too long"),
    (400, "Bad Request: message caption is too long", "caption too long"),
    (400, "Bad Request: message text is empty", "empty"),
    (400, 'Bad Request: can\'t parse entities: Unsupported start tag "x" at byte offset 3', "bad formatting"),
    (400, "Bad Request: BUTTON_DATA_INVALID", "bad button"),
    (400, "Bad Request: wrong file identifier/HTTP URL specified", "bad file"),
    (400, "Bad Request: failed to get HTTP URL content", "bad link"),
    (400, "Bad Request: file is too big", "file too big"),
    (400, "Bad Request: not enough rights to send text messages to the chat", "no rights"),
    (400, "Bad Request: something that nobody has seen before", "refused"),
    (403, "Forbidden: bot was blocked by the user", "blocked"),
    (403, "Forbidden: user is deactivated", "deactivated"),
    (403, "Forbidden: bot can't initiate conversation with a user", "not started"),
    (403, "Forbidden: bot was kicked from the supergroup chat", "kicked"),
    (403, "Forbidden: bot is not a member of the channel chat", "not a member"),
    (403, "Forbidden: something else", "no rights"),
    (404, "Not Found: method not found", "unknown method"),
    (413, "Request Entity Too Large", "file too big"),
    (418, "I'm a teapot", "refused"),
]


@pytest.mark.parametrize(("code", "description", "reason"), FINAL)
def test_what_will_never_work_fails_at_once_in_words_of_ours(
    connect: Callable[..., Line], canned: Canned, code: int, description: str, reason: str
) -> None:
    canned.says(code, refusal(code, description))
    error = connect(canned.url).one(SEND)
    assert type(error) is PermanentError
    assert error.reason == reason
    assert str(error) == SENTENCES[reason]
    assert canned.asked == 1


UNSURE = [
    (500, refusal(500, "Internal Server Error")),
    (500, refusal(500, None)),  # aiogram: TypeError
    (502, "<html><h1>502 Bad Gateway</h1></html>"),  # aiogram: ClientDecodeError
    (503, ""),
    (200, '{"ok": true, "result": {"message_id": 1, "da'),
    (200, '{"ok": true, "result": {"what": "is this"}}'),
    (200, "[]"),
]


@pytest.mark.parametrize(("status", "body"), UNSURE)
def test_a_lost_answer_is_ambiguous_only_where_a_repeat_would_make_a_second_message(
    connect: Callable[..., Line], canned: Canned, status: int, body: str
) -> None:
    line = connect(canned.url)
    canned.says(status, body)
    error = line.one(SEND)
    assert type(error) is Ambiguous
    assert error.reason == "unsure"
    assert canned.asked == 1
    error = line.one(EDIT)
    assert type(error) is Later
    assert error.reason == "unreachable"
    assert canned.asked == 4, "an edit is tried three times"


def test_an_answer_that_is_cut_in_its_bytes_is_ambiguous(connect: Callable[..., Line], canned: Canned) -> None:
    canned.says(200, '{"ok": true', length=1000)
    assert type(connect(canned.url).one(SEND)) is Ambiguous


def test_a_refused_connection_means_surely_unsent(connect: Callable[..., Line]) -> None:
    error = connect("http://127.0.0.1:1").one(SEND)
    assert type(error) is Later
    assert error.reason == "unreachable"
    assert 10 <= error.seconds <= 20
    assert issubclass(ClientConnectorDNSError, ClientConnectorError), "an unknown host is told like this too"


def test_a_refusal_whose_reason_got_lost_is_asked_for_again(connect: Callable[..., Line], canned: Canned) -> None:
    for body in ("<html>403</html>", refusal(403, "Forbidden: bot was blocked by the user")[:40]):
        canned.says(403, body)
        error = connect(canned.url).one(SEND)
        assert type(error) is Later
        assert error.reason == "unreachable"
    canned.says(413, "<html>413</html>")
    assert type(connect(canned.url).one(SEND)) is PermanentError


def test_a_redirect_is_not_followed(connect: Callable[..., Line], canned: Canned) -> None:
    canned.says(302, "", "Location: http://127.0.0.1:1/")
    error = connect(canned.url).one(SEND)
    assert type(error) is PermanentError
    assert error.reason == "redirected"
    assert canned.asked == 1


@pytest.mark.parametrize(
    ("body", "headers", "seconds"),
    [
        (refusal(429, "Too Many Requests: retry after 50", retry_after=50), (), 50),
        (refusal(429, "Too Many Requests: retry after 50"), (), 50),
        (refusal(429, "Too Many Requests"), ("Retry-After: 50",), 50),
        (refusal(429, None), (), 5),
        ("<html>429</html>", (), 5),
    ],
)
def test_a_429_of_any_form_is_later_and_holds_the_bot(
    connect: Callable[..., Line], canned: Canned, body: str, headers: tuple[str, ...], seconds: int
) -> None:
    canned.says(429, body, *headers)
    line = connect(canned.url)
    error = line.one(SEND, urgency=BROADCAST)
    assert type(error) is Later
    assert error.reason == "busy"
    assert seconds - 1 < error.seconds < seconds + 2
    assert canned.asked == 1
    later = line.one(SendMessage(chat_id=6, text="x"), urgency=BROADCAST)
    assert type(later) is Later
    assert canned.asked == 1, "nothing left inside"


def test_an_edit_that_changes_nothing_has_succeeded(connect: Callable[..., Line], canned: Canned) -> None:
    words = (
        "Bad Request: message is not modified: specified new message content and reply markup are exactly the same"
        " as a current content and reply markup of the message"
    )
    canned.says(400, refusal(400, words))
    assert connect(canned.url).one(EDIT) is True


@pytest.mark.parametrize("words", ["message to edit not found", "message can't be edited"])
def test_a_message_that_is_gone_is_a_known_end(connect: Callable[..., Line], canned: Canned, words: str) -> None:
    canned.says(400, refusal(400, f"Bad Request: {words}"))
    assert type(connect(canned.url).one(EDIT)) is MessageGone
    assert canned.asked == 1


def test_deleting_what_is_gone_and_answering_too_late_are_no_errors(
    connect: Callable[..., Line], canned: Canned
) -> None:
    line = connect(canned.url)
    canned.says(400, refusal(400, "Bad Request: message to delete not found"))
    assert line.one(DeleteMessage(chat_id=5, message_id=1)) is True
    canned.says(400, refusal(400, "Bad Request: message can't be deleted for everyone"))
    assert type(line.one(DeleteMessage(chat_id=5, message_id=1))) is MessageGone
    words = "Bad Request: query is too old and response timeout expired or query ID is invalid"
    canned.says(400, refusal(400, words))
    assert line.one(AnswerCallbackQuery(callback_query_id="1")) is False


def test_a_401_stops_the_bot_and_a_working_token_starts_it_again(connect: Callable[..., Line], canned: Canned) -> None:
    line = connect(canned.url)
    canned.says(401, refusal(401, "Unauthorized"))
    assert isinstance(line.one(SEND), BotStopped)
    assert line.sql("select stopped_why from bots where id = :id", id=line.id) == [(SENTENCES["stopped"],)]
    assert isinstance(line.one(EDIT), BotStopped)
    assert canned.asked == 1, "a stopped bot makes no call"
    user = {"id": line.id, "is_bot": True, "first_name": "Chronos", "username": "chronos_bot"}
    canned.says(200, json.dumps({"ok": True, "result": user}))
    assert line.one(GetMe()).username == "chronos_bot"
    assert line.sql("select username, stopped_at from bots where id = :id", id=line.id) == [("chronos_bot", None)]


def test_a_409_says_that_somebody_else_polls(connect: Callable[..., Line], canned: Canned) -> None:
    words = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
    canned.says(409, refusal(409, words))
    error = connect(canned.url).one(GetUpdates())
    assert isinstance(error, AnotherPoller)
    assert "another process polls" in str(error)


def test_a_file_that_is_gone_is_a_permanent_error(connect: Callable[..., Line], canned: Canned, tmp_path: Path) -> None:
    error = connect(canned.url).one(SendDocument(chat_id=5, document=FSInputFile(tmp_path / "none.pdf")))
    assert type(error) is PermanentError
    assert error.reason == "file gone"
    assert canned.asked == 0


def test_an_upload_gets_time_by_its_size(tmp_path: Path) -> None:
    big = tmp_path / "big"
    with open(big, "wb") as file:
        file.truncate(50 * 1024 * 1024)
    assert allowed_seconds(SEND, None) == 15
    assert allowed_seconds(SendPhoto(chat_id=1, photo=BufferedInputFile(b"x" * 131072, "x")), None) == 16
    assert allowed_seconds(SendDocument(chat_id=1, document=FSInputFile(big)), None) == 15 + 400
    assert allowed_seconds(GetUpdates(timeout=30), 60) == 45


def test_every_method_that_returns_a_message_makes_or_changes_one() -> None:
    for name in aiogram.methods.__all__:
        method = getattr(aiogram.methods, name)
        if isinstance(method, type) and hasattr(method, "__returning__") and name != "TelegramMethod":
            api, returned = method.__api_method__, str(method.__returning__)
            if "Message" in returned and not api.startswith(("get", "answer", "save")):
                assert methods.makes(api) or methods.counts(api) == "edit", api


def test_reads_are_told_from_what_makes_something() -> None:
    assert not methods.makes(GetChat.__api_method__)
    assert not methods.makes("sendChatAction")
    assert methods.makes("createChatInviteLink"), "a second link is a second link"
    assert methods.counts("createChatInviteLink") == "nothing"


def test_every_reason_has_a_sentence() -> None:
    assert {rule.reason for rule in RULES if rule.reason} <= set(SENTENCES)
    assert not any("\n" in sentence or sentence.endswith(".") for sentence in SENTENCES.values())


# ----------------------------------------------------------------------------------- the sandbox's own words


def test_a_subscriber_who_blocked_the_bot_is_marked(line: Line, sandbox: Sandbox) -> None:
    line.sql("insert into subscribers (bot_id, user_id) values (:bot, 1003)", bot=line.id)
    sandbox.block("user1", bot=line.id)
    error = line.one(SendMessage(chat_id=1003, text="hello"))
    assert isinstance(error, PermanentError)
    assert error.reason == "blocked"
    assert line.sql("select blocked_why, blocked_at is not null from subscribers") == [("blocked", True)]


def test_a_group_that_became_a_supergroup_gets_it_once_under_its_new_id(line: Line, sandbox: Sandbox) -> None:
    group = sandbox.post("chats", **{"as": "admin"}, title="Team", type="group")["id"]
    sandbox.post("join", **{"as": "admin"}, chat=group, bot=line.id)
    line.sql(
        "insert into tasks (id, queue, task_name, max_attempts, bot_id, chat)"
        " values (gen_random_uuid(), 'post', 'x', 3, :bot, :chat)",
        bot=line.id,
        chat=group,
    )
    new = sandbox.post("upgrade", **{"as": "admin"}, chat=group)["to"]
    sent = line.one(SendMessage(chat_id=group, text="to the team"))
    assert sent.chat.id == new
    stored = [entry for entry in sandbox.log(bot=line.id, stored=True) if entry["method"] == "sendMessage"]
    assert [entry["chat"] for entry in stored] == [new]
    assert line.sql("select migrated_to from chats where id = :id", id=group) == [(new,)]
    assert line.sql("select chat from tasks") == [(new,)]
    assert line.one(SendMessage(chat_id=group, text="again")).chat.id == new
    refused = [entry for entry in sandbox.log(bot=line.id, method="sendMessage") if entry["outcome"] == "error"]
    assert len(refused) == 1, "the second one went straight to the new id"


@pytest.mark.parametrize("kind", ["500", "502", "cut", "reset_after", "reset_before"])
def test_the_sandboxs_faults_leave_a_message_in_doubt_and_an_edit_done(line: Line, sandbox: Sandbox, kind: str) -> None:
    first = line.one(SendMessage(chat_id=1003, text="first"))
    sandbox.fault(kind, next=1, bot=line.id)
    assert type(line.one(SendMessage(chat_id=1003, text="second"))) is Ambiguous
    sandbox.fault(kind, next=1, bot=line.id)
    edited = line.one(EditMessageText(chat_id=1003, message_id=first.message_id, text="edited"))
    assert edited is True or edited.text == "edited"
    assert sandbox.messages(as_="user1", bot=line.id)[-2 if kind in ("cut", "reset_after") else -1]["text"] == "edited"


def test_replies_wait_for_a_429_and_arrive_once(line: Line, sandbox: Sandbox) -> None:
    sandbox.fault("429", next=1, retry_after=1, bot=line.id, scope="bot")
    sent = line.one(SendMessage(chat_id=1003, text="patience"))
    assert not isinstance(sent, BaseException)
    log = sandbox.log(bot=line.id, method="sendMessage")
    assert [entry.get("code", 200) for entry in log] == [429, 200]
    assert not any(entry.get("inside_retry_after") for entry in log)


def test_a_burst_to_many_chats_is_never_refused(line: Line, sandbox: Sandbox) -> None:
    for number in range(1, 51):
        sandbox.start(as_=f"subscriber{number}", bot=line.id)
    sent = line.do(*(SendMessage(chat_id=2000 + n, text="x") for n in range(1, 51) for _ in (1, 2)))
    assert [one for one in sent if isinstance(one, BaseException)] == []
    assert not any(entry.get("limit") for entry in sandbox.log(bot=line.id))
