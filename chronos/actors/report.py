"""The report of a period: gathered, drawn and sent to the chat that asked. What was made stays with the task."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from sqlalchemy import text

from chronos.actor import actor
from chronos.errors import BadInput, Cancelled, PermanentError
from chronos.middleware.context import Context
from chronos.models.params import Report
from chronos.reports.activity import Activity
from chronos.reports.gathering import gather
from chronos.runtime import runtime

_STEPS = {
    "ru": {"gathering": "считаю", "drawing": "рисую", "writing": "пишу PDF", "sending": "отправляю", "done": "готово"},
    "en": {"gathering": "counting", "drawing": "drawing", "writing": "writing the PDF", "sending": "sending",
           "done": "done"},
}  # fmt: skip


@actor(queue="report", params=Report)
def report(params: Report, ctx: Context) -> dict[str, Any]:
    from chronos.reports.charts import chart_of
    from chronos.reports.documents import pdf_of
    from chronos.reports.texts import text_of

    steps = _Steps(params, ctx)
    steps.next("gathering")
    activity = _activity(params, ctx)
    said = text_of(activity, params.language)
    files: dict[str, dict[str, Any]] = {}
    made: dict[str, bytes] = {}
    for part in params.parts:
        steps.next("drawing" if part == "chart" else "writing")
        made[part] = (chart_of if part == "chart" else pdf_of)(activity, params.language)
        files[part] = {"bytes": len(made[part]), "sha256": hashlib.sha256(made[part]).hexdigest()}
    if ctx.task.chat is not None:
        steps.next("sending")
        for part in params.parts:
            files[part] |= _send(ctx, ctx.task.chat, part, made[part], said, activity, alone=len(made) == 1)
    steps.next("done")
    return {"text": said, "files": files, "activity": activity.model_dump(mode="json")}


class _Steps:
    """Tells how far it is, and stops between two steps when somebody wants that."""

    def __init__(self, params: Report, ctx: Context) -> None:
        self._ctx, self._words = ctx, _STEPS[params.language]
        self._done, self._total = 0, 1 + len(params.parts) + (ctx.task.chat is not None)

    def next(self, step: str) -> None:
        if self._ctx.cancelled() and step != "done":
            raise Cancelled("stopped on request")
        self._ctx.progress(self._done, self._total, self._words[step])
        self._done += 1


_KEPT = text("""
select result_payload -> 'activity' from tasks where id = :id or id = :of and task_name = 'report'
  and status = 'completed' and chat is not distinct from cast(:chat as bigint)
order by id <> :id
""")


def _activity(params: Report, ctx: Context) -> Activity:
    """The figures, the same in each run of the task: a retry must not send others than those that it stores.

    With `of` they are those of a report that the same chat got, so that its PDF says what its chart said.
    """
    task = ctx.task
    with runtime().database.statement() as connection:
        found = connection.execute(_KEPT, {"id": task.id, "of": params.of, "chat": task.chat}).scalars().all()
        kept = next((figures for figures in found if figures is not None), None)
        if kept is not None:
            return Activity.model_validate_json(json.dumps(kept))
        if params.of is not None:
            raise PermanentError("the report to make again is not there any more: ask for a new one")
        try:
            activity = gather(connection, params.period, params.zone)
        except BadInput as error:
            raise PermanentError(str(error)) from error
    with ctx.transaction() as connection:
        connection.execute(
            text("update tasks set result_payload = cast(:figures as jsonb) where id = :id"),
            {"id": task.id, "figures": json.dumps({"activity": activity.model_dump(mode="json")})},
        )
    return activity


def _send(
    ctx: Context, chat: int, part: str, content: bytes, said: str, activity: Activity, *, alone: bool
) -> dict[str, Any]:
    from aiogram.methods import SendDocument, SendPhoto
    from aiogram.types import BufferedInputFile

    name = f"chronos-{activity.first}" + (f"-{activity.last}" if activity.days > 1 else "")
    if part == "chart":
        photo = BufferedInputFile(content, f"{name}.png")
        sent = ctx.send("chart", SendPhoto(chat_id=chat, photo=photo, caption=said))
    else:
        document = BufferedInputFile(content, f"{name}.pdf")
        # Behind the chart its words have been said already.
        sent = ctx.send("pdf", SendDocument(chat_id=chat, document=document, caption=said if alone else None))
    return {"message_id": sent.message_id, "file_id": sent.file_id}
