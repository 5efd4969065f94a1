"""One sandbox process for all tests, a new bot for each; bots that run by themselves; Chromium."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from telegram_sandbox.client import Sandbox
from telegram_sandbox.process import SandboxProcess
from tests.missing import miss, one_at_a_time
from tests.processes import eventually

_ids = itertools.count(5_000_000_001)


class Caller:
    """A bot without a library: one call, the whole answer."""

    def __init__(self, port: int, id_: int) -> None:
        self.port = port
        self.id = id_
        self.token = f"{id_}:{'t' * 35}"

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        seconds: float = 20,
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def raw(self, name: str, seconds: float = 20, **parameters: Any) -> tuple[int, dict[str, str], bytes]:
        body = json.dumps(parameters).encode()
        return self.request("POST", f"/bot{self.token}/{name}", body, {"Content-Type": "application/json"}, seconds)

    def call(self, name: str, **parameters: Any) -> Any:
        """The result; a refusal fails the test."""
        answer = json.loads(self.raw(name, **parameters)[2])
        assert answer["ok"], answer
        return answer["result"]

    def refused(self, name: str, **parameters: Any) -> str:
        """'400 Bad Request: ...'"""
        status, _, body = self.raw(name, **parameters)
        answer = json.loads(body)
        assert answer["ok"] is False
        assert answer["error_code"] == status
        return f"{status} {answer['description']}"


@pytest.fixture(scope="session")
def sandbox_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    with SandboxProcess(tmp_path_factory.mktemp("sandbox") / "it") as process:
        yield process
        assert "Traceback" not in process.log_file.read_text()


@pytest.fixture
def sandbox(sandbox_process: SandboxProcess) -> Iterator[Sandbox]:
    """Without limits; the test of limits switches them on."""
    client = sandbox_process.client
    client.limits(enabled=False)
    yield client
    client.clear_faults()
    client.latency(0)


@pytest.fixture
def bot(sandbox: Sandbox, sandbox_process: SandboxProcess) -> Caller:
    """Nobody has heard of it before; subscriber1 to subscriber50 (ids 2001 to 2050) have started it."""
    made = Caller(sandbox_process.port, next(_ids))
    made.call("getMe")
    return made


@pytest.fixture
def person(sandbox: Sandbox) -> str:
    """Somebody who has started no bot yet."""
    key = f"person{next(_ids)}"
    sandbox.post("users", key=key, first_name="Пётр", last_name=key[-3:], language_code="ru")
    return key


class EchoBot:
    """tests/telegram_sandbox/echo_bot.py as a process, with stock aiogram."""

    def __init__(self, sandbox: Sandbox, id_: int, output: Path) -> None:
        self.id, self.sandbox, self.output = id_, sandbox, output
        with open(output, "wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("echo_bot.py")), sandbox.url, f"{id_}:{'e' * 35}"],
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        try:
            eventually(self._polls, 60, "the echo bot polls")
        except BaseException:
            self.end()
            raise

    def _polls(self) -> bool:
        assert self.process.poll() is None, self.output.read_text()
        return any(bot["id"] == self.id and bot["polls"] for bot in self.sandbox.bots())

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="session")
def echo_bot(sandbox_process: SandboxProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EchoBot]:
    """Importing aiogram takes seconds, so there is one for all tests; each test talks to it as a person of its own."""
    made = EchoBot(sandbox_process.client, next(_ids), tmp_path_factory.mktemp("echo") / "echo_bot.log")
    yield made
    made.end()


@pytest.fixture(scope="session")
def chromium() -> Path:
    """Debian's package is installed when it is missing and we are root."""
    apt_get = shutil.which("apt-get")
    with one_at_a_time():
        for words in (["install"], ["update"], ["install"]):
            if not shutil.which("chromium") and os.geteuid() == 0 and apt_get:
                packages = ["--no-install-recommends", "chromium"] if words == ["install"] else []
                subprocess.run(
                    [apt_get, *words, "--yes", *packages], stdout=subprocess.DEVNULL, check=False, timeout=900
                )
    found = shutil.which("chromium")
    if found is None:
        miss("the sandbox's page", "Chromium is not installed: sudo apt-get install chromium")
    return Path(found)
