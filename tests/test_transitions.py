"""The moves that the engine makes are the moves of models/moves.py: no other happens, and each of them can."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, text

from chronos.engine import tasks
from chronos.engine.tasks import Claimed
from chronos.models import MOVES, TaskStatus
from chronos.models.new_task import NewTask
from chronos.runtime import Runtime

ERROR: dict[str, str | None] = {"message": "it broke", "class": "Broken", "traceback": None}


@dataclass
class Subject:
    """One task, a worker that may claim it, and the token of its last claim."""

    connection: Connection
    id: uuid.UUID
    worker: uuid.UUID
    token: uuid.UUID

    def status(self) -> TaskStatus:
        found = self.connection.execute(text("select status from tasks where id = :id"), {"id": self.id})
        return TaskStatus(found.scalar_one())

    def run(self, token: uuid.UUID | None = None) -> Claimed:
        return Claimed(self.id, token or self.token, "broadcast", "ping", 1, 3, {}, None, None, None, None)

    def claim(self) -> None:
        self.token = uuid.uuid4()
        tasks.claim(self.connection, "broadcast", [self.id], self.worker, self.token)

    def expire(self) -> None:
        self._set("expires_at = clock_timestamp() - interval '1 second'")
        tasks.expire(self.connection)
        self._set("expires_at = null")

    def reap(self) -> None:
        """Its worker dies and another one is born."""
        self.connection.execute(text("update workers set dead = true where id = :w"), {"w": self.worker})
        tasks.reap(self.connection)
        self.connection.execute(text("update workers set dead = false where id = :w"), {"w": self.worker})
        self._set("run_at = clock_timestamp()")

    def refuse(self) -> None:
        """Nobody knows the actor for longer than is waited for."""
        for _ in range(2):
            tasks.refuse(self.connection, [self.id], "no such actor", 0)

    def send(self, state: str = "intent") -> None:
        self.connection.execute(
            text("insert into sends (task_id, key, state) values (:id, 'effect', :state)"),
            {"id": self.id, "state": state},
        )

    def use_up(self) -> None:
        self._set("attempt = max_attempts")

    def _set(self, columns: str) -> None:
        self.connection.execute(text(f"update tasks set {columns} where id = :id"), {"id": self.id})


VERBS: dict[str, Callable[[Subject], object]] = {
    "claim": Subject.claim,
    "finish": lambda s: tasks.finish(s.connection, [(s.id, s.token, '{"a": 1}')]),
    "retry": lambda s: tasks.retry(s.connection, s.run(), 0, ERROR),
    "later": lambda s: tasks.later(s.connection, s.run(), 0, "not yet"),
    "hand_back": lambda s: tasks.hand_back(s.connection, s.run(), "stopping"),
    "fail": lambda s: tasks.fail(s.connection, s.run(), ERROR),
    "doubt": lambda s: tasks.doubt(s.connection, s.run(), ERROR),
    "end_cancelled": lambda s: tasks.end_cancelled(s.connection, s.run(), "asked"),
    "end_expired": lambda s: tasks.end_expired(s.connection, s.run(), "too late"),
    "cancel": lambda s: tasks.cancel(s.connection, s.id, "me"),
    "expire": Subject.expire,
    "revive": lambda s: tasks.revive(s.connection, [s.id], "me"),
    "mark_arrived": lambda s: tasks.mark_arrived(s.connection, s.id, "me"),
    "send_again": lambda s: tasks.send_again(s.connection, s.id, "effect", "me"),
    "go_on": lambda s: tasks.go_on(s.connection, s.id, "effect", "me"),
    "reap": Subject.reap,
    "refuse": Subject.refuse,
}
#: Verbs of a run: they carry the claim's token.
OF_A_RUN = ("finish", "retry", "later", "hand_back", "fail", "doubt", "end_cancelled", "end_expired")


def subject(runtime: Runtime, connection: Connection) -> Subject:
    id_ = runtime.submit(NewTask("broadcast", "ping"))[0].id
    worker = uuid.uuid4()
    connection.execute(
        text("insert into workers (id, name, host, pid, process_start) values (:w, 'w', 'h', 1, '')"), {"w": worker}
    )
    return Subject(connection, id_, worker, uuid.uuid4())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(verbs=st.lists(st.sampled_from(sorted(VERBS)), min_size=1, max_size=12))
@example(verbs=["claim", "cancel", "retry"])
@example(verbs=["claim", "cancel", "later"])
@example(verbs=["claim", "cancel", "hand_back"])
def test_no_sequence_of_verbs_makes_a_move_that_is_not_allowed(runtime: Runtime, verbs: list[str]) -> None:
    with runtime.database.statement() as connection:
        task = subject(runtime, connection)
        for verb in verbs:
            before = task.status()
            VERBS[verb](task)
            after = task.status()
            assert before == after or verb in MOVES.get((before, after), {}), f"{verb}: {before} -> {after}"


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(verb=st.sampled_from(OF_A_RUN))
def test_a_late_writer_changes_nothing(runtime: Runtime, verb: str) -> None:
    """The worker was thought dead and its task runs elsewhere: its token is no longer the row's."""
    with runtime.database.statement() as connection:
        task = subject(runtime, connection)
        task.claim()
        stale = task.token
        task.reap()
        task.claim()
        current, task.token = task.token, stale
        VERBS[verb](task)
        found = connection.execute(text("select status, token from tasks where id = :id"), {"id": task.id}).one()
        assert tuple(found) == ("in_progress", current)


