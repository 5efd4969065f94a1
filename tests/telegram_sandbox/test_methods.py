"""Methods and their refusals, in Telegram's words."""

from __future__ import annotations

import http.server
import json
import threading
from pathlib import Path
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from telegram_sandbox.client import Sandbox
from telegram_sandbox.methods import METHODS
from telegram_sandbox.seed import CHANNEL, GROUP
from tests.telegram_sandbox.conftest import Caller
from tests.telegram_sandbox.echo_bot import png

ANN, USER1 = 2001, 1003


def form(bot: Caller, name: str, fields: dict[str, str], files: dict[str, tuple[str, bytes]]) -> dict[str, object]:
    parts = [f'--B\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n'.encode() for k, v in fields.items()]
    for key, (file, data) in files.items():
        head = f'--B\r\nContent-Disposition: form-data; name="{key}"; filename="{file}"\r\n\r\n'
        parts += [head.encode(), data, b"\r\n"]
    body = b"".join([*parts, b"--B--\r\n"])
    type_ = {"Content-Type": "multipart/form-data; boundary=B"}
    return dict(json.loads(bot.request("POST", f"/bot{bot.token}/{name}", body, type_)[2]))


def test_any_token_of_telegrams_form_makes_a_bot_and_other_words_do_not(bot: Caller) -> None:
    assert bot.call("getMe")["id"] == bot.id
    for token, code in ((f"{bot.id}:short", 401), ("words", 404), (f"x{bot.id}:{'t' * 35}", 401)):
        assert bot.request("GET", f"/bot{token}/getMe")[0] == code


def test_a_revoked_token_is_unauthorized(bot: Caller, sandbox: Sandbox) -> None:
    sandbox.bot(bot.id, revoked=True)
    assert bot.refused("sendMessage", chat_id=ANN, text="x") == "401 Unauthorized"
    sandbox.bot(bot.id, revoked=False)
    assert bot.call("getMe")["id"] == bot.id


def test_names_of_methods_are_case_insensitive_and_parameters_come_in_any_body(bot: Caller) -> None:
    path = f"/bot{bot.token}/sendmessage"
    query = urlencode({"chat_id": ANN, "text": "по + адресу & %"})
    text = [json.loads(bot.request("GET", f"{path}?{query}")[2])["result"]["text"]]
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    text += [json.loads(bot.request("POST", path, query.encode(), kind)[2])["result"]["text"]]
    made = form(bot, "SENDMESSAGE", {"chat_id": str(ANN), "text": "по + адресу & %"}, {})
    assert [*text, made["result"]["text"]] == ["по + адресу & %"] * 3  # type: ignore[index]
    assert bot.call("SendMessage", chat_id=ANN, text="1")["text"] == "1"


def test_an_unknown_method_is_not_found(bot: Caller) -> None:
    assert bot.refused("sendPigeon") == "404 Not Found: method not found"


def test_lengths_count_after_the_markup_in_utf16_units(bot: Caller) -> None:
    markup = "<b>" + "😀" * 2048 + "</b>"
    assert bot.call("sendMessage", chat_id=ANN, text=markup, parse_mode="HTML")["entities"][0]["length"] == 4096
    assert bot.refused("sendMessage", chat_id=ANN, text="😀" * 2048 + "x") == "400 Bad Request: message is too long"
    assert bot.refused("sendMessage", chat_id=ANN, text=" \n") == "400 Bad Request: message text is empty"
    photo = {"photo": ("a.png", png(9, 9))}
    refused = form(bot, "sendPhoto", {"chat_id": str(ANN), "caption": "x" * 1025}, photo)
    assert refused["description"] == "Bad Request: message caption is too long"
    assert form(bot, "sendPhoto", {"chat_id": str(ANN), "caption": "x" * 1024}, photo)["ok"]


