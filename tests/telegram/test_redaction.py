"""The token is in no log, table or queue: errors of every kind are provoked with a canary, then it is looked for."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pika
import pytest
import structlog
from dramatiq.common import xq_name

from chronos import logs, redaction
from chronos.config import Settings
from chronos.errors import PermanentError, one_line, storable
from chronos.queues import POLICIES
from chronos.telegram.session import NoAnswer
from telegram_sandbox.client import Sandbox
from tests.processes import Workers, eventually
from tests.telegram.conftest import CANARY, Canned, Line
from tests.telegram.test_sends import Sending

TOKEN = f"7000000:{CANARY}"


@pytest.fixture(autouse=True)
def hidden() -> None:
    redaction.hide(TOKEN)


def test_a_token_is_hidden_wherever_it_stands_and_the_bots_id_stays() -> None:
    text = f"https://api.telegram.org/bot{TOKEN}/getMe and again {TOKEN}"
    assert redaction.without_secrets(text) == "https://api.telegram.org/bot7000000:***/getMe and again 7000000:***"
    assert CANARY not in storable(text) + one_line(ValueError(text))


def test_a_setting_that_was_read_is_hidden() -> None:
    secret = "AAHother_OTHER-other_OTHER-other_OT"
    Settings(bot_token=f"123456:{secret}")
    assert redaction.without_secrets(f"x{secret}x") == "x***x"


@pytest.fixture
def log(tmp_path: Path) -> Any:
    root = logging.getLogger()
    before = (root.handlers[:], root.level, sys.excepthook, threading.excepthook)
    made = []

    def start(form: str) -> Path:
        path = tmp_path / f"{form}.log"
        logs.set_up(Settings(log_file=path, log_format=form))
        made.extend(root.handlers)
        return path

    yield start
    for handler in made:
        handler.close()
    root.handlers[:], sys.excepthook, threading.excepthook = before[0], before[2], before[3]
    root.setLevel(before[1])
    structlog.reset_defaults()


@pytest.mark.parametrize("form", ["pretty", "json"])
def test_no_line_of_the_log_holds_the_token(log: Callable[[str], Path], form: str) -> None:
    path = log(form)
    ours, theirs = structlog.get_logger("chronos.x"), logging.getLogger("aiohttp.client")
    ours.warning(f"calling {TOKEN}", url=f"http://h/bot{TOKEN}/x", nested={"a": [TOKEN]})
    theirs.error("GET %s", f"http://h/file/bot{TOKEN}/x")
    try:
        raise ValueError(TOKEN)
    except ValueError:
        ours.exception("it failed")
        theirs.exception("it failed")
    text = path.read_text(encoding="utf-8")
    assert text.count("***") >= 6
    assert CANARY not in text


def test_what_nobody_caught_is_printed_without_the_token(
    log: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    log("pretty")
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    error = ValueError(TOKEN)
    sys.excepthook(ValueError, error, None)
    thread = threading.Thread(target=lambda: threading.excepthook(_args(error)))
    thread.start()
    thread.join()
    assert shown.getvalue().count("7000000:***") == 2
    assert CANARY not in shown.getvalue()


def _args(error: BaseException) -> Any:
    return threading.ExceptHookArgs([type(error), error, None, None])


def test_a_download_that_fails_does_not_show_its_address(connect: Callable[..., Line], canned: Canned) -> None:
    line = connect(canned.url)

    async def download() -> BaseException:
        try:
            await line.bot.download_file("documents/none.pdf", io.BytesIO())
        except Exception as error:
            return error
        finally:
            await line.bot.session.close()
        raise AssertionError("it was downloaded")

    for status, kind in ((404, PermanentError), (502, NoAnswer)):
        canned.says(status, "nothing")
        error = asyncio.run(download())
        assert type(error) is kind
        assert CANARY not in repr(error) + str(error)
        assert error.__suppress_context__


@pytest.mark.rabbitmq
def test_errors_of_every_kind_leave_the_token_nowhere(
    workers: Workers, sandbox: Sandbox, amqp_url: str, canned: Canned
) -> None:
    """Dead letters with tracebacks, unknown outcomes, retries, redirects, downloads: the canary is in none of them."""
    sending = Sending(workers, sandbox)
    workers.environment |= {"CHRONOS_LOG_LEVEL": "debug"}
    workers.start(1)
    for kind in ("429", "500", "502", "cut", "reset_before", "reset_after"):
        sandbox.fault(kind, next=1, bot=sending.bot)
        sending.submit(kind)
        eventually(lambda: workers.sql("select 1 where not exists (select from tasks where status = 'in_progress')"))
    sending.submit("nobody", chat=987654321)
    sending.submit("a download", actor="download")
    sending.submit("raised", actor="leak")
    finals = ("completed", "failed", "unknown")
    eventually(lambda: not workers.sql(f"select 1 from tasks where status not in {finals}"), what=workers.logs())
    assert workers.sql("select count(*) > 1 from dead_letters where traceback <> ''") == [(True,)]

    found = {name: _holds(workers, name) for (name,) in workers.sql(_TABLES)}
    assert not any(found.values()), found
    text = "\n".join(path.read_text(errors="replace") for path in workers.folder.glob("worker*.log"))
    assert f"{sending.bot}:***" in text, "the actor did show it"
    assert CANARY not in text
    connection = pika.BlockingConnection(pika.URLParameters(amqp_url))
    for queue in POLICIES:
        for name in (queue, xq_name(queue)):
            channel = connection.channel()
            try:
                _, properties, body = channel.basic_get(name, auto_ack=True)
            except pika.exceptions.ChannelClosedByBroker:
                continue
            while body is not None:
                assert CANARY not in body.decode("utf-8", "replace") + repr(properties)
                _, properties, body = channel.basic_get(name, auto_ack=True)
    connection.close()


_TABLES = "select tablename from pg_tables where schemaname = 'public'"


def _holds(workers: Workers, table: str) -> int:
    [(number,)] = workers.sql(f"select count(*) from {table} x where to_jsonb(x)::text like '%{CANARY}%'")
    return int(number)


def test_the_canary_would_be_found(connect: Callable[..., Line], canned: Canned) -> None:
    line = connect(canned.url)
    line.sql("insert into bots (id, name) values (1, :name)", name=json.dumps(TOKEN))
    assert line.sql(f"select 1 from bots x where to_jsonb(x)::text like '%{CANARY}%'") == [(1,)]
