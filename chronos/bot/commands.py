"""The commands, as data: what /help lists, what Telegram's menu shows, and to whom."""

from __future__ import annotations

from dataclasses import dataclass

from aiogram import Bot
from aiogram.methods import DeleteMyCommands, SetMyCommands
from aiogram.types import BotCommand, BotCommandScopeChat, BotCommandScopeDefault

from chronos.bot.texts import plain
from chronos.models.user import LANGUAGES, Role
from chronos.people import Person


@dataclass(frozen=True)
class Command:
    name: str
    role: Role
    example: str
    also: tuple[str, ...] = ()


COMMANDS = (
    Command("report", Role.USER, "/report 7d", also=("generate_report",)),
    Command("status", Role.USER, "/status 0192f1c8-1a2b"),
    Command("tasks", Role.USER, "/tasks"),
    Command("cancel", Role.USER, "/cancel 0192f1c8-1a2b"),
    Command("queues", Role.ADMIN, "/queues"),
    Command("dlq", Role.ADMIN, "/dlq"),
    Command("grant", Role.ADMIN, "/grant 123456789 editor"),
    Command("revoke", Role.ADMIN, "/revoke 123456789"),
    Command("settings", Role.USER, "/settings"),
    Command("help", Role.USER, "/help"),
    Command("start", Role.USER, "/start"),
    Command("stop", Role.USER, "/stop"),
)


def menu_of(role: Role, language: str) -> list[BotCommand]:
    person = Person(0, role=role)
    return [
        BotCommand(command=command.name, description=plain(language, f"command.{command.name}"))
        for command in COMMANDS
        if person.may(command.role)
    ]


async def set_default_menus(bot: Bot) -> None:
    """For everybody: what a user may do, in each language; English is the one without a code."""
    for language in LANGUAGES:
        await bot(
            SetMyCommands(
                commands=menu_of(Role.USER, language),
                scope=BotCommandScopeDefault(),
                language_code=None if language == "en" else language,
            )
        )


async def set_menu(bot: Bot, person: Person) -> None:
    """One person's own: of their role, in their language. A stranger has the default one."""
    scope = BotCommandScopeChat(chat_id=person.id)
    if person.role is None:
        await bot(DeleteMyCommands(scope=scope))
    else:
        await bot(SetMyCommands(commands=menu_of(person.role, person.speaks), scope=scope))