@pytest.mark.parametrize(("data", "fits"), [("x" * 64, True), ("я" * 32, True), ("я" * 33, False), ("", False)])
def test_callback_data_has_1_to_64_bytes(bot: Caller, data: str, fits: bool) -> None:
    markup = {"inline_keyboard": [[{"text": "b", "callback_data": data}]]}
    if fits:
        assert bot.call("sendMessage", chat_id=ANN, text="x", reply_markup=markup)["reply_markup"] == markup
    else:
        assert (
            bot.refused("sendMessage", chat_id=ANN, text="x", reply_markup=markup)
            == "400 Bad Request: BUTTON_DATA_INVALID"
        )


def test_bad_keyboards_are_refused(bot: Caller) -> None:
    def refused(markup: object) -> str:
        return bot.refused("sendMessage", chat_id=ANN, text="x", reply_markup=markup).removeprefix("400 Bad Request: ")

    assert refused("{") == "can't parse reply keyboard markup JSON object"
    assert refused([1]) == "object expected as reply markup"
    assert "Text buttons are unallowed" in refused({"inline_keyboard": [[{"text": "b"}]]})
    assert "Wrong HTTP URL" in refused({"inline_keyboard": [[{"text": "b", "url": "x y"}]]})
    many = [[{"text": "b", "callback_data": "d"}]] * 101
    assert refused({"inline_keyboard": many}) == "reply markup is too long"


def test_whoever_cannot_be_written_to_is_named_as_telegram_names_it(bot: Caller, sandbox: Sandbox) -> None:
    def refused(chat: object) -> str:
        return bot.refused("sendMessage", chat_id=chat, text="x")

    assert refused(12345) == "400 Bad Request: chat not found"
    assert refused("@nobody") == "400 Bad Request: chat not found"
    assert refused("") == "400 Bad Request: chat_id is empty"
    assert refused(USER1) == "403 Forbidden: bot can't initiate conversation with a user"
    sandbox.block("subscriber2", bot.id)
    assert refused(2002) == "403 Forbidden: bot was blocked by the user"
    sandbox.block("subscriber2", bot.id, blocked=False)
    assert bot.call("sendMessage", chat_id=2002, text="again")["chat"]["id"] == 2002
    sandbox.post("deactivate", **{"as": "subscriber3"})
    assert refused(2003) == "403 Forbidden: user is deactivated"
    sandbox.post("deactivate", **{"as": "subscriber3"}, deactivated=False)
    for verb, words in (("kick", "was kicked from"), ("leave", "is not a member of")):
        sandbox.post(verb, chat="group", bot=bot.id)
        assert refused(GROUP) == f"403 Forbidden: bot {words} the supergroup chat"
        sandbox.post(verb, chat="@news", bot=bot.id)
        assert refused("@news") == f"403 Forbidden: bot {words} the channel chat"
    sandbox.post("join", chat="@news", bot=bot.id)
    assert refused("@news") == "400 Bad Request: need administrator rights in the channel chat"


def test_numbers_that_are_none_are_of_nothing(bot: Caller) -> None:
    for number in (float("inf"), float("nan"), "x", 10**400):
        assert bot.refused("sendMessage", chat_id=number, text="x") == "400 Bad Request: chat not found"
        assert (
            bot.refused("deleteMessage", chat_id=ANN, message_id=number)
            == "400 Bad Request: message to delete not found"
        )


def test_a_user_who_wrote_first_can_be_answered(bot: Caller, sandbox: Sandbox) -> None:
    sandbox.say("hello", "user2", bot=bot.id)
    assert bot.call("sendMessage", chat_id=1004, text="hi")["chat"]["first_name"] == "Oliver"


def test_an_upgraded_group_names_its_new_number(bot: Caller, sandbox: Sandbox) -> None:
    chat = sandbox.post("chats", title="Old", type="group", members=[bot.id])
    assert bot.call("sendMessage", chat_id=chat["id"], text="x")["chat"]["type"] == "group"
    moved = sandbox.post("upgrade", chat=chat["id"])
    status, _, body = bot.raw("sendMessage", chat_id=chat["id"], text="x")
    assert status == 400
    assert json.loads(body)["parameters"] == {"migrate_to_chat_id": moved["to"]}
    assert bot.call("sendMessage", chat_id=moved["to"], text="x")["chat"]["type"] == "supergroup"


