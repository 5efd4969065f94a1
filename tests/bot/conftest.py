"""One bot for all quick tests, in this process, against the real sandbox and a database of its own; each test has
people of its own. Tests of the process itself start it (see BotProcess)."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import text

from chronos.models.user import Role
from private_services import PrivatePostgres
from telegram_sandbox.client import Sandbox
from telegram_sandbox.process import SandboxProcess
from tests.conftest import TEMPLATE
from tests.processes import ROOT, eventually

SECRET = "A" * 35
_bots = itertools.count(8_000_001)
_people = itertools.count(500_001)

Json = dict[str, Any]


@pytest.fixture(scope="session")
def bot_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    with SandboxProcess(tmp_path_factory.mktemp("bot-sandbox"), limits=False) as process:
        yield process


def new_database(postgres: PrivatePostgres) -> str:
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"create database {name} template {TEMPLATE}")
    return postgres.url.rsplit("/", 1)[0] + "/" + name


class Who:
    """Somebody who talks to the bot in private."""

    def __init__(self, sandbox: Sandbox, bot_id: int, id_: int, language: str) -> None:
        self.sandbox, self.bot_id, self.id, self.language = sandbox, bot_id, id_, language

    def says(self, words: str, wait: float = 15) -> Json:
        """The bot's next message."""
        said = self.sandbox.post("say", **{"as": self.id}, text=words, bot=self.bot_id)
        return self._next(said["seq"], "message", wait)

    def presses(self, button: str, wait: float = 15) -> Json:
        """What the message with the button became, or the new one."""
        pressed = self.sandbox.post("press", **{"as": self.id}, button=button, bot=self.bot_id)
        return self._next(pressed["seq"], "message", wait)

    def is_answered(self, button: str, wait: float = 15) -> str:
        """What the press was answered with."""
        pressed = self.sandbox.post("press", **{"as": self.id}, button=button, bot=self.bot_id)
        return str(self._next(pressed["seq"], "answer", wait, pressed["query"]).get("text", ""))

    def _next(self, after: int, kind: str, wait: float, query: str | None = None) -> Json:
        wanted = {"message": ("message", "edit"), "answer": ("answer",)}[kind]
        found: list[Json] = []

        def look() -> bool:
            news = self.sandbox.get("answers", **{"as": self.id}, bot=self.bot_id, after=after, wait=1)
            found[:] = [
                event
                for event in news["events"]
                if event["kind"] in wanted and (query is None or event["query"] == query)
            ]
            return bool(found)

        eventually(look, wait, f"an answer of the bot ({kind})")
        return dict(found[0]["stored"]["message"]) if kind == "message" else found[0]

    def messages(self) -> list[Json]:
        """Of the bot, oldest first."""
        found = self.sandbox.messages(as_=self.id, bot=self.bot_id)
        return [message for message in found if message["from"].get("is_bot")]

    def last(self) -> Json:
        return self.messages()[-1]


def buttons_of(message: Json) -> list[str]:
    rows = message.get("reply_markup", {}).get("inline_keyboard", [])
    return [button["text"] for row in rows for button in row]


def call(bot: Bot, method: str, **fields: Any) -> Any:
    """The Bot API, past the bot."""
    query = urllib.parse.urlencode({name: json.dumps(value) for name, value in fields.items()})
    url = f"{bot.sandbox.url}/bot{bot.id}:{SECRET}/{method}?{query}"
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)["result"]


def menu_of(bot: Bot, who: Who) -> list[str]:
    """The commands that Telegram offers to this person alone."""
    found = call(bot, "getMyCommands", scope={"type": "chat", "chat_id": who.id})
    return [command["command"] for command in found]


class Bot:
    """A bot in this process; `new` makes people of any role for it."""

    def __init__(self, sandbox: Sandbox, database_url: str, bot_id: int) -> None:
        from chronos import config, runtime, telegram

        os.environ.update(
            CHRONOS_DATABASE_URL=database_url,
            CHRONOS_BOT_TOKEN=f"{bot_id}:{SECRET}",
            CHRONOS_TELEGRAM_URL=sandbox.url,
            CHRONOS_LEASE_SECONDS="4",
        )
        config.settings.cache_clear()
        runtime.runtime.cache_clear()
        from chronos.bot.app import App

        self.sandbox, self.id = sandbox, bot_id
        self.here = runtime.runtime()
        self.app: App | None = None
        self.code: int | None = None
        self._loop = asyncio.new_event_loop()
        self._threads = ThreadPoolExecutor(6)
        self._loop.set_default_executor(self._threads)

        async def live() -> int:
            self.app = App(self.here, telegram.bot())
            try:
                return await self.app.main()
            finally:
                await telegram.close()

        def run() -> None:
            self.code = self._loop.run_until_complete(live())
            self._loop.close()

        self._thread = threading.Thread(target=run)
        self._thread.start()
        eventually(lambda: self.app is not None and self.app._started.is_set(), what="the bot is up")

    def end(self) -> None:
        assert self.app is not None
        self._loop.call_soon_threadsafe(self.app.stopping.set)
        self._thread.join(20)
        self._threads.shutdown()
        self.here.close()

    def deliver(self, *updates: Json) -> None:
        """As if Telegram had sent them."""
        assert self.app is not None
        self.app.inbox.store(updates)
        self._loop.call_soon_threadsafe(self.app.handling.wake)

    def sql(self, statement: str, **facts: Any) -> list[Any]:
        with self.here.database.statement() as connection:
            result = connection.execute(text(statement), facts)
            return [tuple(row) for row in result] if result.returns_rows else []

    def new(self, role: Role | None = None, language: str = "ru", zone: str | None = "Europe/Moscow") -> Who:
        id_ = next(_people)
        self.sandbox.post("users", id=id_, first_name=f"Имя{id_}", language_code=language)
        self.sql(
            "insert into users (id, role, time_zone, language_code) values (:id, :role, :zone, :code)",
            id=id_, role=role, zone=zone, code=language,
        )  # fmt: skip
        return Who(self.sandbox, self.id, id_, language)


@pytest.fixture(scope="session")
def bot(postgres: PrivatePostgres, bot_sandbox: SandboxProcess) -> Iterator[Bot]:
    before = dict(os.environ)
    bot_id = next(_bots)
    client = bot_sandbox.client
    client.bot(bot_id, username="chronos_test_bot")
    made = Bot(client, new_database(postgres), bot_id)
    yield made
    made.end()
    os.environ.clear()
    os.environ.update(before)
    from chronos import config, runtime

    config.settings.cache_clear()
    runtime.runtime.cache_clear()


@pytest.fixture
def user(bot: Bot) -> Who:
    return bot.new(Role.USER)


@pytest.fixture
def admin(bot: Bot) -> Who:
    return bot.new(Role.ADMIN)


class BotProcess:
    """`chronos bot` as people run it."""

    def __init__(self, environment: dict[str, str], log: Path) -> None:
        self.log = log
        with open(log, "ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "chronos.cli", "bot"],
                env={**os.environ, **environment, "PYTHONPATH": str(ROOT)},
                cwd=ROOT,
                stdout=output,
                stderr=output,
            )

    def is_up(self) -> None:
        eventually(lambda: "the bot is up" in self.words() or self.process.poll() is not None, 60, "the bot is up")
        assert self.process.poll() is None, self.words()

    def words(self) -> str:
        return self.log.read_text(errors="replace")

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)


Start = Callable[..., BotProcess]
