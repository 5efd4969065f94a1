"""`chronos up`: a real one in a folder of its own, used, stopped, killed and started again."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from private_services import PrivateRabbitMQ
from telegram_sandbox.client import Sandbox
from telegram_sandbox.process import SandboxProcess
from tests.processes import ROOT, eventually

SCRIPT = Path(sys.executable).with_name("chronos")


def environment(folder: Path, **more: str) -> dict[str, str]:
    """As in a terminal where nothing was set up: no settings of ours, no virtual environment on the path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CHRONOS_")}
    path = ":".join(p for p in os.environ["PATH"].split(":") if p != str(SCRIPT.parent))
    return {**kept, "PATH": path, "CHRONOS_DATA_DIR": str(folder), **more}


class Up:
    def __init__(self, folder: Path, *arguments: str, **more: str) -> None:
        self.folder = folder
        self.output = folder.with_name(f"output{len(list(folder.parent.glob('output*')))}")
        self.environment = environment(folder, **more)
        with open(self.output, "wb") as output:
            self.process = subprocess.Popen(
                [str(SCRIPT), "up", *arguments],
                env=self.environment,
                cwd=ROOT,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.seen: set[psutil.Process] = set()

    def said(self) -> str:
        return self.output.read_text(errors="replace")

    def tree(self) -> list[psutil.Process]:
        found = psutil.Process(self.process.pid).children(recursive=True)
        self.seen.update(found)
        return found

    def ready(self) -> Up:
        eventually(lambda: "Stop  Ctrl-C" in self.said() or self.process.poll() is not None, 90, self.said())
        assert self.process.poll() is None, self.said()
        self.tree()
        return self

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """A line that somebody types in another terminal, in the same working folder."""
        other = {name: value for name, value in self.environment.items() if not name.startswith("CHRONOS_")}
        return subprocess.run(
            ["/bin/sh", "-c", command], env=other, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
        )

    def chronos(self, *arguments: str) -> Any:
        answer = subprocess.run(
            [str(SCRIPT), *arguments, "--json"],
            env=self.environment, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return json.loads(answer.stdout)

    def status(self, id_: str) -> tuple[str, int]:
        address = (self.folder / "running.env").read_text().splitlines()[0].partition("=")[2]
        with psycopg.connect(address) as connection:
            row = connection.execute("select status, attempt from tasks where id = %s", [id_]).fetchone()
        assert row is not None
        return row[0], row[1]

    def nothing_is_left(self) -> bool:
        return all(not p.is_running() or p.status() == psutil.STATUS_ZOMBIE for p in self.seen)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)

    def end(self) -> None:
        if self.process.poll() is None:
            self.tree()
            self.process.kill()
            self.process.wait(10)
        try:
            eventually(self.nothing_is_left, 30, "the children of a killed `chronos up` are gone")
        finally:
            for process in self.seen:
                if process.is_running():
                    process.kill()


Start = Callable[..., Up]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    made: list[Up] = []

    def start(*arguments: str, **more: str) -> Up:
        made.append(Up(tmp_path / "data", *arguments, **more))
        return made[-1]

    yield start
    for one in made:
        one.end()


def test_what_it_prints_works_as_printed_in_another_terminal(start: Start) -> None:
    up = start().ready()
    printed = re.search(r"^Try   (.*)\n      (.*)\n      (.*)\n", up.said(), re.MULTILINE)
    assert printed is not None, up.said()
    doctor, submit, list_ = (up.run(command) for command in printed.groups())
    assert doctor.returncode == 0 and "a task went through the whole pipeline" in doctor.stdout, doctor
    assert submit.returncode == 0 and submit.stdout.startswith("accepted: "), submit
    assert list_.returncode == 0 and "ping" in list_.stdout, list_
    assert str(up.folder / "logs") in up.said() and (up.folder / "logs" / "worker.log").exists()

    file = up.folder / "running.env"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text().startswith("CHRONOS_DATABASE_URL=postgresql://")

    second = start()
    assert second.process.wait(30) == 2
    assert re.fullmatch(rf"chronos: another `chronos up` \(process {up.process.pid}\) runs in .*\n", second.said())
    assert up.process.poll() is None

    assert up.stop() == 0
    assert "\nstopped, nothing lost" in up.said()
    assert up.nothing_is_left() and not file.exists()


def test_ctrl_c_hands_running_work_back_when_asked_twice_and_a_second_start_continues(start: Start) -> None:
    first = start(CHRONOS_SHUTDOWN_SECONDS="600").ready()
    long = first.chronos("task", "submit", "ping", '{"seconds": 50}')["id"]
    first.chronos("task", "submit", "ping", "--at", "1h")
    eventually(lambda: first.status(long)[0] == "in_progress")
    first.process.send_signal(signal.SIGINT)
    eventually(lambda: re.search(r"finishing .*\(.*ping .*Ctrl-C again hands", first.said()), what=first.said())
    first.process.send_signal(signal.SIGINT)
    assert first.process.wait(60) == 0, first.said()
    # Two, and a housekeeping task when the minute has just ended.
    assert re.search(r"handing .* back\nstopped, nothing lost: [2-5] tasks wait for the next start\n$", first.said())

    second = start().ready()
    assert "from the last time" in second.said()
    eventually(lambda: second.status(long) == ("in_progress", 1), what=second.said())


def test_kill_9_leaves_neither_a_worker_nor_a_server_and_its_address_is_not_believed(start: Start) -> None:
    killed = start().ready()
    names = {process.name() for process in killed.tree()}
    assert any("postgres" in name for name in names) and len(killed.tree()) > 5
    killed.process.kill()
    eventually(killed.nothing_is_left, 30, "all children are gone")
    assert (killed.folder / "running.env").exists()
    answer = killed.run(f"CHRONOS_DATA_DIR={killed.folder} {SCRIPT} task list")
    assert answer.returncode == 2 and "no `chronos up` runs in" in answer.stderr
    start().ready()


def test_what_dies_is_started_again_and_told(start: Start) -> None:
    up = start().ready()
    master = next(p for p in up.tree() if "dramatiq" in p.cmdline() and p.ppid() == up.process.pid)
    master.kill()
    eventually(lambda: up.said().count("worker   ") == 2, what=up.said())
    assert "the worker ended (killed by signal 9) and is started again" in up.said()
    assert up.said().count("Try ") == 1
    postgres = next(p for p in up.tree() if p.name() == "postgres" and p.ppid() == up.process.pid)
    postgres.kill()
    eventually(lambda: "PostgreSQL ended and is started again" in up.said(), what=up.said())
    eventually(lambda: up.run(f"CHRONOS_DATA_DIR={up.folder} {SCRIPT} doctor").returncode == 0, what=up.said())


def test_a_person_gets_a_report_in_the_chat_and_the_bot_is_started_again_when_it_dies(start: Start) -> None:
    up = start().ready()
    assert re.search(r"^Open  http://127\.0\.0\.1:\d+/", up.said(), re.MULTILINE)
    telegram = Sandbox.in_folder(up.folder / "sandbox")
    [asked] = telegram.say("/report 7d", as_="admin", wait=30)
    assert "Москва" in str(asked["message"]["reply_markup"])
    telegram.press("Москва", as_="admin")

    def picture() -> dict[str, Any] | None:
        return next((message for message in telegram.messages(as_="admin") if "photo" in message), None)

    chart = eventually(picture, 90, "the chart")
    assert "Отчёт за 7 дней" in chart["caption"] and "пример данных" in chart["caption"]

    bot = next(p for p in up.tree() if p.cmdline()[-2:] == ["chronos.cli", "bot"])
    bot.kill()
    eventually(lambda: up.said().count("polls") == 2, what=up.said())
    assert "the bot ended (killed by signal 9) and is started again" in up.said()
    assert telegram.say("/help", as_="user2", wait=30)
    link = re.search(r"^Admin http://\S+start=(\S+)   ", up.said(), re.MULTILINE)
    assert link is not None, up.said()
    telegram.start(link[1], as_="user2")
    eventually(lambda: "admin" in str(up.chronos("user", "list")[:2]) and len(_admins(up)) == 2, what=up.said())


def _admins(up: Up) -> list[Any]:
    return [person for person in up.chronos("user", "list") if person["role"] == "admin"]


def test_a_port_that_was_asked_for_and_is_busy_is_one_line(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        up = start(CHRONOS_SANDBOX_PORT=str(port))
        assert up.process.wait(60) == 2
    [line] = [line for line in up.said().splitlines() if line.startswith("chronos: ")]
    assert f"port {port} is used by another program" in line


def test_a_token_that_telegram_does_not_know_is_one_line(start: Start, tmp_path: Path) -> None:
    with SandboxProcess(tmp_path / "telegram") as telegram:
        telegram.client.bot(5, revoked=True)
        up = start(CHRONOS_BOT_TOKEN=f"5:{'x' * 35}", CHRONOS_TELEGRAM_URL=telegram.url)
        assert up.process.wait(90) == 2, up.said()
    [line] = [line for line in up.said().splitlines() if line.startswith("chronos: ")]
    assert "token" in line and "x" * 35 not in up.said()


@pytest.mark.rabbitmq
def test_up_with_rabbitmq_tells_other_commands_its_address(start: Start, rabbitmq: PrivateRabbitMQ) -> None:
    up = start("--rabbitmq").ready()
    findings = {finding["check"]: finding for finding in up.chronos("doctor")}
    assert findings["broker"]["words"].startswith("RabbitMQ") and findings["ping"]["ok"]
    assert "\nCHRONOS_AMQP_URL=amqp://" in (up.folder / "running.env").read_text()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            {"CHRONOS_DATA_DIR": "/dev/null/here"},
            "cannot work in /dev/null/here: Not a directory; set CHRONOS_DATA_DIR",
        ),
        ({"CHRONOS_BOT_TOKEN": "a slip of the hand"}, "CHRONOS_BOT_TOKEN (the bot's token"),
        ({"CHRONOS_ACTORS": "no_such_module"}, "CHRONOS_ACTORS: cannot import no_such_module"),
    ],
)
def test_what_cannot_work_is_one_line_and_exit_2(start: Start, more: dict[str, str], words: str) -> None:
    up = start(**more)
    assert up.process.wait(60) == 2
    [line] = [line for line in up.said().splitlines() if line.startswith("chronos: ")]
    assert words in line
    assert "Traceback" not in up.said()
