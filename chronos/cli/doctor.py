"""Looks at every part that a task needs, then sends one through."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from chronos.cli.config import misspelt
from chronos.config import settings
from chronos.durations import in_words
from chronos.engine import schema, tasks
from chronos.errors import ChronosError, one_line
from chronos.explain import explain
from chronos.models.new_task import NewTask
from chronos.runtime import Runtime, runtime

PING_SECONDS = 15.0


@dataclass(frozen=True)
class Finding:
    check: str
    ok: bool
    words: str
    seconds: float | None = None  #: the ping's way through the pipeline


def examine() -> list[Finding]:
    findings: list[Finding] = []

    def check(name: str, look: Callable[[], str]) -> bool:
        started = time.perf_counter()
        try:
            ok, words = True, look()
        except DBAPIError as error:
            ok, words = False, one_line(error.orig or error)
        except Exception as error:
            ok, words = False, one_line(error)
        took = time.perf_counter() - started if name == "ping" and ok else None
        findings.append(Finding(name, ok, words, took))
        return ok

    check("settings", _settings)
    try:
        here = runtime()
    except ChronosError as error:
        return [*findings, Finding("PostgreSQL", False, str(error))]
    ready = check("PostgreSQL", lambda: _postgres(here)) and check("schema", lambda: _schema(here))
    if ready:
        check("clock", lambda: _clock(here))
    check("broker", lambda: _broker(here))
    if ready:
        check("bot", lambda: _bot(here))
    if ready and check("workers", lambda: _workers(here)):
        check("ping", lambda: _ping(here))
    return findings


def _settings() -> str:
    configuration = settings()
    wrong = misspelt()
    if wrong:
        raise ChronosError("; ".join(wrong))
    return f"lease {configuration.lease:g} s, actors {', '.join(['chronos', *configuration.actor_modules])}"


def _postgres(here: Runtime) -> str:
    with here.database.statement() as connection:
        version = connection.execute(text("show server_version")).scalar_one()
        used, most = connection.execute(
            text("select (select count(*) from pg_stat_activity), current_setting('max_connections')::int")
        ).one()
    return f"version {version}, {used} of {most} connections in use"


def _schema(here: Runtime) -> str:
    schema.require(here.database)
    return f"at {schema.expected()}"


def _clock(here: Runtime) -> str:
    with here.database.statement() as connection:
        connection.execute(text("select 1"))
        before = time.time()
        there = float(connection.execute(text("select extract(epoch from clock_timestamp())")).scalar_one())
        difference = there - (before + time.time()) / 2
    if abs(difference) > 60:
        raise ChronosError(
            f"this machine differs from PostgreSQL by {difference:.0f} s: tasks are safe, logs will mislead"
        )
    return f"{difference * 1000:+.0f} ms from PostgreSQL's"


def _broker(here: Runtime) -> str:
    if here.amqp_url is None:
        return "in-process (set CHRONOS_AMQP_URL for RabbitMQ)"
    publisher = here.transport.publisher()
    try:
        return f"RabbitMQ, {publisher.ready_count('system')} wake-ups ready in queue system"
    except Exception as error:
        # pika's exceptions often have no text.
        raise ChronosError(f"RabbitMQ does not answer: {one_line(repr(error))}") from error
    finally:
        publisher.close()


def _bot(here: Runtime) -> str:
    """A bot whose token Telegram refuses can tell nobody, not even its admins: it is said here and in the log."""
    with here.database.statement() as connection:
        stopped = connection.execute(
            text("select id, stopped_why from bots where stopped_at is not null order by stopped_at")
        ).first()
        known = connection.execute(text("select count(*) from bots")).scalar_one()
    if stopped is not None:
        raise ChronosError(
            f"bot {stopped.id} is stopped, its tasks wait: {stopped.stopped_why}. Set the token that @BotFather shows"
            " as CHRONOS_BOT_TOKEN and start the bot again"
        )
    return "none has been started yet" if known == 0 else f"{known} known, none is stopped"


def _workers(here: Runtime) -> str:
    with here.database.statement() as connection:
        found = connection.execute(
            text(
                "select count(*) as living, coalesce(sum(threads), 0) as threads from workers"
                " where not dead and queues ? 'system'"
                " and beat_at > clock_timestamp() - :lease * interval '1 second'"
            ),
            {"lease": here.settings.lease},
        ).one()
    if found.living == 0:
        raise ChronosError("none lives: start one with `chronos worker` or `chronos up`")
    return f"{found.living} living, {found.threads} threads"


def _ping(here: Runtime) -> str:
    started = time.perf_counter()
    id_ = here.submit(NewTask("system", "ping", {"say": "doctor"}, priority=1))[0].id
    while time.perf_counter() - started < PING_SECONDS:
        with here.database.statement() as connection:
            task = tasks.find(connection, str(id_))
        if task.status == "completed":
            took = time.perf_counter() - started
            return f"a task went through the whole pipeline in {in_words(took)}"
        time.sleep(0.002)
    words = explain(here, task).now
    with here.database.statement() as connection:
        tasks.cancel(connection, id_, "doctor")
    raise ChronosError(f"no answer within {PING_SECONDS:g} s: {words}")