def test_an_edit_changes_the_message_and_an_equal_one_is_not_modified(bot: Caller) -> None:
    markup = {"inline_keyboard": [[{"text": "b", "callback_data": "d"}]]}
    sent = bot.call("sendMessage", chat_id=ANN, text="one", reply_markup=markup)
    place = {"chat_id": ANN, "message_id": sent["message_id"]}
    unmodified = (
        "400 Bad Request: message is not modified: specified new message content and reply markup are exactly"
        " the same as a current content and reply markup of the message"
    )
    assert (
        bot.refused("editMessageText", **place, text="<b></b>one ", parse_mode="HTML", reply_markup=markup)
        == unmodified
    )
    edited = bot.call("editMessageText", **place, text="*one*", parse_mode="Markdown")
    assert edited["entities"] == [{"type": "bold", "offset": 0, "length": 3}]
    assert "reply_markup" not in edited
    assert "edit_date" in edited
    assert bot.refused("editMessageReplyMarkup", **place) == unmodified
    assert bot.call("editMessageReplyMarkup", **place, reply_markup=markup)["reply_markup"] == markup
    assert (
        bot.refused("editMessageCaption", **place, caption="x")
        == "400 Bad Request: there is no caption in the message to edit"
    )


def test_what_is_not_there_or_not_its_own_cannot_be_edited_or_deleted(bot: Caller, sandbox: Sandbox) -> None:
    assert (
        bot.refused("editMessageText", chat_id=ANN, message_id=999, text="x")
        == "400 Bad Request: message to edit not found"
    )
    assert bot.refused("deleteMessage", chat_id=ANN, message_id=999) == "400 Bad Request: message to delete not found"
    sandbox.say("mine", "user1", bot=bot.id)
    assert (
        bot.refused("editMessageText", chat_id=USER1, message_id=1, text="x")
        == "400 Bad Request: message can't be edited"
    )
    group = sandbox.post("say", **{"as": "user1"}, chat="group", text="mine")["message"]["message_id"]
    assert bot.refused("deleteMessage", chat_id=GROUP, message_id=group) == "400 Bad Request: message can't be deleted"
    sent = bot.call("sendMessage", chat_id=ANN, text="x")["message_id"]
    assert bot.call("deleteMessage", chat_id=ANN, message_id=sent) is True
    assert bot.refused("deleteMessage", chat_id=ANN, message_id=sent) == "400 Bad Request: message to delete not found"


def test_a_reply_holds_what_it_answers(bot: Caller) -> None:
    first = bot.call("sendMessage", chat_id=ANN, text="first")["message_id"]
    second = bot.call("sendMessage", chat_id=ANN, text="second", reply_parameters={"message_id": first})
    assert second["reply_to_message"]["text"] == "first"
    third = bot.call("sendMessage", chat_id=ANN, text="third", reply_to_message_id=second["message_id"])
    assert "reply_to_message" not in third["reply_to_message"]
    missing = {"message_id": 999}
    assert bot.refused("sendMessage", chat_id=ANN, text="x", reply_parameters=missing).endswith(
        "message to be replied not found"
    )
    assert bot.call(
        "sendMessage", chat_id=ANN, text="x", reply_parameters={**missing, "allow_sending_without_reply": True}
    )


