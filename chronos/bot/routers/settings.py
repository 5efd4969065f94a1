"""/settings: language and time zone, by buttons."""

from __future__ import annotations

import re
from dataclasses import replace

from aiogram import Bot, F, Router
from aiogram.filters import Command
from aiogram.types import CallbackQuery, Message

from chronos import people
from chronos.bot import commands, zones
from chronos.bot.access import may
from chronos.bot.routers.questions import SETTINGS, ask_zone
from chronos.bot.talk import Talk
from chronos.models.user import LANGUAGES, Role
from chronos.runtime import Runtime


def router() -> Router:
    made = Router(name="settings")
    made.message.register(open_, Command("settings"), flags=may(Role.USER))
    made.callback_query.register(back, F.data == "set:", flags=may(Role.USER))
    made.callback_query.register(ask_language, F.data == "set:language", flags=may(Role.USER))
    made.callback_query.register(zone, F.data == "set:zone", flags=may(Role.USER))
    found = F.data.regexp(rf"^set:language:({'|'.join(LANGUAGES)}|auto)$").as_("found")
    made.callback_query.register(choose_language, found, flags=may(Role.USER))
    return made


async def open_(message: Message, talk: Talk) -> None:
    await show(talk)


async def back(query: CallbackQuery, talk: Talk) -> None:
    await show(talk)


async def show(talk: Talk) -> None:
    person = talk.person
    language = talk.plain(f"language.{talk.language}")
    if person.language is None:
        language = talk.plain("settings.auto.now", language=language)
    zone = talk.plain("settings.no zone")
    if person.time_zone is not None:
        shown = zones.time_in(person.time_zone, talk.language)
        zone = talk.plain("zone.choice", zone=person.time_zone, time=shown)
    keyboard = [[(talk.plain("settings.language"), "set:language"), (talk.plain("settings.zone"), "set:zone")]]
    await talk.reply(talk.say("settings", language=language, zone=zone), keyboard)


async def ask_language(query: CallbackQuery, talk: Talk) -> None:
    names = [(talk.plain(f"language.{language}"), f"set:language:{language}") for language in LANGUAGES]
    keyboard = [names, [(talk.plain("settings.auto"), "set:language:auto")], [(talk.plain("back"), "set:")]]
    await talk.reply(talk.say("language.which"), keyboard)


async def choose_language(query: CallbackQuery, talk: Talk, found: re.Match[str], here: Runtime, bot: Bot) -> None:
    language = None if found[1] == "auto" else found[1]
    await talk.run(people.choose_language, here, talk.person.id, language)
    talk.person = replace(talk.person, language=language)
    await talk.answer(talk.plain("settings.kept"))
    await show(talk)
    await commands.set_menu(bot, talk.person)


async def zone(query: CallbackQuery, talk: Talk) -> None:
    await ask_zone(talk, SETTINGS)
