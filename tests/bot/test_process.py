"""`chronos bot` as a process: killed, asked to stop, started twice, refused."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chronos.bot.app import App
from chronos.config import Settings
from chronos.db import Database
from chronos.models.user import Role
from chronos.runtime import Runtime
from chronos.telegram.sender import make_bot
from private_services import PrivatePostgres
from telegram_sandbox.client import Sandbox
from telegram_sandbox.process import SandboxProcess
from tests.bot.conftest import SECRET, Bot, BotProcess, Who, new_database
from tests.processes import eventually

BOT, REFUSED, EARLY = 8_500_001, 8_500_002, 8_500_003
_people = itertools.count(700_001)


class House:
    """A database, a bot of the sandbox, and the processes that poll for it."""

    def __init__(self, sandbox: Sandbox, database_url: str, folder: Path) -> None:
        self.sandbox, self.folder = sandbox, folder
        self.environment = {
            "CHRONOS_DATABASE_URL": database_url,
            "CHRONOS_BOT_TOKEN": f"{BOT}:{SECRET}",
            "CHRONOS_TELEGRAM_URL": sandbox.url,
        }
        self.runtime = Runtime(Settings(database_url=database_url))  # type: ignore[arg-type]
        self.processes: list[BotProcess] = []
        sandbox.bot(BOT, username="chronos_process_bot")

    def start(self) -> BotProcess:
        self.processes.append(BotProcess(self.environment, self.folder / f"bot{len(self.processes)}.log"))
        return self.processes[-1]

    def running(self) -> BotProcess:
        if not self.processes or self.processes[-1].process.poll() is not None:
            self.start().is_up()
        return self.processes[-1]

    sql: Callable[..., list[Any]] = Bot.sql

    @property
    def here(self) -> Runtime:
        return self.runtime

    def new(self) -> Who:
        id_ = next(_people)
        self.sandbox.post("users", id=id_, first_name="Имя", language_code="ru")
        self.sql(
            "insert into users (id, role, time_zone, language_code) values (:id, :role, 'Europe/Moscow', 'ru')",
            id=id_, role=Role.USER,
        )  # fmt: skip
        return Who(self.sandbox, BOT, id_, "ru")

    def say(self, who: Who, words: str) -> None:
        self.sandbox.post("say", **{"as": who.id}, text=words, bot=BOT)


@pytest.fixture(scope="module")
def house(
    postgres: PrivatePostgres, bot_sandbox: SandboxProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[House]:
    made = House(bot_sandbox.client, new_database(postgres), tmp_path_factory.mktemp("house"))
    yield made
    for process in made.processes:
        process.kill()
    made.runtime.close()


def test_a_second_bot_says_who_polls_and_stops(bot: Bot, tmp_path: Path) -> None:
    """The first one is the bot of this process."""
    environment = {
        "CHRONOS_DATABASE_URL": bot.here.database.url.render_as_string(hide_password=False),
        "CHRONOS_BOT_TOKEN": f"{bot.id}:{SECRET}",
        "CHRONOS_TELEGRAM_URL": bot.sandbox.url,
    }
    second = BotProcess(environment, tmp_path / "second.log")
    assert second.process.wait(60) == 2
    lines = [line for line in second.words().splitlines() if line.startswith("chronos: ")]
    assert len(lines) == 1 and "Traceback" not in second.words()
    assert f"polled already by process {os.getpid()} on {os.uname().nodename} since " in lines[0]
    assert "/report" in bot.new(Role.USER).says("/help")["text"]


def test_a_bot_that_is_killed_while_it_handles_loses_nothing_and_doubles_no_task(house: House) -> None:
    people = [house.new() for _ in range(4)]
    running = house.running()
    # The task is written, its answer is on its way.
    fault = house.sandbox.fault("slow", bot=BOT, method="sendMessage", seconds=20)
    for who in people[:2]:
        house.say(who, "/report 7d")
    eventually(lambda: house.sql("select count(*) from tasks where user_id = any(:ids)",
                                 ids=[who.id for who in people[:2]]) == [(2,)], 20)  # fmt: skip
    running.kill()
    house.sandbox.clear_faults(fault["id"])
    for who in people:
        house.say(who, "/report 30d")
    house.running()
    wanted = sorted([*((who.id, period) for who in people[:2] for period in ("30d", "7d")),
                     *((who.id, "30d") for who in people[2:])])  # fmt: skip
    asked = "select user_id, params ->> 'period' from tasks where user_id = any(:ids) order by 1, 2"
    eventually(lambda: house.sql(asked, ids=[who.id for who in people]) == wanted, 30)
    eventually(lambda: house.sql("select count(*) from updates where handled_at is null") == [(0,)], 30)
    assert house.sql("select count(*) from cards where chat = any(:ids) and message_id is not null",
                     ids=[who.id for who in people]) == [(6,)]  # fmt: skip
    assert all("Задача принята" in who.last()["text"] for who in people)


def test_a_bot_that_is_asked_to_stop_finishes_what_it_handles(house: House) -> None:
    running, who = house.running(), house.new()
    fault = house.sandbox.fault("slow", bot=BOT, method="sendMessage", seconds=1.5, next=1)
    house.say(who, "/help")
    eventually(lambda: house.sql("select tries from updates where chat = :id", id=who.id) == [(1,)], 20)
    assert running.stop() == 0
    house.sandbox.clear_faults(fault["id"])
    assert "Traceback" not in running.words()
    assert len(who.messages()) == 1
    assert house.sql("select count(*) from updates where handled_at is null") == [(0,)]
    assert house.sql("select poller, poller_beat_at from bots where id = :id", id=BOT) == [(None, None)]


def app_for(runtime: Runtime, sandbox: SandboxProcess, bot_id: int) -> tuple[App, Callable[[], Any]]:
    """A bot of its own in this process, and what closes it."""
    budget = Database(runtime.database.url.render_as_string(hide_password=False), runtime.settings, connections=1)
    made, sender = make_bot(f"{bot_id}:{SECRET}", runtime.database, budget, telegram_url=sandbox.url)

    async def close() -> None:
        await made.session.close()
        await sender.close()

    return App(runtime, made), close


def test_a_bot_that_starts_while_postgresql_is_away_tells_so_and_begins_when_it_is_back(
    runtime: Runtime, postgres: PrivatePostgres, bot_sandbox: SandboxProcess
) -> None:
    client = bot_sandbox.client
    client.bot(EARLY)
    client.post("users", id=800_001, first_name="x", language_code="en")
    who = Who(client, EARLY, 800_001, "en")

    async def live() -> int:
        app, close = app_for(runtime, bot_sandbox, EARLY)
        living = asyncio.create_task(app.main())
        try:
            assert "database is away" in (await asyncio.to_thread(who.says, "/help", 30))["text"]
            await asyncio.to_thread(postgres.start)
            await asyncio.to_thread(eventually, lambda: "no access yet" in who.last()["text"], 40)
            app.stopping.set()
            return await living
        finally:
            await close()

    postgres.kill()
    try:
        assert asyncio.run(live()) == 0
    finally:
        if not postgres.running:
            postgres.start()


def test_a_refused_token_ends_the_bot_with_one_line(
    runtime: Runtime, bot_sandbox: SandboxProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    bot_sandbox.client.bot(REFUSED, revoked=True)

    async def live() -> int:
        app, close = app_for(runtime, bot_sandbox, REFUSED)
        try:
            return await app.main()
        finally:
            await close()

    assert asyncio.run(live()) == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"chronos: Telegram refuses the token of bot {REFUSED}: @BotFather shows the one that works"
    )
