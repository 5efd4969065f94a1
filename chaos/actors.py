"""What the workers of a chaos run do: one actor whose effect is made at the judge's server or in a table.

CHAOS_QUEUE and CHAOS_CONCURRENCY say where it is declared and with which limit. A worker ends with the run that
started it, however that ends.
"""

from __future__ import annotations

import http.client
import os
import threading
import time
from typing import Literal

import psutil
from sqlalchemy import text

from chronos.actor import actor
from chronos.middleware.context import Context
from chronos.models.params import Params

#: Seconds.
ANSWER_DEADLINE = 30.0


class Work(Params):
    server: str
    key: str
    before: float = 0.0  #: seconds of work before the effect
    seconds: float = 0.0  #: how long the effect takes
    after: float = 0.0  #: seconds of work after it
    kind: Literal["plain", "intent", "transaction"] = "intent"  #: how the effect is made


_of_thread = threading.local()


def _make_effect(params: Work) -> None:
    """Over one connection per thread: what the effect costs beside its seconds is not the engine's to answer for."""
    if not hasattr(_of_thread, "connection"):
        _of_thread.connection = http.client.HTTPConnection(params.server, timeout=ANSWER_DEADLINE)
    _of_thread.connection.request("POST", f"/{params.key}?worker={os.getpid()}&seconds={params.seconds}")
    _of_thread.connection.getresponse().read()


def _work(params: Work, ctx: Context) -> None:
    if params.before:
        time.sleep(params.before)
    match params.kind:
        case "plain":
            _make_effect(params)
        case "intent":
            with ctx.intent("effect") as effect:
                if effect.needed:
                    _make_effect(params)
        case "transaction":
            with ctx.transaction() as connection:
                connection.execute(text("insert into effects (key) values (:key)"), {"key": params.key})
                ctx.complete()
    if params.after:
        time.sleep(params.after)


def _end_with(runner: int) -> None:
    while psutil.pid_exists(runner):
        time.sleep(1)
    os._exit(1)


threading.Thread(target=_end_with, args=(int(os.environ["CHAOS_RUNNER"]),), daemon=True).start()
work = actor(
    queue=os.environ["CHAOS_QUEUE"],
    params=Work,
    name="work",
    concurrency=int(os.environ.get("CHAOS_CONCURRENCY", "0")) or None,
)(_work)
