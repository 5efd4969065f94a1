"""/cancel: a task by its id; without one, the only one that waits or runs, or the choice among several."""

from __future__ import annotations

from aiogram import Router
from aiogram.filters import Command, CommandObject
from aiogram.types import Message

from chronos import task_list
from chronos.bot.access import may
from chronos.bot.routers.tasks import cancel, line_of, pack
from chronos.bot.talk import Talk
from chronos.bot.texts import lines
from chronos.models.user import Role
from chronos.runtime import Runtime

#: Tasks that are offered.
MOST = 8


def router() -> Router:
    made = Router(name="cancelling")
    made.message.register(cancel_, Command("cancel"), flags=may(Role.USER))
    return made


async def cancel_(message: Message, talk: Talk, command: CommandObject, here: Runtime) -> None:
    if command.args:
        await _cancel(talk, here, command.args.split()[0])
        return
    found = await talk.run(task_list.newest, here, user_id=talk.person.id, asked_for=True, alive=True, most=MOST)
    if not found:
        await talk.reply(talk.say("cancel.nothing"))
    elif len(found) == 1:
        await _cancel(talk, here, str(found[0].id))
    else:
        buttons = [(talk.plain("tasks.cancel", id=line.short_id), f"tx:{pack(line.id)}:") for line in found]
        keyboard = [buttons[start : start + 2] for start in range(0, len(buttons), 2)]
        said = lines(talk.say("cancel.which"), *(line_of(talk, line) for line in found))
        await talk.reply(said, [*keyboard, [(talk.plain("back"), "drop")]])


async def _cancel(talk: Talk, here: Runtime, id_: str) -> None:
    await talk.reply(talk.say("line", words=await cancel(talk, here, id_)))
