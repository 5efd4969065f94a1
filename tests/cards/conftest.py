"""Workers with a bot that user1 has started, and what a bot would do: write a card, press a button."""

from __future__ import annotations

import json
import urllib.request
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from chronos import cards
from chronos.models.new_task import NewTask
from telegram_sandbox.client import Sandbox
from tests.processes import Workers, eventually
from tests.telegram.conftest import CANARY, sandbox, sandbox_process  # noqa: F401

USER, ADMIN = 1003, 1001


class Chat:
    def __init__(self, workers: Workers, sandbox: Sandbox, folder: Path) -> None:
        self.workers, self.sandbox, self.folder = workers, sandbox, folder
        self.bot = uuid.uuid4().int % 10**9 + 10**8
        sandbox.bot(self.bot)
        for who in ("user1", "admin"):
            sandbox.start(as_=who, bot=self.bot)
        workers.environment |= {
            "CHRONOS_ACTORS": "tests.cards.actors",
            "CHRONOS_BOT_TOKEN": f"{self.bot}:{CANARY}",
            "CHRONOS_TELEGRAM_URL": sandbox.url,
        }
        self.sql(f"insert into users (id, language, role) values ({USER}, 'ru', 'user')")

    def sql(self, statement: str, **facts: Any) -> list[Any]:
        with self.workers.runtime.database.statement() as connection:
            result = connection.execute(text(statement), facts)
            return [tuple(row) for row in result] if result.returns_rows else []

    def submit(self, *, card: bool = True, actor: str = "walk", chat: int | None = USER, **params: Any) -> uuid.UUID:
        """With a card, as when a button was pressed: message, task and card before anybody runs it."""
        task = NewTask("post", actor, params, user_id=USER, bot_id=self.bot, chat=chat)
        message = self.call("sendMessage", chat_id=chat, text="…")["message_id"] if card and chat else None
        with self.workers.runtime.database.transaction() as connection:
            id_ = self.workers.runtime.submit(task, session=connection)[0].id
            if message is not None and chat is not None:
                cards.open_card(connection, id_, self.bot, chat, message, "ru")
        return id_

    def call(self, method: str, **fields: Any) -> Any:
        """The bot, past Chronos."""
        request = urllib.request.Request(
            f"{self.sandbox.url}/bot{self.bot}:{CANARY}/{method}",
            json.dumps(fields).encode(),
            {"Content-Type": "application/json"},
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=10) as answer:
            return json.load(answer)["result"]

    def messages(self, who: str = "user1") -> list[dict[str, Any]]:
        """The bot's own in the chat."""
        found = self.sandbox.messages(as_=who, bot=self.bot)
        return [message for message in found if message["from"]["id"] == self.bot]

    def texts(self, who: str = "user1") -> list[str]:
        return [message.get("text", "").replace("\u00a0", " ") for message in self.messages(who)]

    def becomes(self, *beginnings: str, who: str = "user1") -> list[str]:
        """The bot's messages, once each begins like that and there are no others."""

        def fits() -> bool:
            found = self.texts(who)
            return len(found) == len(beginnings) and all(map(str.startswith, found, beginnings))

        eventually(fits, what=f"{beginnings}; {self.texts(who)}\n{self.tasks()}\n{self.workers.logs()[-3000:]}")
        return self.texts(who)

    def tasks(self) -> list[Any]:
        return self.sql("select task_name, status, attempt, error_message, result_payload from tasks order by id")

    def settled(self) -> None:
        """Every notice has been told."""
        self.workers.all_final()

    def buttons(self, which: int = -1) -> dict[str, str]:
        """Of one of the bot's messages: what they say, and their data."""
        message = self.messages()[which]
        rows = message.get("reply_markup", {}).get("inline_keyboard", [])
        return {button["text"]: button["callback_data"] for row in rows for button in row}

    def press(self, label: str, which: int = -1, *, user: int = USER, data: str | None = None) -> str:
        """What the bot answers to the press."""
        message = self.messages()[which]
        params = {
            "data": data or self.buttons(which)[label], "bot": self.bot, "chat": message["chat"]["id"],
            "message": message["message_id"], "user": user,
        }  # fmt: skip
        id_ = self.workers.runtime.submit(NewTask("system", "press", params, priority=1))[0].id
        look = "select status, result_payload from tasks where id = :id"
        eventually(lambda: self.sql(look, id=id_)[0][0] == "completed", what=f"pressed {label}\n{self.workers.logs()}")
        return str(self.sql(look, id=id_)[0][1])

    def open_gate(self) -> None:
        self.gate.touch()

    @property
    def gate(self) -> Path:
        return self.folder / "gate"


@pytest.fixture
def chat(embedded: Workers, sandbox: Sandbox, tmp_path: Path) -> Chat:  # noqa: F811
    return Chat(embedded, sandbox, tmp_path)


Submit = Callable[..., uuid.UUID]
