"""The control API for programs: what people do, faults, limits, the log. Standard library only, so importing is quick.

sandbox = Sandbox("http://127.0.0.1:8081")
answers = sandbox.say("/report", as_="admin", wait=10)
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from telegram_sandbox import running
from telegram_sandbox.errors import Json, SandboxError

#: Seconds without anything new after which a bot is believed to have answered.
QUIET = 1.5
#: Seconds that a bot that says it is typing is believed to go on.
WORKING = 6.0
TIMEOUT = 90.0


class Sandbox:
    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        # No proxy of the environment stands between us and this machine.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    @classmethod
    def in_folder(cls, folder: Path) -> Self:
        """The one that runs on this folder."""
        url = running.find(folder)
        if url is None:
            raise SandboxError(f"no Telegram sandbox runs in {folder}")
        return cls(url)

    # -- what people do

    def say(
        self,
        text: str,
        as_: str | int = "admin",
        chat: str | int | None = None,
        bot: int | str | None = None,
        reply_to: int | None = None,
        wait: float = 0,
        quiet: float = QUIET,
    ) -> list[Json]:
        """What the bot answered within `wait` seconds, in order, each in its last form; see answers()."""
        place = {"as": as_, "chat": chat, "bot": bot}
        said = self.post("say", **place, text=text, reply_to=reply_to)
        return self.answers(**_place(place), after=said["seq"], wait=wait, quiet=quiet) if wait else []

    def press(
        self,
        button: str,
        as_: str | int = "admin",
        chat: str | int | None = None,
        bot: int | str | None = None,
        message_id: int | None = None,
        wait: float = 0,
        quiet: float = QUIET,
    ) -> list[Json]:
        """A button by its text or its data, of the newest message that has it."""
        place = {"as": as_, "chat": chat, "bot": bot}
        pressed = self.post("press", **place, button=button, message_id=message_id)
        if "url" in pressed:
            return [{"kind": "url", "url": pressed["url"]}]
        return self.answers(**_place(place), after=pressed["seq"], wait=wait, quiet=quiet) if wait else []

    def upload(
        self,
        file: Path,
        as_: str | int = "admin",
        chat: str | int | None = None,
        bot: int | str | None = None,
        caption: str = "",
        kind: str = "document",
    ) -> Json:
        fields = {"as": as_, "chat": chat, "bot": bot, "caption": caption, "kind": kind}
        boundary = uuid4().hex
        parts = [
            f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
            for name, value in fields.items()
            if value is not None
        ]
        name = file.name.replace('"', "%22")
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        body = b"".join([*parts, head.encode(), file.read_bytes(), f"\r\n--{boundary}--\r\n".encode()])
        return dict(self._call("POST", "upload", body, f"multipart/form-data; boundary={boundary}"))

    def start(self, code: str = "", as_: str | int = "admin", bot: int | str | None = None) -> Json:
        """The START button, or a deep link."""
        return dict(self.post("start", **{"as": as_}, code=code, bot=bot))

    def block(self, as_: str | int, bot: int | str | None = None, blocked: bool = True) -> None:
        self.post("block" if blocked else "unblock", **{"as": as_}, bot=bot)

    def answers(
        self,
        as_: str | int = "admin",
        chat: str | int | None = None,
        bot: int | str | None = None,
        after: int = 0,
        wait: float = 10,
        quiet: float = QUIET,
    ) -> list[Json]:
        """What the bot did in this chat after the event `after`: {"kind": "message", "message", "edited"} for each of
        its messages in its last form, {"kind": "answer", "text", "alert"} for its answers to presses. Ends when nothing
        new came for `quiet` seconds and the bot does not say that it is typing, or when `wait` is over."""
        ends = time.monotonic() + wait
        found: dict[object, Json] = {}
        working = False
        while (left := ends - time.monotonic()) > 0:
            pause = min(left, max(quiet, WORKING) if working else quiet) if found else left
            news = self.get("answers", **{"as": as_}, chat=chat, bot=bot, after=after, wait=round(pause, 3))
            after = news["seq"]
            if not news["events"] and found:
                break
            for event in news["events"]:
                _add(found, event)
                working = event["kind"] == "action"
        return list(found.values())

    def messages(
        self, as_: str | int = "admin", chat: str | int | None = None, bot: int | str | None = None, limit: int = 100
    ) -> list[Json]:
        """The newest of a chat, oldest first, as the Bot API shows them."""
        found = self.get("messages", **{"as": as_}, chat=chat, bot=bot, limit=limit)
        return [stored["message"] for stored in found["messages"]]

    # -- the judge

    def log(self, limit: int = 100_000, **wanted: Any) -> list[Json]:
        """Oldest first; wanted: method="sendMessage", bot=1, chat=-100, stored=True, fault="500", after=n..."""
        return list(self.get("log", limit=limit, **wanted))

    # -- how it behaves

    def fault(self, *kinds: str, **order: Any) -> Json:
        """fault("500", next=3) or fault("429", "cut", percent=15, method="send*", seed=1): see faults.py."""
        return dict(self.post("faults", kinds=list(kinds), **order))

    def faults(self) -> list[Json]:
        return list(self.get("faults"))

    def clear_faults(self, id_: int | None = None) -> int:
        return int(self.post("faults/clear", id=id_)["cleared"])

    def limits(self, **changes: Any) -> Json:
        """limits(enabled=False), limits(private={"amount": 1, "seconds": 1, "burst": 3}); what they are now."""
        return dict(self.post("limits", **changes) if changes else self.get("limits"))

    def latency(self, seconds: float) -> None:
        self.post("latency", seconds=seconds)

    def bot(self, id_: int, **changes: Any) -> Json:
        """Make a bot known or change it: name, username, reads_all (of groups), revoked."""
        return dict(self.post("bots", id=id_, **changes))

    def bots(self) -> list[Json]:
        return list(self.get("bots"))

    # -- transport

    def get(self, name: str, /, **query: Any) -> Any:
        words = urllib.parse.urlencode({key: _word(value) for key, value in query.items() if value is not None})
        return self._call("GET", f"{name}?{words}")

    def post(self, name: str, /, **wish: Any) -> Any:
        body = json.dumps({key: value for key, value in wish.items() if value is not None}).encode()
        return self._call("POST", name, body, "application/json")

    def _call(self, method: str, name: str, body: bytes | None = None, type_: str = "") -> Any:
        request = urllib.request.Request(f"{self.url}/sandbox/{name}", data=body, method=method)  # noqa: S310
        if type_:
            request.add_header("Content-Type", type_)
        try:
            with self._opener.open(request, timeout=TIMEOUT) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                raise SandboxError(_why(error.read(), error.code)) from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise SandboxError(f"no Telegram sandbox answers at {self.url}: {reason}") from None


def _why(body: bytes, code: int) -> str:
    try:
        return str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return f"the sandbox answered with {code}"


def _place(place: dict[str, Any]) -> dict[str, Any]:
    return {"as_": place["as"], "chat": place["chat"], "bot": place["bot"]}


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _add(found: dict[object, Json], event: Json) -> None:
    if event["kind"] in ("message", "edit"):
        message = event["stored"]["message"]
        key = message["message_id"]
        edited = event["kind"] == "edit" or key in found
        answer = {"kind": "message", "message": message, "edited": edited}
        if keyboard := event["stored"].get("keyboard"):
            answer["keyboard"] = keyboard
        found[key] = answer
    elif event["kind"] == "delete":
        found.pop(event["message_id"], None)
    elif event["kind"] == "answer":
        shown = {key: event[key] for key in ("text", "alert", "url") if event.get(key)}
        found[("answer", event["query"])] = {"kind": "answer", **shown}
