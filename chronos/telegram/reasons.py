"""Why a call did not work, in words for people: one short key and one sentence each, never Telegram's own English.

The sentence is what a task's error says, so a text in another language is found by it.
"""

from __future__ import annotations

from chronos.errors import Ambiguous, Later, PermanentError

SENTENCES = {
    "blocked": "the user has blocked the bot",
    "deactivated": "the user's account has been deleted",
    "not started": "the user has not started the bot yet",
    "kicked": "the bot has been removed from the chat",
    "not a member": "the bot is not a member of the chat",
    "no rights": "the bot has no right to do this in the chat",
    "chat not found": "there is no such chat, or the bot has never seen it",
    "too long": "the text is longer than Telegram allows",
    "caption too long": "the caption is longer than Telegram allows",
    "empty": "the text is empty",
    "bad formatting": "the formatting of the text is broken",
    "bad button": "a button holds what Telegram does not allow",
    "bad file": "Telegram does not know this file or cannot read it",
    "bad link": "Telegram could not fetch the file from its address",
    "file too big": "the file is larger than Telegram allows",
    "file gone": "the file is no longer there",
    "moved": "the group has become a supergroup",
    "message gone": "the message is no longer there or cannot be changed any more",
    "unknown method": "the Bot API server does not know what was asked for",
    "redirected": "the address of the Bot API server leads elsewhere",
    "refused": "Telegram refused the request",
    "unsure": "Telegram's answer got lost: the message may have arrived",
    "unreachable": "Telegram cannot be reached",
    "busy": "Telegram asks to wait",
    "budget": "the bot's limit is used up for the moment",
    "chat limit": "the chat's limit is used up for the moment",
    "database": "the database does not answer",
    "stopped": "Telegram refuses the bot's token",
    "other bot": "this process has the token of another bot",
}


def permanent(reason: str) -> PermanentError:
    error = PermanentError(SENTENCES[reason])
    error.reason = reason
    return error


def later(reason: str, seconds: float) -> Later:
    error = Later(seconds, SENTENCES[reason])
    error.reason = reason
    return error


def ambiguous(reason: str) -> Ambiguous:
    error = Ambiguous(SENTENCES[reason])
    error.reason = reason
    return error
