"""The sandbox as a child process: for tests, for chaos, for programs that run everything by themselves.

with SandboxProcess(folder) as sandbox:
    talk_to(sandbox.url, sandbox.client)
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import IO

from private_services.children import Child
from private_services.service import PrivateService
from telegram_sandbox.client import Sandbox
from telegram_sandbox.errors import SandboxError


class SandboxProcess(PrivateService):
    """What it knew survives stop(), kill() and a killed owner; it never outlives this process."""

    name = "Sandbox"
    stop_signal = signal.SIGTERM
    start_deadline = 20.0
    stop_deadline = 5.0

    def __init__(self, folder: Path, port: int | None = None, *, limits: bool = True, latency: float = 0.0) -> None:
        """latency: seconds."""
        super().__init__(folder, port)
        self._options = ["--latency", str(latency), *([] if limits else ["--no-limits"])]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def client(self) -> Sandbox:
        return Sandbox(self.url)

    @property
    def requests(self) -> Path:
        """The log: one line of JSON per request."""
        return self.folder / "requests.jsonl"

    def _launch(self, log: IO[bytes], lock: int) -> Child:
        sources = [str(Path(__file__).parent.parent), *sys.path]
        return Child(
            [
                sys.executable,
                *("-m", "telegram_sandbox", "--port", str(self.port), "--folder", str(self.folder)),
                *self._options,
            ],
            env={
                "PATH": os.environ.get("PATH", os.defpath),
                "PYTHONPATH": os.pathsep.join(os.path.abspath(source) for source in sources),
                "PYTHONUNBUFFERED": "1",
            },
            output=log,
            pass_fds=(lock,),
        )

    def _ready(self, child: Child) -> bool:
        try:
            return bool(self.client.get("health")["ok"])
        except SandboxError:
            return False
