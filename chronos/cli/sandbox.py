"""chronos sandbox: run Telegram on this machine, talk to a bot there, look at the log, order faults."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chronos.cli.output import AsJson, answer, table
from chronos.errors import BadInput, ChronosError

if TYPE_CHECKING:
    from telegram_sandbox.client import Sandbox

app = typer.Typer()

PORT = 8081

As = Annotated[str, typer.Option("--as", metavar="USER", help="admin, editor, user1, user2, subscriber1..50, or an id")]
InChat = Annotated[
    str | None, typer.Option("--chat", help="group, channel, @name or an id; else the private chat with the bot")
]
OfBot = Annotated[str | None, typer.Option("--bot", metavar="ID", help="when there are several; else the newest")]
Url = Annotated[str | None, typer.Option("--url", help="of another sandbox; else the one that runs on the data folder")]
Wait = Annotated[float, typer.Option("--wait", metavar="SECONDS", min=0, help="for the answers")]


@app.callback(invoke_without_command=True)
def sandbox(
    context: typer.Context,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: any free one")] = PORT,
    folder: Annotated[Path | None, typer.Option("--folder", help="where everything is kept")] = None,
) -> None:
    """A Telegram of your own: chat with bots in the browser or here, no account needed.

    Without a command it runs alone until Ctrl-C. With one it talks to the one that runs:

    chronos sandbox say "/report" --as admin      and see what the bot answers

    chronos sandbox press "7 days" --as admin     a button, by its text or its data

    chronos sandbox log --failed                  what bots asked, and what was stored

    chronos sandbox fault 429 --next 3            the next three calls go wrong
    """
    if context.invoked_subcommand is not None:
        return
    from telegram_sandbox.__main__ import run

    where = folder or _folder()
    with _one_line():
        raise typer.Exit(run(where.absolute(), "127.0.0.1", port, ready=lambda port: _say(port, where)))


def _say(port: int, folder: Path) -> None:
    url = f"http://127.0.0.1:{port}"
    lines = [
        f"Open    {url}/            chat with bots, as admin, editor, user1 or user2",
        'Or      chronos sandbox say "/start" --as user1',
        f"A bot   talks to it with the API server {url} and any token, such as 1000000001:{'A' * 35}",
        f'        aiogram: AiohttpSession(api=TelegramAPIServer.from_base("{url}"))',
        f"        Chronos: CHRONOS_TELEGRAM_URL={url}",
        f"Log     {folder / 'requests.jsonl'}",
        "Stop    Ctrl-C (a second start continues)",
    ]
    answer(None, False, lines)
    sys.stdout.flush()


@app.command("say")
def say(
    text: Annotated[str, typer.Argument(metavar="TEXT", help='for example "/report"')],
    as_: As = "admin",
    chat: InChat = None,
    bot: OfBot = None,
    url: Url = None,
    wait: Wait = 10.0,
    as_json: AsJson = False,
) -> None:
    """Say it as that user and print what the bot answers, with buttons, files and later edits."""
    with _running(url) as running:
        _show(running.say(text, as_, chat, bot, wait=wait), wait, as_json)


@app.command("press")
def press(
    button: Annotated[
        str, typer.Argument(metavar="BUTTON", help="its text or its data; the newest message that has it")
    ],
    as_: As = "admin",
    chat: InChat = None,
    bot: OfBot = None,
    url: Url = None,
    wait: Wait = 10.0,
    as_json: AsJson = False,
) -> None:
    """Press a button of a message or of the keyboard, and print what the bot does then."""
    with _running(url) as running:
        _show(running.press(button, as_, chat, bot, wait=wait), wait, as_json)


@app.command("log")
def log(
    method: Annotated[str | None, typer.Option("--method", help="for example sendMessage")] = None,
    chat: Annotated[int | None, typer.Option("--chat", help="a chat's id")] = None,
    bot: Annotated[int | None, typer.Option("--bot", metavar="ID")] = None,
    failed: Annotated[bool, typer.Option("--failed", help="only what did not end well")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, help="the newest so many")] = 30,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """What bots asked, what they were answered, and whether a message was stored; what people did in between."""
    wanted: dict[str, Any] = {
        key: value for key, value in (("method", method), ("chat", chat), ("bot", bot)) if value is not None
    }
    with _running(url) as running:
        found = running.log(**wanted)
    if failed:
        found = [entry for entry in found if entry.get("outcome", "ok") != "ok"]
    found = found[-limit:]
    answer(found, as_json, table([_columns(entry) for entry in found], wide="words") or ["nothing yet"])


@app.command("fault")
def fault(
    kinds: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KIND]...", help="429 500 502 cut reset_before reset_after slow hang; none: list them"),
    ] = None,
    next_: Annotated[
        int | None, typer.Option("--next", min=1, help="so many calls; else 1, or no end with --percent")
    ] = None,
    percent: Annotated[float | None, typer.Option("--percent", help="of the calls")] = None,
    method: Annotated[list[str] | None, typer.Option("--method", help='for example sendMessage or "send*"')] = None,
    chat: Annotated[int | None, typer.Option("--chat", help="only in this chat")] = None,
    bot: Annotated[int | None, typer.Option("--bot", metavar="ID", help="only this bot")] = None,
    seconds: Annotated[float | None, typer.Option("--seconds", min=0, help="how slow is slow")] = None,
    retry_after: Annotated[int | None, typer.Option("--retry-after", min=0, help="what the 429 says")] = None,
    stored: Annotated[bool | None, typer.Option("--stored/--not-stored", help="whether the call takes effect")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="of the dice for --percent")] = None,
    clear: Annotated[bool, typer.Option("--clear", help="take all orders back")] = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Let calls of bots go wrong on order, to see what your program does then. Without --method: all but getUpdates."""
    order = {
        "next": next_, "percent": percent, "method": method, "chat": chat, "bot": bot,
        "seconds": seconds, "retry_after": retry_after, "stored": stored, "seed": seed,
    }  # fmt: skip
    with _running(url) as running:
        if clear:
            count = running.clear_faults()
            answer({"cleared": count}, as_json, [f"{count} order{'' if count == 1 else 's'} taken back"])
        elif kinds:
            made = running.fault(*kinds, **order)
            answer(made, as_json, [_words(made)])
        elif any(value is not None for value in order.values()):
            raise BadInput("name the kind of the fault: 429, 500, 502, cut, reset_before, reset_after, slow or hang")
        else:
            known = running.faults()
            answer(known, as_json, [_words(order) for order in known] or ["no faults are ordered"])


