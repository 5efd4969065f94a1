"""Closes the connections to Telegram while the event loop that used them still runs."""

from __future__ import annotations

from typing import Any

from dramatiq.middleware import Middleware

from chronos import telegram


class CloseBot(Middleware):
    def after_worker_shutdown(self, broker: Any, worker: Any) -> None:
        if telegram.is_made():
            telegram.run(telegram.close())
