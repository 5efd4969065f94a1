"""chronos bot: the Telegram bot, polling."""

from __future__ import annotations

import gc
import os
import sys

from chronos import logs
from chronos.config import settings
from chronos.errors import BadInput


def poll() -> int:
    configuration = settings()
    logs.set_up(configuration)
    if configuration.bot_token is None:
        raise BadInput("CHRONOS_BOT_TOKEN is not set: @BotFather gives one, and `chronos up` works without")
    # Half a second of the four that aiogram takes is the garbage collector, which finds nothing.
    gc.disable()
    from chronos.bot.app import run

    gc.freeze()
    gc.enable()
    code, everything_ended = run()
    if not everything_ended:
        # A thread waits for a server that does not answer; Python would wait for it.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code