def _words(order: dict[str, Any]) -> str:
    often = f"{order['percent']:g} % of" if order["percent"] else f"the next {order['left']}"
    if order["percent"] and order["left"]:
        often += f" the calls, at most {order['left']} of the"
    where = [", ".join(order["methods"]) or "all methods but getUpdates"]
    where += [f"chat {chat}" for chat in order["chats"]] + [f"bot {bot}" for bot in order["bots"]]
    kinds = " or ".join(order["kinds"])
    return f"{order['id']}: {kinds} for {often} calls: {'; '.join(where)} (hit {order['hits']} so far)"


def _show(answers: list[dict[str, Any]], wait: float, as_json: bool) -> None:
    answer(answers, as_json, [line for each in answers for line in _lines(each)] or ([] if wait else ["said"]))
    if wait and not answers:
        raise ChronosError(f"no answer within {wait:g} s: does the bot run? (--wait waits longer)")


def _lines(each: dict[str, Any]) -> Iterator[str]:
    """As in first chat: who, the text, the buttons below it; ~ marks an edit."""
    if each["kind"] == "url":
        yield f"link    {each['url']}"
    elif each["kind"] == "answer":
        yield f"{'alert' if each.get('alert') else 'note'}    {each.get('text', '')}".rstrip()
    else:
        message = each["message"]
        mark = "bot   ~ " if each["edited"] else "bot     "
        if "photo" in message:
            yield f"{mark}(photo {message['photo'][-1]['width']}x{message['photo'][-1]['height']})"
            mark = "        "
        elif "document" in message:
            yield f"{mark}(file {message['document']['file_name']}, {message['document']['file_size']} bytes)"
            mark = "        "
        text = message.get("text", message.get("caption", ""))
        for number, line in enumerate(text.splitlines()):
            yield f"{mark if number == 0 else '        '}{line}"
        rows = message.get("reply_markup", {}).get("inline_keyboard", [])
        rows = [*rows, *each.get("keyboard", {}).get("keyboard", [])]
        for row in rows:
            yield "        " + " ".join(f"[ {button['text']} ]" for button in row)


def _columns(entry: dict[str, Any]) -> dict[str, str]:
    text = " ".join(str(entry.get("text", "")).split())
    if "did" in entry:
        what, outcome, words = entry["did"], f"user {entry['user']}", text
    else:
        outcome = str(entry.get("code") or entry.get("outcome"))
        outcome += f" ({entry['fault']})" if "fault" in entry else ""
        what, words = str(entry["method"]), entry.get("description", text)
    stored = "stored" if entry.get("stored") else ""
    return {
        "time": str(entry["time"])[11:19],
        "what": what,
        "chat": str(entry.get("chat", "")),
        "outcome": outcome,
        "": f"{stored} {entry.get('message_id', '')}".strip(),
        "words": ("INSIDE RETRY_AFTER " if entry.get("inside_retry_after") else "") + words,
    }


def _folder() -> Path:
    from chronos.config import settings

    return settings().data_dir / "sandbox"


@contextmanager
def _running(url: str | None) -> Iterator[Sandbox]:
    from telegram_sandbox.client import Sandbox
    from telegram_sandbox.running import find

    with _one_line():
        found = url or find(_folder())
        if found is None:
            raise BadInput(
                "no Telegram sandbox runs here: start `chronos up` or `chronos sandbox`, or say where with --url"
            )
        yield Sandbox(found)


@contextmanager
def _one_line() -> Iterator[None]:
    from telegram_sandbox.errors import SandboxError

    try:
        yield
    except SandboxError as error:
        raise BadInput(str(error)) from None
