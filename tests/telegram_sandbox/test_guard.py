"""The page and the control API are for this machine: no rebound name, no web page of somebody else's."""

from __future__ import annotations

import json

import pytest

from telegram_sandbox.client import Sandbox
from tests.telegram_sandbox.conftest import Caller

JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize("path", ["/", "/page/app.js", "/sandbox/state?as=admin", "/sandbox/events", "/sandbox/log"])
def test_another_host_is_refused(bot: Caller, path: str) -> None:
    status, _, body = bot.request("GET", path, headers={"Host": "evil.example"})
    assert status == 403
    assert "evil.example" in json.loads(body)["error"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_a_write_from_another_page_is_refused(bot: Caller, sandbox: Sandbox, headers: dict[str, str]) -> None:
    body = json.dumps({"as": "user1", "text": "forged", "bot": bot.id}).encode()
    assert bot.request("POST", "/sandbox/say", body, {**JSON, **headers})[0] == 403
    assert bot.request("POST", f"/bot{bot.token}/sendMessage", b"chat_id=2001&text=forged", headers)[0] == 403
    assert sandbox.messages("user1", bot=bot.id) == []
    assert sandbox.messages("subscriber1", bot=bot.id) == []


def test_the_page_itself_may_write(bot: Caller) -> None:
    body = json.dumps({"as": "user1", "text": "mine", "bot": bot.id}).encode()
    own = {"Origin": f"http://127.0.0.1:{bot.port}", "Sec-Fetch-Site": "same-origin"}
    assert bot.request("POST", "/sandbox/say", body, {**JSON, **own})[0] == 200


def test_a_form_of_another_page_is_no_json(bot: Caller, sandbox: Sandbox) -> None:
    body = json.dumps({"as": "user1", "text": "forged", "bot": bot.id}).encode()
    assert bot.request("POST", "/sandbox/say", body, {"Content-Type": "text/plain"})[0] == 400
    assert sandbox.messages("user1", bot=bot.id) == []


def test_the_page_runs_no_script_but_its_own(bot: Caller) -> None:
    for path in ("/", "/page/app.js", "/page/frame.css"):
        status, headers, _ = bot.request("GET", path)
        assert status == 200
        policy = headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
    page = bot.request("GET", "/")[2].decode()
    assert "<script>" not in page
    assert "style=" not in page
    assert " on" not in page.split("<body>")[1]


@pytest.mark.parametrize(
    "path", ["/page/../server.py", "/page/%2e%2e/server.py", "/page/x/y.js", "/etc/passwd", "/page/"]
)
def test_nothing_but_the_page_is_served(bot: Caller, path: str) -> None:
    assert bot.request("GET", path)[0] == 404


def test_mistakes_are_one_line(bot: Caller) -> None:
    for name, wish in (
        ("say", {"text": "x", "as": "nobody"}),
        ("press", {"button": "x", "bot": bot.id}),
        ("say", {}),
        ("start", {"code": "no!"}),
    ):
        status, _, body = bot.request("POST", f"/sandbox/{name}", json.dumps(wish).encode(), JSON)
        assert status == 400
        assert "\n" not in json.loads(body)["error"]
    assert bot.request("POST", "/sandbox/nothing", b"{}", JSON)[0] == 404
    assert bot.request("GET", "/sandbox/messages?bot=1x")[0] == 400
