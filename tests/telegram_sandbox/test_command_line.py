"""`chronos sandbox`: it finds the running one by itself, prints what a bot answers, and every error is one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from private_services import free_port
from telegram_sandbox.client import Sandbox
from telegram_sandbox.process import SandboxProcess
from tests.processes import ROOT, eventually
from tests.telegram_sandbox.conftest import EchoBot

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def chronos(tmp_path: Path) -> Run:
    """In a terminal whose data folder has no sandbox."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CHRONOS_")}

    def run(*arguments: str, folder: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "chronos.cli", "sandbox", *arguments],
            env={**kept, "CHRONOS_DATA_DIR": str(folder)},
            cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    return run


@pytest.fixture
def here(sandbox_process: SandboxProcess, sandbox: Sandbox, tmp_path: Path) -> Iterator[Path]:
    """A data folder whose sandbox is the one of the tests."""
    (tmp_path / "sandbox").symlink_to(sandbox_process.folder)
    yield tmp_path


def test_say_prints_the_answer_and_press_what_becomes_of_it(
    chronos: Run, here: Path, echo_bot: EchoBot, person: str
) -> None:
    place = ("--as", person, "--bot", str(echo_bot.id))
    said = chronos("say", "/buttons", *place)
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout == "bot     Точно?\n        [ Да ] [ Нет ] [ Удалить ]\n"
    pressed = chronos("press", "no", *place)
    assert pressed.stdout.splitlines() == ["alert    Вы выбрали no", "bot   ~ Выбрано: no"]
    told = json.loads(chronos("say", "/picture", *place, "--json").stdout)
    assert [answer["kind"] for answer in told] == ["message", "message"]


def test_the_log_and_faults_are_shown(
    chronos: Run, here: Path, sandbox: Sandbox, echo_bot: EchoBot, person: str
) -> None:
    ordered = chronos("fault", "500", "--bot", str(echo_bot.id), "--method", "sendMessage", "--next", "2")
    assert "500 for the next 2 calls: sendMessage" in ordered.stdout
    assert chronos("fault").stdout == ordered.stdout
    assert chronos("say", "x", "--as", person, "--bot", str(echo_bot.id), "--wait", "1").returncode == 1
    assert "500 (500)" in chronos("log", "--failed", "--bot", str(echo_bot.id)).stdout
    assert chronos("fault", "--clear").stdout.endswith("taken back\n")
    assert chronos("fault").stdout == "no faults are ordered\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("say", "x", "--as", "nobody"), "there is no user 'nobody': choose one of admin, editor, user1, user2"),
        (("say", "x", "--chat", "nowhere"), "there is no chat 'nowhere'"),
        (("say", "x", "--bot", "7"), "there is no bot '7'"),
        (("say", "x", "--as", "user1", "--chat", "news"), "only admins write in a channel"),
        (("press", "Nothing like this", "--chat", "group"), "there is no button"),
        (("fault", "bogus"), "choose the kind of the fault"),
        (("fault", "--next", "3"), "name the kind of the fault"),
        (("fault", "500", "--percent", "200"), "percent is above 0 and at most 100"),
        (("say",), "TEXT"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    chronos: Run, here: Path, arguments: tuple[str, ...], words: str
) -> None:
    answer = chronos(*arguments, folder=here)
    assert answer.returncode == 2
    assert answer.stderr.count("\n") == 1
    assert words in answer.stderr


def test_without_a_sandbox_it_says_how_to_get_one(chronos: Run) -> None:
    answer = chronos("say", "x")
    assert answer.returncode == 2
    assert "start `chronos up` or `chronos sandbox`" in answer.stderr
    assert chronos("log", "--url", f"http://127.0.0.1:{free_port()}").stderr.startswith(
        "chronos: no Telegram sandbox answers"
    )


def test_it_runs_alone_and_says_where_to_click(tmp_path: Path) -> None:
    port, output = free_port(), tmp_path / "output"
    environment = {**os.environ, "CHRONOS_DATA_DIR": str(tmp_path)}
    with open(output, "wb") as file:
        alone = subprocess.Popen(
            [sys.executable, "-m", "chronos.cli", "sandbox", "--port", str(port)],
            env=environment, cwd=ROOT, stdout=file, stderr=file, start_new_session=True,
        )  # fmt: skip
    try:
        eventually(lambda: "Stop" in output.read_text())
        assert f"Open    http://127.0.0.1:{port}/" in output.read_text()
        assert Sandbox.in_folder(tmp_path / "sandbox").bots() == []
        alone.terminate()
        assert alone.wait(10) == 0
    finally:
        alone.kill()
        alone.wait()


def test_every_command_has_help_that_teaches(chronos: Run) -> None:
    for name in ("say", "press", "log", "fault"):
        answer = chronos(name, "--help")
        assert answer.returncode == 0
        assert "Usage: chronos sandbox" in answer.stdout
    assert 'chronos sandbox say "/report" --as admin' in chronos("--help").stdout
