"""answerCallbackQuery: the bot's word to whoever pressed a button."""

from __future__ import annotations

from typing import Any

from telegram_sandbox.errors import bad_request
from telegram_sandbox.methods.call import Call, method

#: Seconds that a query can be answered.
LIFETIME = 60.0
#: Characters.
LONGEST_ANSWER = 200


@method("answerCallbackQuery")
def answer_callback_query(call: Call) -> Any:
    text = call.parameters.text("text")
    if len(text) > LONGEST_ANSWER:
        raise bad_request("MESSAGE_TOO_LONG")
    id_ = call.parameters.text("callback_query_id")
    query = call.world.queries.get(id_)
    if query is None or query["bot"] != call.bot["id"] or call.now - query["at"] > LIFETIME:
        raise bad_request("query is too old and response timeout expired or query ID is invalid")
    answer = {"text": text, "alert": call.parameters.flag("show_alert"), "url": call.parameters.text("url")}
    call.text = text or None
    call.world.put({**query, "answer": answer}, "queries", id_)
    call.events.publish("answer", place=query["place"], query=id_, user=query["user"], **answer)
    return True
