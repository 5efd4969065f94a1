"""Methods about the bot itself: who it is, its commands, its name and descriptions."""

from __future__ import annotations

import json
import re
from typing import Any

from telegram_sandbox.chats import bot_view
from telegram_sandbox.errors import Json, bad_request
from telegram_sandbox.methods.call import Call, Method, method

SCOPES = "default all_private_chats all_group_chats all_chat_administrators chat chat_administrators chat_member"
MOST_COMMANDS = 100


@method("getMe")
def get_me(call: Call) -> Any:
    return {
        **bot_view(call.bot),
        "can_join_groups": True,
        "can_read_all_group_messages": bool(call.bot.get("reads_all")),
        "supports_inline_queries": False,
        "can_connect_to_business": False,
        "has_main_web_app": False,
    }


@method("logOut")
def log_out(call: Call) -> Any:
    return True


@method("close")
def close(call: Call) -> Any:
    return True


def _scope(call: Call) -> str:
    scope = call.parameters.json("scope", "can't parse BotCommandScope JSON object") or {"type": "default"}
    if not isinstance(scope, dict) or scope.get("type") not in SCOPES.split():
        raise bad_request("can't parse BotCommandScope: unsupported type specified")
    language = call.parameters.text("language_code")
    if language and not re.fullmatch("[a-z]{2}", language):
        raise bad_request("invalid language code specified")
    kept = {key: scope[key] for key in ("type", "chat_id", "user_id") if key in scope}
    return json.dumps([kept, language], sort_keys=True)


@method("setMyCommands")
def set_my_commands(call: Call) -> Any:
    given = call.parameters.json("commands", "can't parse commands JSON object")
    if not isinstance(given, list):
        raise bad_request("expected an Array of BotCommand")
    if len(given) > MOST_COMMANDS:
        raise bad_request("BOT_COMMANDS_TOO_MUCH")
    commands: list[Json] = []
    for item in given:
        if not isinstance(item, dict) or not isinstance(item.get("command"), str):
            raise bad_request("can't parse BotCommand: expected an Object")
        name, words = item["command"].removeprefix("/").lower(), item.get("description")
        if not re.fullmatch("[a-z0-9_]{1,32}", name):
            raise bad_request("BOT_COMMAND_INVALID")
        if not isinstance(words, str) or not 1 <= len(words.strip()) <= 256:
            raise bad_request("BOT_COMMAND_DESCRIPTION_INVALID")
        commands.append({"command": name, "description": words})
    return _keep_commands(call, _scope(call), commands)


@method("deleteMyCommands")
def delete_my_commands(call: Call) -> Any:
    return _keep_commands(call, _scope(call), [])


@method("getMyCommands")
def get_my_commands(call: Call) -> Any:
    return call.bot.get("commands", {}).get(_scope(call), [])


def _keep_commands(call: Call, scope: str, commands: list[Json]) -> bool:
    kept = {key: value for key, value in call.bot.get("commands", {}).items() if key != scope}
    if commands:
        kept[scope] = commands
    call.world.put({**call.bot, "commands": kept}, "bots", call.bot["id"])
    call.events.publish("bot", bot=call.bot["id"])
    return True


def _told(name: str, field: str, longest: int) -> None:
    """setX and getX of a text that people see in the bot's profile."""

    def keep(call: Call) -> Any:
        text = call.parameters.text(field)
        if len(text) > longest:
            raise bad_request(f"{field} is too long")
        call.world.put(
            {**call.bot, field: text or (call.bot["name"] if field == "name" else "")}, "bots", call.bot["id"]
        )
        call.events.publish("bot", bot=call.bot["id"])
        return True

    def show(call: Call) -> Any:
        return {field: call.bot.get(field, "")}

    setter: Method = keep
    getter: Method = show
    method(f"setMy{name}")(setter)
    method(f"getMy{name}")(getter)


_told("Name", "name", 64)
_told("Description", "description", 512)
_told("ShortDescription", "short_description", 120)
