"""/start, /stop, /help: how a person and the bot meet and part."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from aiogram import Bot, Router
from aiogram.filters import Command, CommandObject, CommandStart
from aiogram.types import ChatMemberUpdated, Message

from chronos import people
from chronos.bot import commands
from chronos.bot.access import ANYONE, may
from chronos.bot.talk import Talk
from chronos.bot.texts import lines
from chronos.models.user import Role
from chronos.runtime import Runtime
from chronos.telegram import chats


def router() -> Router:
    made = Router(name="people")
    made.message.register(start, CommandStart(), flags=may(ANYONE))
    made.message.register(stop, Command("stop"), flags=may(Role.USER))
    made.message.register(help_, Command("help"), flags=may(Role.USER))
    made.my_chat_member.register(membership, flags=may(ANYONE))
    return made


async def start(message: Message, talk: Talk, command: CommandObject, here: Runtime, bot: Bot) -> None:
    person = talk.person
    if command.args and talk.private:
        role = await talk.run(people.accept, here, command.args.strip(), person.id)
        if role is not None:
            talk.person = replace(person, role=role)
            await talk.run(people.subscribe, here, bot.id, person.id)
            await talk.reply(talk.say("start.invited", name=person.name, role=talk.plain(f"role.{role}")))
            await commands.set_menu(bot, talk.person)
            return
    if person.role is None:
        said = talk.say("stranger", name=person.name, id=str(person.id))
        await talk.reply(lines(talk.say("start.used"), said) if command.args else said)
        return
    if talk.private:
        await talk.run(people.subscribe, here, bot.id, person.id)
    await talk.reply(talk.say("start", name=person.name, role=talk.plain(f"role.{person.role}")))


async def stop(message: Message, talk: Talk, here: Runtime, bot: Bot) -> None:
    done = await talk.run(people.unsubscribe, here, bot.id, talk.person.id)
    await talk.reply(talk.say("stop" if done else "stop.not"))


async def help_(message: Message, talk: Talk) -> None:
    said = [
        talk.say("help.line", command=command.name, what=talk.plain(f"command.{command.name}"), example=command.example)
        for command in commands.COMMANDS
        if talk.person.may(command.role)
    ]
    await talk.reply(lines(talk.say("help"), *said))


async def membership(event: ChatMemberUpdated, here: Runtime, bot: Bot, talk: Talk, **_: Any) -> None:
    """Somebody blocked or unblocked the bot, or a group took it in."""
    gone = event.new_chat_member.status in ("kicked", "left")

    def keep() -> None:
        with here.database.transaction() as connection:
            if event.chat.type == "private" and gone:
                chats.mark_blocked(connection, bot.id, event.chat.id, "blocked")
            elif event.chat.type == "private":
                chats.mark_reachable(connection, bot.id, event.chat.id)
            chats.remember(connection, bot.id, event.chat.id, event.chat.type, event.chat.title, event.chat.username)

    await talk.run(keep)
