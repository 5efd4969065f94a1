"""A worker with a bot, and what a bot would do: write a card, press a button. Each test is another person's chat."""

from __future__ import annotations

import itertools
import json
import os
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import text

from chronos import cards
from chronos.models.new_task import NewTask
from private_services import PrivatePostgres
from telegram_sandbox.client import Sandbox
from telegram_sandbox.process import SandboxProcess
from tests.conftest import TEMPLATE
from tests.processes import Workers, eventually
from tests.telegram.conftest import CANARY

ADMIN = 1001
_people = itertools.count(2001)


class Chat:
    def __init__(self, workers: Workers, sandbox: Sandbox, folder: Path, bot: int | None = None) -> None:
        self.workers, self.sandbox, self.folder = workers, sandbox, folder
        self.user = next(_people)
        self.gate = folder / "gate"
        self.bot = bot or int(workers.environment["CHRONOS_BOT_TOKEN"].split(":")[0])
        sandbox.start(as_=self.user, bot=self.bot)
        self.sql("insert into users (id, language, role) values (:id, 'ru', 'user')", id=self.user)

    def sql(self, statement: str, **facts: Any) -> list[Any]:
        with self.workers.runtime.database.statement() as connection:
            result = connection.execute(text(statement), facts)
            return [tuple(row) for row in result] if result.returns_rows else []

    def submit(self, *, card: bool = True, actor: str = "walk", queue: str = "post", **params: Any) -> uuid.UUID:
        """With a card as when a button was pressed: task and card before anybody can run it."""
        task = NewTask(queue, actor, params, user_id=self.user, bot_id=self.bot, chat=self.user)
        message = self.call("sendMessage", chat_id=self.user, text="…")["message_id"] if card else None
        with self.workers.runtime.database.transaction() as connection:
            id_ = self.workers.runtime.submit(task, session=connection)[0].id
            if message is not None:
                cards.open_card(connection, id_, self.bot, self.user, message, "ru")
        return id_

    def call(self, method: str, **fields: Any) -> Any:
        """The bot, past Chronos."""
        url = f"{self.sandbox.url}/bot{self.bot}:{CANARY}/{method}"
        request = urllib.request.Request(url, json.dumps(fields).encode(), {"Content-Type": "application/json"})  # noqa: S310
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=10) as answer:
            return json.load(answer)["result"]

    def messages(self, who: int | str | None = None) -> list[dict[str, Any]]:
        """The bot's own in the chat."""
        found = self.sandbox.messages(as_=who or self.user, bot=self.bot)
        return [message for message in found if message["from"]["id"] == self.bot]

    def texts(self, who: int | str | None = None) -> list[str]:
        return [message.get("text", "").replace("\u00a0", " ") for message in self.messages(who)]

    def becomes(self, *beginnings: str, who: int | str | None = None) -> list[str]:
        """The bot's messages, once each begins like that and there are no others."""

        def fits() -> bool:
            found = self.texts(who)
            return len(found) == len(beginnings) and all(map(str.startswith, found, beginnings))

        try:
            eventually(fits)
        except AssertionError:
            raise AssertionError(
                f"{beginnings}; {self.texts(who)}\n{self.tasks()}\n{self.workers.logs()[-3000:]}"
            ) from None
        return self.texts(who)

    def tasks(self) -> list[Any]:
        return self.sql("select task_name, status, attempt, error_message, result_payload from tasks order by id")

    def edits(self) -> int:
        return len(self.sandbox.log(bot=self.bot, method="editMessageText", chat=self.user))

    def no_card_will_come(self) -> None:
        """As if the time had passed in which the bot may still write one."""
        late = "update tasks set created_at = created_at - interval '1 minute', run_at = now(), wake_at = now()"
        eventually(lambda: self.sql(f"{late} where task_name = 'tell' and status = 'pending' returning 1"))

    def settled(self) -> None:
        """Every notice has been told."""
        self.workers.all_final()

    def buttons(self, which: int = -1) -> dict[str, str]:
        """Of one of the bot's messages: what they say, and their data."""
        rows = self.messages()[which].get("reply_markup", {}).get("inline_keyboard", [])
        return {button["text"]: button["callback_data"] for row in rows for button in row}

    def press(self, label: str, which: int = -1, *, user: int | None = None, data: str | None = None) -> str:
        """What the bot answers to the press."""
        params = {
            "data": data or self.buttons(which)[label], "bot": self.bot, "chat": self.user,
            "message": self.messages()[which]["message_id"], "user": user or self.user,
        }  # fmt: skip
        id_ = self.workers.runtime.submit(NewTask("system", "press", params, priority=1))[0].id
        look = "select status, result_payload from tasks where id = :id"
        eventually(lambda: self.sql(look, id=id_)[0][0] == "completed", what=f"pressed {label}")
        return str(self.sql(look, id=id_)[0][1])


def with_bot(workers: Workers, sandbox: Sandbox) -> Workers:
    bot = uuid.uuid4().int % 10**9 + 10**8
    sandbox.bot(bot)
    workers.environment |= {
        "CHRONOS_ACTORS": "tests.cards.actors",
        "CHRONOS_BOT_TOKEN": f"{bot}:{CANARY}",
        "CHRONOS_TELEGRAM_URL": sandbox.url,
    }
    return workers


@pytest.fixture(scope="package")
def sandbox_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    with SandboxProcess(tmp_path_factory.mktemp("sandbox")) as process:
        yield process


@pytest.fixture
def sandbox(sandbox_process: SandboxProcess) -> Iterator[Sandbox]:
    client = sandbox_process.client
    yield client
    client.clear_faults()


@pytest.fixture(scope="package")
def living(
    postgres: PrivatePostgres, sandbox_process: SandboxProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workers]:
    """One worker for all tests that let it live: its start takes seconds."""
    name = f"cards_{os.getpid()}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"create database {name} template {TEMPLATE}")
    url = postgres.url.rsplit("/", 1)[0] + "/" + name
    group = with_bot(Workers(url, None, tmp_path_factory.mktemp("worker")), sandbox_process.client)
    group.start(1, threads=8)
    yield group
    group.end()
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"drop database {name} with (force)")


_CLEAN = "tasks", "cards", "sends", "task_events", "dead_letters", "users", "updates", "queue_states"


@pytest.fixture
def chat(living: Workers, sandbox: Sandbox, tmp_path: Path) -> Iterator[Chat]:
    made = Chat(living, sandbox, tmp_path)
    yield made
    made.gate.touch()
    made.sql("delete from queue_states")
    made.sql("update tasks set status = 'cancelled', finished_at = now(), chat = null where status = 'pending'")
    living.all_final()
    for table in (*_CLEAN, "bots"):
        made.sql(f"delete from {table}")


@pytest.fixture
def mortal(embedded: Workers, sandbox: Sandbox, tmp_path: Path) -> Chat:
    """Its workers may be killed; none runs yet."""
    return Chat(with_bot(embedded, sandbox), sandbox, tmp_path)
