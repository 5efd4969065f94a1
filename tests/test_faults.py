"""What guarantees.md promises, with real processes killed: nothing lost, nothing doubled, unknown ones told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pika
import pytest

from chronos import housekeeping
from chronos.engine import tasks
from chronos.engine.transports import encode
from chronos.models.new_task import NewTask
from private_services import PrivatePostgres, PrivateRabbitMQ
from tests.processes import Workers, effects_server, eventually, pass_time

pytestmark = pytest.mark.rabbitmq


def test_work_of_a_killed_worker_is_done_by_another(workers: Workers) -> None:
    """Fails without the reaper: the rows stay in_progress."""
    victim = workers.start(1)[0]
    workers.runtime.submit(*[NewTask("broadcast", "work", {"seconds": 1.0}) for _ in range(4)])
    eventually(lambda: workers.statuses().get("in_progress") == 4, what=workers.logs())
    workers.kill(victim)
    workers.start(1)
    assert workers.all_final() == {"completed": 4}
    assert workers.sql("select distinct attempt, crashes from tasks") == [(2, 1)]


def test_a_kill_between_intent_and_result_ends_as_unknown_and_is_never_repeated(workers: Workers) -> None:
    with effects_server() as effects:
        effects.hold.clear()
        victim = workers.start(1)[0]
        workers.runtime.submit(NewTask("broadcast", "work", {"url": effects.url, "key": "a"}))
        eventually(lambda: effects.made == ["a"], what=workers.logs())
        workers.kill(victim)
        effects.hold.set()
        workers.start(1)
        assert workers.all_final() == {"unknown": 1}
        assert effects.made == ["a"]
        assert workers.sql("select state from sends") == [("unknown",)]
        [(id_,)] = workers.sql("select id from tasks")
        with workers.runtime.database.statement() as connection:
            assert tasks.revive(connection, [id_], "me") == [id_]
        assert workers.all_final() == {"completed": 1}
        assert effects.made == ["a", "a"]


def test_a_kill_after_the_result_repeats_nothing(workers: Workers) -> None:
    with effects_server() as effects:
        victim = workers.start(1)[0]
        workers.runtime.submit(NewTask("broadcast", "work", {"url": effects.url, "key": "b", "seconds": 3}))
        eventually(lambda: workers.sql("select 1 from sends where state = 'sent'"), what=workers.logs())
        workers.kill(victim)
        workers.start(1)
        assert workers.all_final() == {"completed": 1}
        assert effects.made == ["b"]


def test_a_task_that_kills_its_process_ends_in_the_dead_letters(workers: Workers) -> None:
    workers.runtime.submit(NewTask("system", "behave", {"mode": "die"}, max_attempts=2))
    first = workers.start(1)[0]
    first.wait(20)
    workers.start(1)[0].wait(30)
    workers.start(1)
    assert workers.all_final() == {"failed": 1}
    assert workers.sql("select attempts_made, error_class from dead_letters") == [(2, "WorkerDied")]


def test_a_frozen_worker_loses_its_task_and_its_late_result_changes_nothing(workers: Workers) -> None:
    frozen = workers.start(1)[0]
    workers.runtime.submit(NewTask("broadcast", "work", {"seconds": 1.0}))
    eventually(lambda: workers.statuses().get("in_progress") == 1)
    os.killpg(frozen.pid, signal.SIGSTOP)
    workers.start(1)
    assert workers.all_final() == {"completed": 1}
    before = workers.sql("select finished_at, attempt from tasks")
    os.killpg(frozen.pid, signal.SIGCONT)
    assert frozen.wait(20) != 0
    assert workers.sql("select finished_at, attempt from tasks") == before


def test_sigterm_hands_running_work_back_without_using_an_attempt(workers: Workers) -> None:
    stopping = workers.start(1, threads=2, CHRONOS_SHUTDOWN_SECONDS="3")[0]
    workers.runtime.submit(*[NewTask("broadcast", "work", {"seconds": 8.0}) for _ in range(6)])
    eventually(lambda: workers.statuses().get("in_progress") == 2, what=workers.logs())
    stopping.terminate()
    assert stopping.wait(20) == 0, workers.logs()
    assert workers.sql("select distinct status, attempt, crashes from tasks") == [("pending", 0, 0)]


def test_rabbitmq_may_die_with_everything_in_it(workers: Workers, rabbitmq: PrivateRabbitMQ) -> None:
    workers.start(2)
    workers.runtime.submit(*[NewTask("broadcast", "work", {"seconds": 0.05}) for _ in range(300)])
    eventually(lambda: workers.statuses().get("completed", 0) > 20, what=workers.logs())
    rabbitmq.kill()
    rabbitmq.start()
    assert workers.all_final(90) == {"completed": 300}
    assert workers.sql("select max(attempt) from tasks") == [(1,)]


def test_a_rabbitmq_that_hangs_loses_nothing_and_keeps_no_submit_and_no_sigterm_waiting(
    workers: Workers, rabbitmq: PrivateRabbitMQ
) -> None:
    """Its port still accepts and nothing answers. Each heartbeat is a second here, ten in production."""
    quick = {"CHRONOS_ACTORS": "tests.workload,tests.stop_points", "STOP_AT": "with quick heartbeats"}
    stopping = workers.start(2, **quick)[0]
    workers.runtime.submit(*[NewTask("broadcast", "work", {"seconds": 0.05}) for _ in range(200)])
    eventually(lambda: workers.statuses().get("completed", 0) > 20, what=workers.logs())
    rabbitmq.freeze()
    try:
        workers.runtime.submit(NewTask("system", "behave"))
        # Every connection that was open when it froze is given up.
        eventually(lambda: workers.logs().count("RabbitMQ is away") >= 5, what=workers.logs())
        stopping.terminate()
        assert stopping.wait(30) == 0, workers.logs()
        workers.runtime.submit(NewTask("post", "post_work"))
    finally:
        rabbitmq.thaw()
    assert workers.all_final(60) == {"completed": 202}, workers.logs()
    assert workers.sql("select distinct attempt, crashes from tasks") == [(1, 0)]


def test_a_deleted_queue_comes_back_and_nothing_is_lost(workers: Workers, amqp_url: str) -> None:
    workers.start(1)
    workers.runtime.submit(*[NewTask("broadcast", "work", {"seconds": 0.02}) for _ in range(300)])
    eventually(lambda: workers.statuses().get("completed", 0) > 5, what=workers.logs())
    connection = pika.BlockingConnection(pika.URLParameters(amqp_url))
    connection.channel().queue_delete("broadcast")
    connection.close()
    assert workers.all_final(90) == {"completed": 300}


def test_postgres_may_crash_and_no_live_worker_is_robbed(workers: Workers, postgres: PrivatePostgres) -> None:
    workers.start(2)
    workers.runtime.submit(*[NewTask("broadcast", "work", {"seconds": 0.3}) for _ in range(40)])
    eventually(lambda: workers.statuses().get("in_progress", 0) >= 4, what=workers.logs())
    postgres.kill()
    pass_time(5)  # the fault itself: PostgreSQL is away for two leases
    postgres.start()
    eventually(lambda: _reaches(workers), 30)
    assert workers.all_final(90) == {"completed": 40}
    assert workers.sql("select max(crashes) from tasks") == [(0,)]


def test_nothing_starts_while_the_worker_may_be_dead_for_the_others(
    workers: Workers, postgres: PrivatePostgres
) -> None:
    """Four runs are claimed; PostgreSQL freezes in the first one. What would start after 0.8 leases waits."""
    with effects_server() as effects:
        workers.start(1, threads=1)
        workers.runtime.submit(*[NewTask("broadcast", "shout", {"url": effects.url, "key": "quick"})] * 40)
        workers.all_final()
        workers.runtime.submit(
            *[NewTask("broadcast", "shout", {"url": effects.url, "key": str(n), "seconds": 1.0}) for n in range(4)]
        )
        eventually(lambda: workers.statuses().get("in_progress") == 4 and "0" in effects.made, what=workers.logs())
        postgres.freeze()
        pass_time(5)
        before_the_thaw = [key for key in effects.made if key != "quick"]
        postgres.thaw()
        assert workers.all_final() == {"completed": 44}
    assert len(before_the_thaw) < 4
    assert [key for key in effects.made if key != "quick"] == ["0", "1", "2", "3"]


def _reaches(workers: Workers) -> bool:
    try:
        return bool(workers.sql("select 1"))
    except Exception:
        return False


def test_many_copies_of_a_message_run_its_task_once(workers: Workers, amqp_url: str) -> None:
    with effects_server() as effects:
        workers.start(2)
        done = workers.runtime.submit(
            *[NewTask("broadcast", "shout", {"url": effects.url, "key": str(n), "seconds": 0.5}) for n in range(8)]
        )
        eventually(lambda: effects.made, what=workers.logs())
        connection = pika.BlockingConnection(pika.URLParameters(amqp_url))
        channel = connection.channel()
        for _ in range(50):
            for task in done:
                channel.basic_publish("", "broadcast", encode("broadcast", (task.id, "shout", None)))
        connection.close()
        assert workers.all_final() == {"completed": 8}
        assert sorted(effects.made) == [str(n) for n in range(8)]
    assert workers.sql("select distinct attempt from tasks") == [(1,)]


def test_poison_never_stops_a_queue_and_ends_in_the_dead_letters(workers: Workers, amqp_url: str) -> None:
    workers.start(1)
    workers.runtime.submit(NewTask("broadcast", "work", {"key": "first"}))
    workers.all_final()
    connection = pika.BlockingConnection(pika.URLParameters(amqp_url))
    channel = connection.channel()
    known = str(workers.sql("select id from tasks")[0][0]).encode()
    good = (
        b'{"queue_name":"broadcast","actor_name":"work","args":[],"options":{},"message_id":"1","message_timestamp":1,'
    )
    for body in (
        b"\xff\x00 not JSON",
        b"[" * 10_000,
        b'{"originalJobId": 5}',
        good.replace(b"broadcast", b"nowhere") + b'"kwargs":{"version":1,"task_id":"%s","task_name":"work"}}' % known,
        b'{"other": "shape"}',
        good + b'"kwargs":{"version":1,"task_id":"no uuid","task_name":"work"}}',
        good + b'"kwargs":{"version":1,"task_id":"%s","task_name":"work"}}' % str(uuid.uuid4()).encode(),
        good + b'"kwargs":{"version":1,"task_id":"%s","task_name":"work","x":"%s"}}' % (known, b"x" * 1_000_000),
    ):
        channel.basic_publish("", "broadcast", body)
    workers.runtime.submit(NewTask("broadcast", "work", {"key": "last"}))
    assert workers.all_final() == {"completed": 2}
    eventually(
        lambda: channel.queue_declare("broadcast.XQ", passive=True).method.message_count == 8,
        what=workers.logs(),
    )
    connection.close()
    assert housekeeping.sweep_dead_messages(workers.runtime) == {"recorded": 7, "dropped": 1}
    reasons = {row[0] for row in workers.sql("select failure_reason from dead_letters")}
    assert len(reasons) == 4
    assert housekeeping.sweep_dead_messages(workers.runtime) == {"recorded": 0, "dropped": 0}


def test_a_task_for_an_unknown_actor_waits_and_then_is_buried(workers: Workers) -> None:
    workers.start(1, CHRONOS_UNKNOWN_ACTOR_MINUTES="0.05")
    workers.runtime.submit(NewTask("broadcast", "from_the_future"))
    eventually(lambda: workers.sql("select 1 from task_events where kind = 'refused'"), what=workers.logs())
    assert workers.all_final() == {"failed": 1}
    assert workers.sql("select error_class from dead_letters") == [("UnknownActor",)]


def test_a_worker_on_an_empty_database_says_so_in_one_line(workers: Workers, postgres: PrivatePostgres) -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "dramatiq", "chronos.actors", "-p", "1", "-t", "1"],
        env={**workers.environment, "CHRONOS_DATABASE_URL": postgres.url},
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert b"chronos: the database is empty: run `chronos db upgrade`" in answer.stderr
    assert b"Traceback" not in answer.stderr
    assert answer.returncode != 0
