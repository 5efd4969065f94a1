"""The judge: one line of JSON per request on disk, written before the answer leaves, saying what was stored."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from telegram_sandbox.errors import Json
from telegram_sandbox.journal import Change, append

#: Bytes; a longer log is set aside at the next start, and the one set aside before it is deleted.
LONGEST = 200_000_000
#: Characters of a message's text; a longer one is told by its beginning and its digest.
TEXT = 200


class RequestLog:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "requests.jsonl"
        if self.path.exists() and self.path.stat().st_size > LONGEST:
            self.path.replace(self.path.with_suffix(".jsonl.old"))
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._repair()

    def write(self, entry: Json) -> None:
        append(self._file, json.dumps(entry, ensure_ascii=False, separators=(",", ":")))

    def close(self) -> None:
        os.close(self._file)

    def last_number(self) -> int:
        """Of the request that was logged last."""
        for entry in reversed(self._tail()):
            if isinstance(entry.get("n"), int):
                return int(entry["n"])
        return 0

    def recover(self, number: int, changes: list[Change], at: float) -> None:
        """A request whose changes are in the journal and whose line a kill -9 kept out of the log."""
        if number <= self.last_number():
            return
        for table, *path, value in changes:
            if table == "messages" and value is not None and value.get("bot"):
                message = value["message"]
                self.write(
                    {
                        **stamp(at),
                        "n": number,
                        "bot": value["bot"],
                        "method": None,
                        "chat": message["chat"]["id"],
                        "outcome": "killed",
                        "stored": True,
                        "message_id": path[1],
                        **digest(message.get("text", message.get("caption"))),
                    }
                )

    def _repair(self) -> None:
        """A line that was cut is ended, so that the next one is whole."""
        with open(self.path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            if size:
                file.seek(size - 1)
                if file.read(1) != b"\n":
                    os.write(self._file, b"\n")

    def _tail(self) -> list[Json]:
        with open(self.path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 100_000))
            return list(_parsed(file.read().splitlines()))


def read(path: Path, wanted: dict[str, Any], limit: int) -> list[Json]:
    """The newest entries of which each wanted field has this value; "after": only numbers above."""
    after = wanted.pop("after", None)
    found = []
    try:
        with open(path, "rb") as file:
            for entry in _parsed(file):
                if after is not None and not (isinstance(entry.get("n"), int) and entry["n"] > after):
                    continue
                if all(_same(entry.get(key), value) for key, value in wanted.items()):
                    found.append(entry)
    except FileNotFoundError:
        return []
    return found[-limit:]


def _same(value: Any, wanted: Any) -> bool:
    if isinstance(value, str) and isinstance(wanted, str):
        return value.lower() == wanted.lower()
    return bool(value == wanted)


def _parsed(lines: Iterable[bytes]) -> Iterable[Json]:
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            yield entry


def stamp(at: float) -> Json:
    return {"at": round(at, 6), "time": datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")}


def digest(text: str | None) -> Json:
    if text is None:
        return {}
    if len(text) <= TEXT:
        return {"text": text}
    return {"text": text[:TEXT], "sha256": hashlib.sha256(text.encode()).hexdigest()[:16]}
