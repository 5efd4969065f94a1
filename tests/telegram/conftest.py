"""A real Telegram sandbox for all tests, a server that answers whatever a test wants, and bots that pass the sender."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import text

from chronos.config import Settings
from chronos.db import Database
from chronos.telegram.sender import make_bot
from chronos.telegram.urgency import REPLY, Urgency, sending_as
from telegram_sandbox.client import Sandbox
from telegram_sandbox.process import SandboxProcess

#: Of a token; a test looks for it everywhere.
CANARY = "AAHcanary_CANARY-canary_CANARY-cana"

_numbers = itertools.count(7_000_001)


@pytest.fixture(scope="session")
def sandbox_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    with SandboxProcess(tmp_path_factory.mktemp("sandbox")) as process:
        yield process


@pytest.fixture
def sandbox(sandbox_process: SandboxProcess) -> Iterator[Sandbox]:
    client = sandbox_process.client
    yield client
    client.clear_faults()


class Line:
    """One bot that talks to one server; each `do` is an event loop of its own."""

    def __init__(self, url: str, database_url: str, paid: bool = False) -> None:
        self.id = next(_numbers)
        self.token = f"{self.id}:{CANARY}"
        self.database = Database(database_url, Settings())
        budget = Database(database_url, Settings(), connections=1)
        self.bot, self.sender = make_bot(self.token, self.database, budget, telegram_url=url, paid=paid)

    def do(self, *methods: Any, urgency: Urgency = REPLY) -> list[Any]:
        """What each call, all at once, came to: its result or its exception."""

        async def all_of_them() -> list[Any]:
            with sending_as(urgency):
                try:
                    return await asyncio.gather(*(self.bot(method) for method in methods), return_exceptions=True)
                finally:
                    await self.bot.session.close()

        return asyncio.run(all_of_them())

    def one(self, method: Any, urgency: Urgency = REPLY) -> Any:
        return self.do(method, urgency=urgency)[0]

    def sql(self, statement: str, **facts: Any) -> list[Any]:
        with self.database.statement() as connection:
            result = connection.execute(text(statement), facts)
            return [tuple(row) for row in result] if result.returns_rows else []

    def close(self) -> None:
        self.sender.budget.close()
        self.database.close()


@pytest.fixture
def connect(database_url: str) -> Iterator[Callable[..., Line]]:
    lines: list[Line] = []

    def connect(url: str, *, paid: bool = False) -> Line:
        lines.append(Line(url, database_url, paid))
        return lines[-1]

    yield connect
    for line in lines:
        line.close()


@pytest.fixture
def line(connect: Callable[..., Line], sandbox: Sandbox) -> Line:
    """A bot that user1 (1003), user2 (1004) and the admin (1001) have started."""
    made = connect(sandbox.url)
    sandbox.bot(made.id)
    for who in ("user1", "user2", "admin"):
        sandbox.start(as_=who, bot=made.id)
    return made


class Canned:
    """A Bot API server that answers every call with the bytes that a test gave it."""

    def __init__(self) -> None:
        self.answer = b""
        self.asked = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(10)

    def says(self, status: int, body: str, *headers: str, length: int | None = None) -> None:
        raw = body.encode()
        lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(raw) if length is None else length}", *headers]
        self.answer = ("\r\n".join([*lines, "Connection: close", "", ""])).encode() + raw

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._loop.run_forever()

    async def _serve(self) -> None:
        self._server = await asyncio.start_server(self._one, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        self._ready.set()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next((int(row[15:]) for row in head.split(b"\r\n") if row.lower().startswith(b"content-length:")), 0)
        await reader.readexactly(length)
        self.asked += 1
        writer.write(self.answer)
        await writer.drain()
        writer.close()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


@pytest.fixture
def canned() -> Iterator[Canned]:
    server = Canned()
    yield server
    server.close()
