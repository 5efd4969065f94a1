"""What a process believes to hold, and whom it believes to be dead: pure memory, and a clock that a test turns."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from dramatiq.broker import MessageProxy
from dramatiq.message import Message
from dramatiq.middleware import SkipMessage
from sqlalchemy import text

from chronos.engine import reaper
from chronos.engine.held import Held
from chronos.engine.reaper import Reaper
from chronos.engine.tasks import Claimed
from chronos.middleware.claim import ClaimTasks
from chronos.runtime import Runtime


def run_of(id_: uuid.UUID) -> Claimed:
    return Claimed(id_, uuid.uuid4(), "system", "ping", 1, 3, {}, None, None, None, None)


def claim(held: Held, run: Claimed) -> None:
    assert held.begin_claim("system", run.token, 1) == 1
    held.end_claim(run.token, [run])


def test_a_late_answer_to_an_old_outcome_forgets_no_newer_run() -> None:
    held = Held(threads=4)
    first = run_of(uuid.uuid4())
    claim(held, first)
    held.ran(first, 0.1)
    second = run_of(first.id)
    claim(held, second)
    held.settled([first])
    assert held.holds(second.id, second.token)


def test_the_room_of_a_process_is_given_away_once() -> None:
    """Two queues see the same free thread; only one of them may claim for it."""
    held = Held(threads=1, queues=2)
    token = uuid.uuid4()
    assert held.begin_claim("post", token, 5) == 1
    assert held.begin_claim("report", uuid.uuid4(), 5) == 0
    held.end_claim(token, [])
    assert held.begin_claim("report", uuid.uuid4(), 5) == 1


def test_a_message_that_nobody_claimed_is_skipped(runtime: Runtime) -> None:
    message: Message[Any] = Message("system", "ping", (), {}, {})
    with pytest.raises(SkipMessage):
        ClaimTasks(runtime).before_process_message(None, MessageProxy(message))


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


class Stalling:
    """A connection whose answers take as long as PostgreSQL is frozen."""

    def __init__(self, connection: Any, clock: Clock, seconds: float) -> None:
        self.connection, self.clock, self.seconds = connection, clock, seconds

    def execute(self, *arguments: Any) -> Any:
        self.clock.now += self.seconds
        return self.connection.execute(*arguments)


def test_a_stall_of_postgresql_is_nobodys_death(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(reaper, "time", clock)
    with runtime.database.statement() as connection:
        connection.execute(
            text("insert into workers (id, name, host, pid, process_start) values (gen_random_uuid(), 'w', 'h', 1, '')")
        )
        judge = Reaper(uuid.uuid4(), "elsewhere", 2.0)
        assert judge.judge(connection) == 0
        assert judge.judge(Stalling(connection, clock, 30)) == 0  # frozen between question and answer
        clock.now += 30
        assert judge.judge(connection) == 0  # frozen between two questions
        for _ in range(3):
            clock.now += 0.9
            dead = judge.judge(connection)
        assert dead == 1  # watched without a gap, and no beat for a lease
