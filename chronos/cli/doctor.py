"""Looks at every part that a task needs, then sends one through."""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import text

from chronos.engine import schema, tasks
from chronos.engine.tasks import NewTask
from chronos.errors import ChronosError, one_line
from chronos.runtime import Runtime

PING_SECONDS = 15


def examine(runtime: Runtime) -> list[dict[str, Any]]:
    findings: list[dict[str, Any]] = []

    def check(name: str, look: Any) -> bool:
        try:
            findings.append({"check": name, "ok": True, "words": look()})
        except Exception as error:
            findings.append({"check": name, "ok": False, "words": one_line(error)})
        return bool(findings[-1]["ok"])

    check("settings", lambda: f"lease {runtime.settings.lease:g} s")
    ready = check("PostgreSQL", lambda: _postgres(runtime)) and check("schema", lambda: _schema(runtime))
    if ready:
        check("clock", lambda: _clock(runtime))
    check("broker", lambda: _broker(runtime))
    if ready and check("workers", lambda: _workers(runtime)):
        check("ping", lambda: _ping(runtime))
    return findings


def _postgres(runtime: Runtime) -> str:
    def read() -> str:
        with runtime.database.statement() as connection:
            return str(connection.execute(text("show server_version")).scalar_one())

    return "version " + runtime.database.persist(read, deadline=5)


def _schema(runtime: Runtime) -> str:
    schema.require(runtime.database)
    return f"at {schema.expected()}"


def _clock(runtime: Runtime) -> str:
    with runtime.database.statement() as connection:
        connection.execute(text("select 1"))
        before = time.time()
        there = float(connection.execute(text("select extract(epoch from clock_timestamp())")).scalar_one())
        difference = there - (before + time.time()) / 2
    if abs(difference) > 60:
        raise ChronosError(
            f"this machine differs from PostgreSQL by {difference:.0f} s: tasks are safe, logs will mislead"
        )
    return f"{difference * 1000:+.0f} ms from PostgreSQL's"


def _broker(runtime: Runtime) -> str:
    if runtime.amqp_url is None:
        return "in-process (set CHRONOS_AMQP_URL for RabbitMQ)"
    publisher = runtime.transport.publisher()
    try:
        return f"RabbitMQ, {publisher.ready_count('system')} wake-ups ready in system"
    finally:
        publisher.close()


def _workers(runtime: Runtime) -> str:
    with runtime.database.statement() as connection:
        count = connection.execute(
            text("select count(*) from workers where not dead and queues ? 'system'")
        ).scalar_one()
    if count == 0:
        raise ChronosError("none lives: start one with `chronos worker` or `chronos up`")
    return f"{count} living"


def _ping(runtime: Runtime) -> str:
    started = time.perf_counter()
    id_ = runtime.submit(NewTask("system", "ping", {"say": "doctor"}, priority=1))[0].id
    while time.perf_counter() - started < PING_SECONDS:
        with runtime.database.statement() as connection:
            task = tasks.find(connection, str(id_))
        if task.status == "completed":
            return (
                f"a task went through the whole pipeline in {(time.perf_counter() - started) * 1000:.0f} ms"
            )
        time.sleep(0.002)
    raise ChronosError(f"no answer within {PING_SECONDS} s: `chronos task explain {id_}`")