def test_copies_and_forwards_carry_the_content(bot: Caller) -> None:
    post = bot.call("sendMessage", chat_id="@news", text="<b>News</b>", parse_mode="HTML")["message_id"]
    source = {"chat_id": ANN, "from_chat_id": CHANNEL, "message_id": post}
    assert set(bot.call("copyMessage", **source)) == {"message_id"}
    forwarded = bot.call("forwardMessage", **source)
    assert forwarded["entities"][0]["type"] == "bold"
    assert forwarded["forward_origin"]["chat"]["title"] == "Новости"
    gone = {**source, "message_id": 9999}
    assert bot.refused("copyMessage", **gone) == "400 Bad Request: message to copy not found"
    assert bot.refused("forwardMessage", **gone) == "400 Bad Request: message to forward not found"


def test_a_file_can_be_uploaded_sent_again_and_downloaded(bot: Caller) -> None:
    picture = png(30, 20)
    sent = form(bot, "sendPhoto", {"chat_id": str(ANN), "photo": "attach://f"}, {"f": ("я.png", picture)})["result"]
    photo = sent["photo"][-1]  # type: ignore[index]
    assert (photo["width"], photo["height"], photo["file_size"]) == (30, 20, len(picture))
    assert bot.call("sendPhoto", chat_id=ANN, photo=photo["file_id"])["photo"] == [photo]
    path = bot.call("getFile", file_id=photo["file_id"])["file_path"]
    assert bot.request("GET", f"/file/bot{bot.token}/{path}")[2] == picture
    assert bot.request("GET", f"/file/bot{bot.token}/../journal.jsonl")[0] == 404
    refused = "400 Bad Request: can't use file of type Photo as Document"
    assert bot.refused("sendDocument", chat_id=ANN, document=photo["file_id"]) == refused
    named = form(bot, "sendDocument", {"chat_id": str(ANN)}, {"document": ("отчёт.pdf", b"%PDF")})["result"]
    assert named["document"]["file_name"] == "отчёт.pdf"  # type: ignore[index]
    assert named["document"]["mime_type"] == "application/pdf"  # type: ignore[index]
    edited = {"type": "document", "media": named["document"]["file_id"], "caption": "c"}  # type: ignore[index]
    place = {"chat_id": ANN, "message_id": sent["message_id"]}  # type: ignore[index]
    assert bot.call("editMessageMedia", **place, media=edited)["caption"] == "c"


def test_what_is_no_file_is_refused(bot: Caller) -> None:
    assert bot.refused("sendPhoto", chat_id=ANN) == "400 Bad Request: there is no photo in the request"
    wrong = "400 Bad Request: wrong file identifier/HTTP URL specified"
    assert bot.refused("sendPhoto", chat_id=ANN, photo="nothing") == wrong
    assert bot.refused("getFile", file_id="nothing") == "400 Bad Request: invalid file_id"
    broken = form(bot, "sendPhoto", {"chat_id": str(ANN)}, {"photo": ("a.png", b"no picture")})
    assert broken["description"] == "Bad Request: IMAGE_PROCESS_FAILED"


