"""What each middleware promises, in real workers."""

from __future__ import annotations

import json

import pika
import pytest

from chronos import housekeeping
from chronos.models.new_task import NewTask
from tests.processes import Workers, eventually


@pytest.mark.rabbitmq
def test_what_failed_for_good_is_shown_in_the_dead_queue_and_swept_from_it(workers: Workers, amqp_url: str) -> None:
    workers.start(1)
    task = workers.runtime.submit(NewTask("system", "behave", {"mode": "permanent", "key": "k"}))[0]
    assert workers.all_final() == {"failed": 1}
    connection = pika.BlockingConnection(pika.URLParameters(amqp_url))
    channel = connection.channel()
    method, _, body = eventually(lambda: _dead(channel), what=workers.logs())
    channel.basic_nack(method.delivery_tag, requeue=True)
    record = json.loads(body)
    assert record.pop("failedAt").startswith("20")
    assert record == {
        "originalQueue": "system",
        "originalJobId": str(task.id),
        "originalJobData": {"mode": "permanent", "key": "k"},
        "failureReason": "never",
        "attemptsMade": 1,
    }
    eventually(lambda: housekeeping.sweep_dead_messages(workers.runtime) == {"recorded": 0, "dropped": 1})
    assert _dead(channel) is None
    connection.close()
    assert workers.sql("select count(*) from dead_letters") == [(1,)]


@pytest.mark.rabbitmq
def test_an_error_without_words_breaks_no_consumer(workers: Workers, amqp_url: str) -> None:
    """Its own __str__ fails while its copy for `.XQ` is made."""
    workers.start(1)
    workers.runtime.submit(NewTask("system", "behave", {"mode": "bad error"}, max_attempts=1))
    assert workers.all_final() == {"failed": 1}
    connection = pika.BlockingConnection(pika.URLParameters(amqp_url))
    channel = connection.channel()
    _, _, body = eventually(lambda: _dead(channel), what=workers.logs())
    connection.close()
    assert json.loads(body)["failureReason"] == "UnspeakableError"


def _dead(channel: pika.adapters.blocking_connection.BlockingChannel) -> tuple[object, ...] | None:
    found = channel.basic_get("system.XQ")
    return None if found[0] is None else found


@pytest.mark.rabbitmq
def test_a_message_that_nobody_claimed_runs_nothing(workers: Workers) -> None:
    workers.start(1, STOP_AT="with messages past the claim", CHRONOS_ACTORS="tests.workload,tests.stop_points")
    workers.runtime.submit(NewTask("broadcast", "work"))
    eventually(lambda: "nobody claimed" in workers.logs(), what=workers.logs())
    assert workers.sql("select status, attempt from tasks") == [("pending", 0)]


def test_the_log_of_a_failed_run_has_the_fields_that_people_search_by(embedded: Workers) -> None:
    log_file = embedded.folder / "structured.log"
    embedded.start(1, CHRONOS_LOG_FORMAT="json", CHRONOS_LOG_FILE=str(log_file))
    task = embedded.runtime.submit(NewTask("system", "leak", {"token": "12345:SECRET", "chat": 7}))[0]
    embedded.all_final()
    line = eventually(
        lambda: next((line for line in log_file.read_text().splitlines() if "failed" in line), None),
        what=log_file.read_text(),
    )
    fields = json.loads(line)
    assert fields["level"] == "error" and fields["time"].startswith("20")
    assert fields["msg"] == f"[system] Job {task.id} failed"
    assert (fields["queue"], fields["jobId"], fields["attemptsMade"]) == ("system", str(task.id), 1)
    assert fields["error"] == "it leaks" and "PermanentError: it leaks" in fields["stack"]
    assert fields["jobData"] == {"token": "***", "chat": 7}
    assert "12345:SECRET" not in log_file.read_text()


def test_a_run_over_its_time_limit_is_stopped_and_counts_as_an_attempt(embedded: Workers) -> None:
    embedded.start(1)
    embedded.runtime.submit(NewTask("system", "too_slow", max_attempts=1))
    assert embedded.all_final() == {"failed": 1}
    assert embedded.sql("select error_class, attempt from tasks") == [("TimeLimitExceeded", 1)]


def test_the_hook_hears_of_every_return_to_the_queue(embedded: Workers) -> None:
    heard = embedded.folder / "heard"
    embedded.start(1, REQUEUED_FILE=str(heard))
    embedded.runtime.submit(NewTask("system", "fussy"))
    assert embedded.all_final() == {"completed": 1}
    eventually(lambda: heard.exists() and heard.read_text() == "later\nretry\n")


@pytest.mark.rabbitmq
@pytest.mark.parametrize("queue", ["post", "delivery"])
def test_a_concurrency_limit_holds_over_processes(workers: Workers, queue: str) -> None:
    """post: 10 at once by its policy; single_work on delivery: one at once by its own narrowing."""
    workers.start(3, threads=8)
    name, most, count = {"post": ("post_work", 10, 60), "delivery": ("single_work", 1, 6)}[queue]
    workers.runtime.submit(*[NewTask(queue, name, {"seconds": 0.2}) for _ in range(count)])
    assert workers.all_final() == {"completed": count}
    [(peak,)] = workers.sql(
        "select max((select count(*) from tasks o where o.started_at <= t.started_at and o.finished_at > t.started_at))"
        " from tasks t"
    )
    assert peak == most
    assert workers.sql("select distinct attempt from tasks") == [(1,)]


@pytest.mark.rabbitmq
def test_a_result_that_cannot_be_stored_stops_no_queue_that_waits_for_a_limit(workers: Workers) -> None:
    workers.start(1)
    half = workers.runtime.submit(*[NewTask("delivery", "half_a_letter") for _ in range(3)])
    whole = workers.runtime.submit(*[NewTask("delivery", "single_work", {"seconds": 0.01}) for _ in range(3)])
    assert workers.all_final() == {"failed": 3, "completed": 3}
    assert len(half) == len(whole) == 3
    [(why,)] = workers.sql("select distinct error_message from tasks where status = 'failed'")
    assert "result" in why
