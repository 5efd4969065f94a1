"""The folder keeps everything: through a stop, a kill -9, and against a second sandbox."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from private_services import free_port
from telegram_sandbox import running
from telegram_sandbox.client import Sandbox
from telegram_sandbox.errors import SandboxError
from telegram_sandbox.process import SandboxProcess
from tests.processes import ROOT, eventually
from tests.telegram_sandbox.conftest import Caller
from tests.telegram_sandbox.echo_bot import png


@pytest.fixture
def own(tmp_path: Path) -> SandboxProcess:
    return SandboxProcess(tmp_path / "own", limits=False)


def start(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "telegram_sandbox", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_everything_that_was_answered_survives(own: SandboxProcess, how: str, tmp_path: Path) -> None:
    with own:
        bot = Caller(own.port, 42)
        sent = [bot.call("sendMessage", chat_id=2001, text=f"{n}")["message_id"] for n in range(3)]
        bot.call("deleteMessage", chat_id=2001, message_id=sent[2])
        bot.call("setMyCommands", commands=[{"command": "go", "description": "x"}])
        for text in ("confirmed", "waiting"):
            own.client.say(text, "user1", bot=42)
        first = bot.call("getUpdates")[0]["update_id"]
        bot.call("getUpdates", offset=first + 1)
        (tmp_path / "a.png").write_bytes(png(5, 6))
        file = own.client.upload(tmp_path / "a.png", "user1", bot=42, kind="photo")["message"]["photo"][0]["file_id"]
        getattr(own, how)()
        own.start()
        assert [message["text"] for message in own.client.messages("subscriber1", bot=42)] == ["0", "1"]
        again = bot.call("sendMessage", chat_id=2001, text="new")["message_id"]
        assert again > max(sent)
        assert bot.call("getMyCommands")[0]["command"] == "go"
        waiting = bot.call("getUpdates")
        assert [update["update_id"] for update in waiting] == [first + 1, first + 2]
        path = bot.call("getFile", file_id=file)["file_path"]
        assert bot.request("GET", f"/file/bot{bot.token}/{path}")[2] == png(5, 6)
        # The next start reads what this one has compacted.
        own.restart()
        assert len(own.client.messages("subscriber1", bot=42)) == 3
        numbers = [entry["n"] for entry in own.client.log() if "n" in entry]
        assert numbers == sorted(set(numbers))


def test_a_kill_in_the_middle_of_a_burst_loses_nothing_that_was_answered(own: SandboxProcess) -> None:
    answered: list[int] = []
    stopped = threading.Event()

    def burst(chat: int) -> None:
        while not stopped.is_set():
            try:
                answered.append(Caller(own.port, 42).call("sendMessage", chat_id=chat, text="x")["message_id"])
            except OSError:
                return

    with own:
        threads = [threading.Thread(target=burst, args=(2001 + n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        eventually(lambda: len(answered) > 100)
        own.kill()
        for thread in threads:
            thread.join()
        stopped.set()
        own.start()
        stored = {entry["message_id"] for entry in own.client.log(stored=True)}
        shown = {
            m["message_id"] for n in range(4) for m in own.client.messages(f"subscriber{n + 1}", bot=42, limit=10_000)
        }
        assert set(answered) <= stored
        assert stored == shown


def test_a_line_that_the_log_lacks_is_made_up_for_from_the_journal(own: SandboxProcess) -> None:
    with own:
        Caller(own.port, 42).call("sendMessage", chat_id=2001, text="kept out")
        own.kill()
        lines = own.requests.read_text().splitlines(keepends=True)
        own.requests.write_text("".join(lines[:-1]) + lines[-1][:20])
        own.start()
        entry = own.client.log(stored=True)[-1]
    assert (entry["outcome"], entry["message_id"], entry["text"]) == ("killed", 1, "kept out")


def test_a_second_sandbox_on_the_folder_says_so_in_one_line(own: SandboxProcess) -> None:
    with own:
        second = start("--port", str(free_port()), "--folder", str(own.folder))
    assert second.returncode == 2
    assert second.stderr.count("\n") == 1
    assert f"runs in {own.folder}" in second.stderr


def test_a_busy_port_is_one_clear_line(own: SandboxProcess, tmp_path: Path) -> None:
    with own:
        second = start("--port", str(own.port), "--folder", str(tmp_path / "other"))
    assert second.returncode == 2
    assert second.stderr.count("\n") == 1
    assert f"127.0.0.1:{own.port}: it is used by another program" in second.stderr


def test_a_folder_that_cannot_be_used_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    second = start("--port", "0", "--folder", str(tmp_path / "file" / "below"))
    assert second.returncode == 2
    assert second.stderr.count("\n") == 1
    assert "cannot use the folder" in second.stderr


def test_the_running_one_is_found_by_its_folder_and_a_killed_one_is_not(own: SandboxProcess) -> None:
    with own:
        assert running.find(own.folder) == own.url
        assert Sandbox.in_folder(own.folder).get("health") == {"ok": True}
        own.kill()
        assert running.find(own.folder) is None
        with pytest.raises(SandboxError, match="no Telegram sandbox runs in"):
            Sandbox.in_folder(own.folder)


def test_it_ends_with_its_owner(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from telegram_sandbox.process import SandboxProcess\n"
        "s = SandboxProcess(Path(sys.argv[1])); s.start(); print(s.pid, flush=True); time.sleep(60)"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "it")], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert owner.stdout is not None
    pid = int(owner.stdout.readline())
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    owner.stdout.close()
    eventually(lambda: not _lives(pid), 10)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]


def test_a_seeded_sandbox_has_people_a_channel_a_group_and_fifty_subscribers(own: SandboxProcess) -> None:
    with own:
        Caller(own.port, 42).call("getMe")
        state = own.client.get("state", **{"as": "user1"})
        users = own.client.get("users")
    assert [user["key"] for user in state["users"]] == ["admin", "editor", "user1", "user2"]
    assert {chat["title"]: chat["can_write"] for chat in state["chats"]} == {
        "Bot 42": True,
        "Новости": False,
        "Команда": True,
    }
    assert sum(bool(user.get("subscriber")) for user in users) == 50
    assert json.dumps(users).isascii()