def test_an_address_is_fetched_from_this_machine_only(bot: Caller) -> None:
    refused = "400 Bad Request: failed to get HTTP URL content"
    assert bot.refused("sendPhoto", chat_id=ANN, photo="http://example.invalid/a.png") == refused
    assert bot.refused("sendPhoto", chat_id=ANN, photo="http://192.0.2.1/a.png") == refused

    class Pictures(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(png(4, 4))

        def log_message(self, *_: object) -> None: ...

    with http.server.HTTPServer(("127.0.0.1", 0), Pictures) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        sent = bot.call("sendPhoto", chat_id=ANN, photo=f"http://127.0.0.1:{server.server_port}/a.png")
        server.shutdown()
    assert sent["photo"][0]["width"] == 4


def test_commands_are_kept_by_scope_and_language(bot: Caller, sandbox: Sandbox) -> None:
    command = [{"command": "go", "description": "Идти"}]
    scope = {"type": "chat", "chat_id": USER1}
    bot.call("setMyCommands", commands=command, scope=scope, language_code="ru")
    assert bot.call("getMyCommands") == []
    assert bot.call("getMyCommands", scope=json.dumps(scope), language_code="ru") == command

    def shown(user: str) -> object:
        chats = sandbox.get("state", **{"as": user})["chats"]
        return next(chat["commands"] for chat in chats if (chat.get("bot") or {}).get("id") == bot.id)

    assert shown("user1") == command
    assert shown("user2") == []
    bot.call("deleteMyCommands", scope=scope, language_code="ru")
    assert shown("user1") == []
    assert (
        bot.refused("setMyCommands", commands=[{"command": "Не", "description": "x"}])
        == "400 Bad Request: BOT_COMMAND_INVALID"
    )


def test_a_query_can_be_answered_by_its_bot_only(bot: Caller, sandbox: Sandbox) -> None:
    markup = {"inline_keyboard": [[{"text": "Да", "callback_data": "y"}]]}
    bot.call("sendMessage", chat_id=ANN, text="?", reply_markup=markup)
    pressed = sandbox.post("press", **{"as": "subscriber1"}, bot=bot.id, button="Да")
    query = bot.call("getUpdates")[0]["callback_query"]
    assert (query["id"], query["data"], query["from"]["id"]) == (pressed["query"], "y", ANN)
    assert query["message"]["reply_markup"] == markup
    assert bot.call("answerCallbackQuery", callback_query_id=query["id"], text="ok", show_alert=True) is True
    answers = sandbox.answers("subscriber1", bot=bot.id, after=pressed["seq"], wait=5, quiet=0.1)
    assert answers == [{"kind": "answer", "text": "ok", "alert": True}]
    too_old = "400 Bad Request: query is too old and response timeout expired or query ID is invalid"
    assert bot.refused("answerCallbackQuery", callback_query_id="1") == too_old


def test_members_and_administrators_are_told(bot: Caller) -> None:
    assert bot.call("getChatMember", chat_id=CHANNEL, user_id=bot.id)["can_post_messages"] is True
    assert bot.call("getChatMember", chat_id=GROUP, user_id=1003)["status"] == "member"
    assert bot.call("getChatMember", chat_id=GROUP, user_id=2001)["status"] == "left"
    admins = bot.call("getChatAdministrators", chat_id="@news")
    assert [admin["user"]["id"] for admin in admins] == [1001, 1002, bot.id]
    assert (
        bot.refused("getChatAdministrators", chat_id=ANN)
        == "400 Bad Request: there are no administrators in the private chat"
    )
    assert bot.call("getChat", chat_id="@news")["id"] == CHANNEL
    assert bot.call("getChatMemberCount", chat_id=ANN) == 2


def test_an_uploaded_file_of_a_person_reaches_the_bot(bot: Caller, sandbox: Sandbox, tmp_path: Path) -> None:
    file = tmp_path / "план.txt"
    file.write_text("завтра", encoding="utf-8")
    sandbox.upload(file, "user1", bot=bot.id, caption="вот")
    message = bot.call("getUpdates")[0]["message"]
    assert (message["document"]["file_name"], message["caption"]) == ("план.txt", "вот")


WORDS = (
    "chat_id text message_id from_chat_id reply_markup entities parse_mode media photo document caption commands scope"
)
NAMES = f"{WORDS} reply_parameters callback_query_id action user_id file_id message_ids offset limit allowed_updates"
anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from([2001, "@news", "<b>x", "{}"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["type", "inline_keyboard", "keyboard", "text", "url", "message_id"]), inner, max_size=3
        )
    ),
    max_leaves=4,
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from([*METHODS, "getUpdates", "deleteWebhook"]),
    parameters=st.dictionaries(st.sampled_from(NAMES.split()), anything, max_size=5),
)
def test_no_call_breaks_the_server(bot: Caller, name: str, parameters: dict[str, object]) -> None:
    answer = json.loads(bot.raw(name, **{"chat_id": ANN, **parameters})[2])
    assert answer["ok"] or answer["error_code"] != 500, answer
