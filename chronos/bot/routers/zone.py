"""The answer to "which time zone?": a button, or a city that is typed; then what was asked for goes on."""

from __future__ import annotations

import re
from dataclasses import replace

from aiogram import Bot, F, Router
from aiogram.filters import BaseFilter
from aiogram.types import CallbackQuery, Message

from chronos import people
from chronos.bot import zones
from chronos.bot.access import may
from chronos.bot.inbox import Inbox
from chronos.bot.routers import report, settings
from chronos.bot.routers.questions import REPORT, SETTINGS, ask_period, ask_zone
from chronos.bot.talk import Talk
from chronos.models.period import Period, checked_zone
from chronos.models.user import Role
from chronos.runtime import Runtime

_THEN = r"([sr]?[0-9a-z.-]{0,24})$"


class TypesZone(BaseFilter):
    """The text answers "type a city": that was asked last, and nothing but plain text came since.

    What the bot waits for is read from the stored updates: it outlives a restart and needs no table of its own.
    """

    async def __call__(self, message: Message, talk: Talk, inbox: Inbox) -> bool | dict[str, str]:
        if not message.text or message.text.startswith("/"):
            return False
        asked = await talk.run(inbox.question, talk.chat, talk.update_id)
        found = re.fullmatch(rf"zo:{_THEN}", asked or "")
        return {"then": found[1]} if found else False


def router() -> Router:
    made = Router(name="zone")
    chosen_ = F.data.regexp(rf"^z:([A-Za-z0-9_+/-]{{1,40}}):{_THEN}").as_("found")
    made.callback_query.register(chosen, chosen_, flags=may(Role.USER))
    made.callback_query.register(other, F.data.regexp(rf"^zo:{_THEN}").as_("found"), flags=may(Role.USER))
    made.callback_query.register(again, F.data.regexp(rf"^za:{_THEN}").as_("found"), flags=may(Role.USER))
    made.message.register(typed, TypesZone(), flags=may(Role.USER))
    return made


async def chosen(query: CallbackQuery, talk: Talk, found: re.Match[str], here: Runtime, bot: Bot) -> None:
    zone, then = checked_zone(found[1]), found[2]
    await talk.run(people.choose_zone, here, talk.person.id, zone)
    talk.person = replace(talk.person, time_zone=zone)
    kept = talk.plain("zone.kept", zone=zone, time=zones.time_in(zone, talk.language))
    if then == SETTINGS:
        await talk.answer(kept)
        await settings.show(talk)
    elif then == REPORT:
        await talk.answer(kept)
        await ask_period(talk)
    elif then.startswith(REPORT):
        await report.make(talk, here, bot, str(Period.parse(then.removeprefix(REPORT))), talk.update_id)
    else:
        await talk.reply(talk.say("zone.kept", zone=zone, time=zones.time_in(zone, talk.language)))


async def other(query: CallbackQuery, talk: Talk, found: re.Match[str]) -> None:
    await talk.reply(talk.say("zone.type"), [[(talk.plain("back"), f"za:{found[1]}")]])


async def again(query: CallbackQuery, talk: Talk, found: re.Match[str]) -> None:
    await ask_zone(talk, found[1])


async def typed(message: Message, talk: Talk, then: str) -> None:
    found = zones.search(message.text or "")
    back = [(talk.plain("back"), f"za:{then}")]
    if not found:
        await talk.reply(talk.say("zone.unknown", given=(message.text or "")[:60]), [back])
    elif len(found) == 1:
        zone = found[0]
        keyboard = [[(talk.plain("zone.yes"), f"z:{zone}:{then}"), (talk.plain("zone.no"), f"zo:{then}")]]
        await talk.reply(talk.say("zone.confirm", zone=zone, time=zones.time_in(zone, talk.language)), keyboard)
    else:
        keyboard = [
            [(talk.plain("zone.choice", zone=zone, time=zones.time_in(zone, talk.language)), f"z:{zone}:{then}")]
            for zone in found
        ]
        await talk.reply(talk.say("zone.several"), [*keyboard, back])
