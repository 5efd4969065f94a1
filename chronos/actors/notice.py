"""What the database itself asks for: `tell` how a task ended, `alarm` the admins about what failed (migration 0007)."""

from __future__ import annotations

import asyncio
from typing import Any

from sqlalchemy import text

from chronos import alarms, cards
from chronos.actor import actor
from chronos.db import DatabaseTrouble, is_passing
from chronos.errors import Ambiguous, Later, PermanentError, one_line
from chronos.middleware.context import TROUBLE_SECONDS, Context
from chronos.models.params import Alarm, Tell
from chronos.runtime import runtime

#: The bot writes the card right behind its answer: for so long after the end one may still come.
CARD_MAY_COME_SECONDS, LOOK_AGAIN_SECONDS = 6.0, 2.0


@actor(queue="system", params=Tell)
async def tell(params: Tell, ctx: Context) -> dict[str, Any]:
    """The end on the task's card; without a card, a message of its own. Repeated, it changes nothing."""
    if runtime().settings.bot_token is None:
        return {"told": "nobody: this worker has no bot"}
    try:
        return await _tell(params, ctx)
    except PermanentError as error:
        # Nobody can be reached there: that is known, and no reason for an alarm.
        return {"told": "nobody", "why": one_line(error)}
    except DatabaseTrouble as error:
        if is_passing(error):
            raise Later(TROUBLE_SECONDS, f"PostgreSQL: {one_line(error)}") from error
        raise


_AGE = text("select extract(epoch from clock_timestamp() - created_at)::float, status from tasks where id = :id")


async def _tell(params: Tell, ctx: Context) -> dict[str, Any]:
    if await cards.show(params.task_id):
        return {"told": "card"}
    card, age, in_doubt = await asyncio.to_thread(_look, params, ctx)
    if card is None and age < CARD_MAY_COME_SECONDS:
        raise Later(LOOK_AGAIN_SECONDS, "its card may still be written")
    if card is not None and not in_doubt:
        return {"told": "nobody: the card is gone"}
    return {"told": "message"} if await cards.send_anew(ctx, params.task_id) else {"told": "by its result"}


def _look(params: Tell, ctx: Context) -> tuple[cards.Card | None, float, bool]:
    with runtime().database.statement() as connection:
        card = cards.card_of(connection, params.task_id)
        age = connection.execute(_AGE, {"id": ctx.task.id}).scalar_one()
        status = connection.execute(_AGE, {"id": params.task_id}).one_or_none()
    return card, age, status is not None and status.status == "unknown"


@actor(queue="system", params=Alarm)
def alarm(params: Alarm, ctx: Context) -> dict[str, Any]:
    """One line to every admin. What it tells is marked and kept with the task first: a repeat says the same."""
    if runtime().settings.bot_token is None:
        return {"told": 0, "why": "this worker has no bot"}
    news = _news(ctx)
    told = 0
    for admin in alarms.admins(runtime()):
        words = alarms.words_of(news, admin.language)
        if words is None:
            break
        try:
            ctx.send(f"admin {admin.id}", alarms.message_to(admin, words, news))
            told += 1
        except (PermanentError, Ambiguous) as error:
            ctx.log.info("an admin is not told", admin=admin.id, why=one_line(error))
    return {**news, "told": told}


def _news(ctx: Context) -> dict[str, Any]:
    with runtime().database.statement() as connection:
        kept = connection.execute(
            text("select result_payload from tasks where id = :id"), {"id": ctx.task.id}
        ).scalar_one()
    if kept is not None:
        return dict(kept)
    with ctx.transaction() as connection:
        return alarms.take(connection, ctx.task.id)
