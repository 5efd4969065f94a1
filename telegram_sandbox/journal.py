"""What the sandbox knows, on disk before anybody hears of it: one line of JSON per change, in one write().

So kill -9 of the process loses nothing that was answered. A line that was cut by a full disk is forgotten.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from telegram_sandbox.errors import SandboxError

#: [table, key, ..., value]; the value None removes what is there.
Change = list[Any]


class Journal:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(folder / "sandbox.lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise SandboxError(
                f"cannot use the folder {folder}: {error.strerror}; choose another with --folder"
            ) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(self._lock, 20).decode("ascii", "replace").strip() or "?"
            raise SandboxError(
                f"another Telegram sandbox (process {owner}) runs in {folder}: stop it, or choose another --folder"
            ) from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()}\n".encode("ascii"), 0)
        self._path = folder / "journal.jsonl"
        self._file = -1

    def read(self) -> Iterator[tuple[int, list[Change]]]:
        """(the number of the request, its changes), oldest first."""
        try:
            with open(self._path, "rb") as file:
                for line in file:
                    if line.endswith(b"\n"):
                        try:
                            number, changes = json.loads(line)
                        except ValueError:
                            continue
                        yield number, changes
        except FileNotFoundError:
            return

    def start(self, number: int, state: Iterable[Change]) -> None:
        """Compact: what is true now replaces how it came to be."""
        fresh = self._path.with_suffix(".new")
        with open(fresh, "w", encoding="ascii", opener=_private) as file:
            for change in state:
                file.write(json.dumps([number, [change]], separators=(",", ":")) + "\n")
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND)

    def write(self, number: int, changes: list[Change]) -> None:
        append(self._file, json.dumps([number, changes], ensure_ascii=False, separators=(",", ":")))

    def close(self) -> None:
        """The lock goes with the process too, however it ends."""
        if self._file != -1:
            os.close(self._file)
            self._file = -1
        os.close(self._lock)


def append(file: int, line: str) -> None:
    data = memoryview(f"{line}\n".encode("utf-8", "surrogatepass"))
    while data:
        data = data[os.write(file, data) :]


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
