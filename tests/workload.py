"""Actors that the tests run in real worker processes."""

from __future__ import annotations

import asyncio
import os
import time
import urllib.request

import psycopg
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from chronos.actor import actor
from chronos.engine.tasks import Claimed
from chronos.errors import Later, PermanentError
from chronos.middleware.context import Context
from chronos.models.params import Params


class Work(Params):
    seconds: float = 0.0
    url: str = ""
    key: str = ""
    mode: str = ""


def _work(params: Work, ctx: Context) -> dict[str, str]:
    if params.url:
        with ctx.intent("effect") as effect:
            if effect.needed:
                request = urllib.request.Request(f"{params.url}/{params.key}", method="POST", data=b"")  # noqa: S310
                urllib.request.urlopen(request, timeout=30).close()  # noqa: S310
                effect.result = {"key": params.key}
    if params.seconds:
        time.sleep(params.seconds)
    return {"key": params.key}


work = actor(queue="broadcast", params=Work, name="work")(_work)
post_work = actor(queue="post", params=Work, name="post_work")(_work)
report_work = actor(queue="report", params=Work, name="report_work")(_work)
single_work = actor(queue="delivery", params=Work, name="single_work", concurrency=1)(_work)


@actor(queue="delivery", params=Work, concurrency=1)
def half_a_letter(params: Work, ctx: Context) -> str:
    """Its result is JSON that PostgreSQL cannot hold."""
    return "\ud800"


@actor(queue="broadcast", params=Work)
def shout(params: Work, ctx: Context) -> None:
    """An effect without a ledger."""
    request = urllib.request.Request(f"{params.url}/{params.key}", method="POST", data=b"")  # noqa: S310
    urllib.request.urlopen(request, timeout=30).close()  # noqa: S310
    time.sleep(params.seconds)


@actor(queue="delivery", params=Work)
def free_work(params: Work, ctx: Context) -> None:
    """On the queue of single_work, without a limit of its own."""


@actor(queue="broadcast", params=Work)
def stay_in_a_statement(params: Work, ctx: Context) -> None:
    with ctx.transaction() as connection:
        connection.execute(text("select pg_sleep(20)"))


class Leak(Params):
    token: str
    chat: int


@actor(queue="system", params=Leak)
def leak(params: Leak, ctx: Context) -> None:
    raise PermanentError("it leaks")


@actor(queue="system", params=Work, timeout=1)
def too_slow(params: Work, ctx: Context) -> None:
    while True:
        time.sleep(0.01)


def _note_requeue(run: Claimed, why: str) -> None:
    with open(os.environ["REQUEUED_FILE"], "a", encoding="utf-8") as file:
        file.write(f"{why}\n")


@actor(queue="system", params=Work, on_requeued=_note_requeue)
def fussy(params: Work, ctx: Context) -> None:
    """Later at first, then an error, then well."""
    if not _seen(ctx):
        raise Later(0.1, "not yet")
    if ctx.task.attempt == 1:
        raise RuntimeError("once")


@actor(queue="broadcast", params=Work, timeout=1)
def hang_in_c(params: Work, ctx: Context) -> None:
    """A call that no time limit can interrupt."""
    time.sleep(120)


class Unspeakable:
    def __str__(self) -> str:
        raise RuntimeError("no words")


class UnspeakableError(Unspeakable, Exception):
    """An error of somebody else's, whose own __str__ fails."""


@actor(queue="system", params=Work)
def behave(params: Work, ctx: Context) -> object:
    match params.mode:
        case "later":
            raise (Later(0.1, "not yet") if ctx.task.attempt == 1 and not _seen(ctx) else PermanentError("seen twice"))
        case "permanent":
            raise PermanentError("never")
        case "nan":
            return {"value": float("nan")}
        case "nul":
            return {"value": "a\x00b"}
        case "nested":
            nested: list[object] = []
            for _ in range(100_000):
                nested = [nested]
            return nested
        case "bad result":
            return {"value": Unspeakable()}
        case "bad error":
            raise UnspeakableError
        case "surrogate":
            raise PermanentError("caf\udce9")
        case "endless later":
            raise Later(float("inf"), "a\x00b")
        case "deadlock":
            with ctx.transaction():
                if ctx.task.attempt == 1 and not _seen(ctx):
                    raise OperationalError("update", {}, psycopg.errors.DeadlockDetected("deadlock detected"))
        case "die":
            os._exit(9)
        case "transaction":
            with ctx.transaction() as connection:
                connection.execute(text("insert into effects (task) values (:id)"), {"id": ctx.task.id})
                ctx.complete({"done": True})
            return None
        case "hang":
            while not ctx.cancelled():
                time.sleep(0.02)
            raise RuntimeError("stopped")
    return None


def _seen(ctx: Context) -> bool:
    with ctx._runtime.database.statement() as connection:
        return bool(
            connection.execute(text("select 1 from task_events where task_id = :i"), {"i": ctx.task.id}).scalar()
        )


@actor(queue="system", params=Work)
async def gentle(params: Work, ctx: Context) -> dict[str, bool]:
    await asyncio.sleep(params.seconds)
    async with ctx.intent("effect") as effect:
        effect.result = {"ok": True}
    return {"loop": asyncio.get_running_loop().is_running()}