def test_a_running_task_is_claimed_by_nobody_else(runtime: Runtime) -> None:
    with runtime.database.statement() as connection:
        task = subject(runtime, connection)
        task.claim()
        assert tasks.claim(connection, "broadcast", [task.id], task.worker, uuid.uuid4()) == []
        [again] = tasks.claim(connection, "broadcast", [task.id], task.worker, task.token)
        assert again.attempt == 1


def test_an_unknown_actor_is_waited_for_anew_after_each_run_and_each_revival(runtime: Runtime) -> None:
    """A rolling deploy may come again: an old refusal must not bury the task at the first new one."""
    with runtime.database.statement() as connection:
        task = subject(runtime, connection)

        def refuse_for_the_first_time() -> None:
            connection.execute(text("update task_events set at = at - interval '1 hour' where kind = 'refused'"))
            tasks.refuse(connection, [task.id], "no such actor", 10)
            assert task.status() == TaskStatus.PENDING

        refuse_for_the_first_time()
        task.claim()
        tasks.later(connection, task.run(), 0, "the next slice")
        refuse_for_the_first_time()
        task.refuse()
        assert task.status() == TaskStatus.FAILED
        tasks.revive(connection, [task.id], "me")
        refuse_for_the_first_time()


def _pending(task: Subject) -> None:
    """It is pending already."""


#: How to bring a task to where an arrow begins, so that the arrow is the one that the verb takes.
READY: dict[tuple[TaskStatus, TaskStatus, str], Callable[[Subject], object]] = {
    (TaskStatus.IN_PROGRESS, TaskStatus.FAILED, "reap"): Subject.use_up,
    (TaskStatus.IN_PROGRESS, TaskStatus.UNKNOWN, "reap"): Subject.send,
    **{
        (TaskStatus.IN_PROGRESS, TaskStatus.CANCELLED, verb): VERBS["cancel"]
        for verb in ("reap", "retry", "later", "hand_back")
    },
    (TaskStatus.UNKNOWN, TaskStatus.PENDING, "send_again"): lambda task: task.send("unknown"),
    (TaskStatus.UNKNOWN, TaskStatus.PENDING, "go_on"): lambda task: task.send("unknown"),
}
BEGINNING: dict[TaskStatus, list[Callable[[Subject], object]]] = {
    TaskStatus.PENDING: [_pending],
    TaskStatus.IN_PROGRESS: [Subject.claim],
    TaskStatus.FAILED: [Subject.claim, VERBS["fail"]],
    TaskStatus.UNKNOWN: [Subject.claim, VERBS["doubt"]],
}


@pytest.mark.parametrize(
    ("old", "new", "verb"), [(old, new, verb) for (old, new), verbs in MOVES.items() for verb in verbs]
)
def test_every_arrow_of_the_graph_can_be_walked(runtime: Runtime, old: TaskStatus, new: TaskStatus, verb: str) -> None:
    with runtime.database.statement() as connection:
        task = subject(runtime, connection)
        for step in BEGINNING[old]:
            step(task)
        READY.get((old, new, verb), _pending)(task)
        assert task.status() == old
        VERBS[verb](task)
        assert task.status() == new
