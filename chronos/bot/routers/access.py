"""/grant and /revoke: admins let people in and out."""

from __future__ import annotations

from aiogram import Bot, Router
from aiogram.filters import Command, CommandObject
from aiogram.methods import SendMessage
from aiogram.types import Message

from chronos import people
from chronos.bot import commands
from chronos.bot.access import may
from chronos.bot.talk import Talk
from chronos.bot.texts import Html, lines, plain, say
from chronos.errors import Ambiguous, PermanentError
from chronos.models.user import Role
from chronos.people import Person
from chronos.runtime import Runtime

#: What people write for a role in a Russian chat.
_ROLES = {
    "пользователь": Role.USER,
    "редактор": Role.EDITOR,
    "админ": Role.ADMIN,
    "администратор": Role.ADMIN,
}
#: People of one list.
MOST_SHOWN = 30


def router() -> Router:
    made = Router(name="access")
    made.message.register(grant, Command("grant"), flags=may(Role.ADMIN))
    made.message.register(revoke, Command("revoke"), flags=may(Role.ADMIN))
    return made


async def grant(message: Message, talk: Talk, command: CommandObject, here: Runtime, bot: Bot) -> None:
    words = (command.args or "").split()
    if not words:
        await talk.reply(lines(talk.say("grant.how"), Html(""), *await _everybody(talk, here)))
        return
    id_, role = people.id_of(words[0]), _role(words[1]) if len(words) > 1 else Role.USER
    change = await talk.run(people.grant, here, id_, role, talk.person.id)
    told = True
    if change.before is not role and id_ != talk.person.id:
        told = await _tell(bot, change.person, "grant.you", role)
    said = talk.say("grant.done", name=change.person.name, id=str(id_), role=talk.plain(f"role.{role}"))
    await talk.reply(lines(said, talk.say("grant.told" if told else "grant.not told")))
    await _renew_menu(bot, change.person)


async def revoke(message: Message, talk: Talk, command: CommandObject, here: Runtime, bot: Bot) -> None:
    words = (command.args or "").split()
    if not words:
        await talk.reply(lines(talk.say("revoke.how"), Html(""), *await _everybody(talk, here)))
        return
    id_ = people.id_of(words[0])
    change = await talk.run(people.revoke, here, id_)
    await talk.reply(talk.say("revoke.done", name=change.person.name, id=str(id_)))
    if id_ != talk.person.id:
        await _tell(bot, change.person, "revoke.you", None)
    await _renew_menu(bot, change.person)


def _role(word: str) -> Role:
    return _ROLES.get(word.lower()) or people.role_of(word)


async def _everybody(talk: Talk, here: Runtime) -> list[Html]:
    found = (await talk.run(people.with_roles, here))[:MOST_SHOWN]
    return [
        talk.say("grant.who"),
        *(
            talk.say("grant.line", name=person.name, id=str(person.id), role=talk.plain(f"role.{person.role}"))
            for person in found
        ),
    ]


async def _tell(bot: Bot, person: Person, key: str, role: Role | None) -> bool:
    """False: they cannot be reached. Who has never written is told in Russian: nobody knows better."""
    known = person.language_code is not None or person.language is not None
    language = person.speaks if known else "ru"
    fields = {} if role is None else {"role": plain(language, f"role.{role}")}
    try:
        await bot(SendMessage(chat_id=person.id, text=say(language, key, **fields), parse_mode="HTML"))
    except PermanentError:
        return False
    except Ambiguous:
        pass
    return True


async def _renew_menu(bot: Bot, person: Person) -> None:
    try:
        await commands.set_menu(bot, person)
    except PermanentError:
        # Telegram knows no chat with them yet; the menu is set when the bot starts the next time.
        return
