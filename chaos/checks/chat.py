"""200 reports asked through the chat by 50 people, while bot, worker, RabbitMQ and PostgreSQL are killed once each.

The bot and two workers are processes of their own. By the sandbox's log every report arrived once, or it is unknown and
its owner was told with the two buttons: nothing is lost, nothing is doubled. The bot's direct answers may come twice.

Not seen failing on a broken build yet.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from chaos.harness import ROOT, Chaos, HarnessError, Stage
from chaos.verdicts import Counts, Verdict, shortened
from chronos.models.buttons import Press
from telegram_sandbox.client import Sandbox
from telegram_sandbox.process import SandboxProcess
from telegram_sandbox.seed import FIRST_SUBSCRIBER, SUBSCRIBERS

BOT = 1_000_000_001
TOKEN = f"{BOT}:{'A' * 35}"
ROUNDS = 4
#: Seconds.
BETWEEN, DOWN, DEADLINE, READY = 6.0, 1.5, 900.0, 90.0


class Bot:
    """`chronos bot`, to be killed."""

    def __init__(self, stage: Stage) -> None:
        self._stage, self._process = stage, None
        self._log = stage.folder / "bot.log"

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process: subprocess.Popen[bytes] | None = subprocess.Popen(
                [sys.executable, "-m", "chronos.cli", "bot"],
                env=self._stage.environment, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip

    def wait_until_it_polls(self) -> None:
        ends = time.monotonic() + READY
        while not self._stage.sql("select 1 from bots where poller is not null"):
            if time.monotonic() > ends:
                raise HarnessError(f"the bot does not poll; {self._log} says why")
            time.sleep(0.1)

    def kill(self) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(10)
            self._process = None


def run(chaos: Chaos, people: int = SUBSCRIBERS, rounds: int = ROUNDS) -> Verdict:
    verdict = Verdict("chat")
    with SandboxProcess(chaos.folder / "sandbox-of-chat", latency=0.08) as sandbox:
        environment = {
            "CHRONOS_ACTORS": "chaos.breaks",
            "CHRONOS_BOT_TOKEN": TOKEN,
            "CHRONOS_TELEGRAM_URL": sandbox.url,
        }
        client = sandbox.client
        with chaos.stage(verdict, threads=4, environment=environment) as stage:
            ids = range(FIRST_SUBSCRIBER, FIRST_SUBSCRIBER + people)
            welcome(stage, ids)
            bot = Bot(stage)
            try:
                bot.start()
                workers = stage.start(2)
                bot.wait_until_it_polls()
                began = time.monotonic()

                def kill_bot() -> None:
                    bot.kill()
                    bot.start()

                def kill_worker() -> None:
                    stage.kill(workers[0])
                    stage.spawn()

                faults = (
                    kill_bot,
                    kill_worker,
                    lambda: _restart(chaos, "rabbitmq"),
                    lambda: _restart(chaos, "postgres"),
                )
                for number in range(rounds):
                    for id_ in ids:
                        client.say("/report 7d", as_=id_, bot=BOT)
                    time.sleep(BETWEEN)
                    faults[number % len(faults)]()
                    chaos.say(f"{time.monotonic() - began:5.1f} s  fault {number + 1} of {rounds}")
                _wait(stage, people * rounds)
                verdict.figures.append(
                    f"{people * rounds} reports for {people} people in {time.monotonic() - began:.0f} s"
                )
                _judge(verdict, stage, client, ids, rounds)
            finally:
                bot.kill()
    return verdict


def welcome(stage: Stage, ids: range) -> None:
    with stage.runtime.database.transaction() as connection:
        connection.execute(
            text("insert into users (id, role, language, time_zone) select id, 'user', 'ru', 'Europe/Moscow'"
                 " from unnest(cast(:ids as bigint[])) id"),
            {"ids": list(ids)},
        )  # fmt: skip


def _restart(chaos: Chaos, name: str) -> None:
    service = chaos.postgres if name == "postgres" else chaos.rabbitmq
    service.kill()
    time.sleep(DOWN)
    service.start()


def _wait(stage: Stage, reports: int) -> None:
    """Until every command was handled and every report and its notice are final."""
    asked = "select count(*) from tasks where task_name = 'report'"
    ends = time.monotonic() + DEADLINE
    while time.monotonic() < ends:
        try:
            stage.replace_fallen()
            if stage.sql(asked)[0][0] >= reports and stage.left() == 0:
                return
        except DBAPIError:
            stage.runtime.database.engine.dispose()  # PostgreSQL was restarted: its connections are of the one before
        time.sleep(0.5)


def _judge(verdict: Verdict, stage: Stage, client: Sandbox, ids: range, rounds: int) -> None:
    pictures = Counter(
        entry["chat"] for entry in client.log(method="sendPhoto", bot=BOT) if entry.get("stored") is True
    )
    tasks = {
        id_: Counter(row.status for row in rows)
        for id_ in ids
        if (rows := stage.sql("select status from tasks where task_name = 'report' and user_id = :id", id=id_))
    }
    counts, remarks = Counts(), []
    told = 0
    for id_ in ids:
        ended, arrived = tasks.get(id_, Counter()), pictures[id_]
        counts.unknown += ended["unknown"]
        counts.lost += max(0, rounds - sum(ended.values())) + ended["pending"] + ended["in_progress"]
        counts.lost += max(0, ended["completed"] - arrived)
        counts.doubled += max(0, arrived - ended["completed"] - ended["unknown"])
        counts.unexpected += max(0, sum(ended.values()) - rounds) + ended["failed"] + ended["cancelled"]
        if ended["unknown"]:
            shown = [str(message.get("reply_markup")) for message in client.messages(as_=id_, bot=BOT)]
            told += min(sum(f"{Press.ARRIVED}:" in buttons for buttons in shown), ended["unknown"])
        if arrived != rounds or ended["completed"] != rounds:
            remarks.append(f"user {id_}: {dict(ended)}, {arrived} pictures arrived")
    verdict.count(counts, shortened(remarks) if counts.lost or counts.doubled or counts.unexpected else ())
    verdict.figures.append(
        f"{sum(pictures.values())} pictures arrived, {counts.unknown} reports unknown, {told} of them told"
    )
    verdict.require(told == counts.unknown, f"{counts.unknown - told} unknown reports whose owner was not told")
