"""Breaks a worker on purpose, so that a check is seen failing; the product itself has no switch for this.

Loaded into worker processes through CHRONOS_ACTORS when CHAOS_BREAK names some of BREAKS, comma-separated. What is to
be broken must exist: after a change of the engine a break that no longer fits ends the worker at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import psycopg
from sqlalchemy import text


def _replace(owner: Any, name: str, broken: Any) -> None:
    if not hasattr(owner, name):
        raise SystemExit(f"chaos: {owner.__name__} has no {name}: this break no longer fits the engine")
    setattr(owner, name, broken)


def _without(owner: Any, name: str, guard: str) -> None:
    """Take a guard out of a statement."""
    statement = str(getattr(owner, name, ""))
    if guard not in statement:
        raise SystemExit(f"chaos: {owner.__name__}.{name} has no {guard!r}: this break no longer fits the engine")
    setattr(owner, name, text(statement.replace(guard, "")))


def reaper() -> None:
    """Nobody takes the tasks of dead workers."""
    from chronos.engine.reaper import Reaper

    _replace(Reaper, "sweep", lambda self, connection: [])


def token() -> None:
    """Whoever once ran a task may still write to it."""
    from chronos.engine import sends, tasks

    _without(tasks, "_FINISH", "and t.token = d.token")
    _without(tasks, "_RELEASE", "and t.token = :token")
    _without(tasks, "_END", "and t.token = :token")
    _without(sends, "_INTEND", "and token = :token")
    _replace(tasks, "lock_owned", lambda connection, run: True)


def lease() -> None:
    """A worker sends no beat after its first, and never doubts that it is alive."""
    from chronos.engine.beat import Beat

    _replace(Beat, "beat", lambda self: None)
    _replace(Beat, "stale", False)


def intent() -> None:
    """The intent is committed with the result, after the effect: what a crash in between did is forgotten."""
    from chronos.engine import sends
    from chronos.middleware.context import Intent

    def begin(self: Any) -> sends.Stored | None:
        with self._context._runtime.database.engine.connect() as connection:
            return sends.intend(connection, self._context.task, self._key, self._chat)

    def store(self: Any, state: str) -> None:
        with self._context._runtime.database.transaction() as connection:
            sends.intend(connection, self._context.task, self._key, self._chat)
            sends.store(connection, self._context.task, self._key, state, self.result, self.message_id)

    _replace(Intent, "_begin", begin)
    _replace(Intent, "_store", store)


def limit() -> None:
    """Claims count what runs without waiting for each other: the broken part is in the database (break_database)."""


def hoard() -> None:
    """A process claims whatever it can get, and keeps it waiting in front of its threads."""
    from chronos.engine.held import Held

    _replace(Held, "ahead", lambda self, queue: 256)


def hold() -> None:
    """A 429 is forgotten: everything else is sent on."""
    from chronos.telegram.budget import Budget

    async def forget(self: Any, chat: Any, seconds: float) -> None:
        pass

    _replace(Budget, "hold", forget)


def doubt() -> None:
    """A lost answer counts as "not sent", and the message is sent again."""
    from chronos.telegram import outcomes

    rule_for = outcomes.rule_for

    def trusting(answer: outcomes.Answer) -> outcomes.Rule:
        rule = rule_for(answer)
        unsure = rule.move is outcomes.Move.UNSURE
        return outcomes.Rule(0, 999, "", outcomes.Move.UNSENT, "unreachable") if unsure else rule

    _replace(outcomes, "rule_for", trusting)


BREAKS: dict[str, Callable[[], None]] = {
    break_.__name__: break_ for break_ in (reaper, token, lease, intent, limit, hoard, hold, doubt)
}


def break_database(connection: psycopg.Connection[Any], breaks: str) -> None:
    """The part of the breaks that is in the database of a stage, before any worker is there."""
    if "limit" not in breaks.split(","):
        return
    [(function,)] = connection.execute("select pg_get_functiondef('claim_within_limits'::regproc)").fetchall()
    lock = "perform 1 from limits l where l.queue = the_queue order by l.key for update;"
    if lock not in function:
        raise SystemExit(f"chaos: claim_within_limits has no {lock!r}: this break no longer fits the engine")
    connection.execute(function.replace(lock, ""))


for wanted in filter(None, os.environ.get("CHAOS_BREAK", "").split(",")):
    BREAKS[wanted]()
