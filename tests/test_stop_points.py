"""A worker that dies or stumbles at an exact line: the table of faults, line by line."""

from __future__ import annotations

import subprocess

import pytest

from chronos.models.new_task import NewTask
from tests.processes import Effects, Workers, effects_server, eventually

pytestmark = pytest.mark.rabbitmq


def submit(workers: Workers, effects: Effects, count: int) -> list[str]:
    keys = [str(number) for number in range(count)]
    workers.runtime.submit(*[NewTask("broadcast", "work", {"url": effects.url, "key": key}) for key in keys])
    return keys


def start_at(workers: Workers, point: str) -> subprocess.Popen[bytes]:
    return workers.start(1, STOP_AT=point, CHRONOS_ACTORS="tests.workload,tests.stop_points")[0]


def test_a_kill_before_the_claim_commits_counts_no_attempt(workers: Workers) -> None:
    with effects_server() as effects:
        keys = submit(workers, effects, 4)
        assert start_at(workers, "before the claim commits").wait(30) != 0
        assert workers.sql("select distinct status, attempt, crashes from tasks") == [("pending", 0, 0)]
        workers.start(1)
        assert workers.all_final() == {"completed": 4}
        assert sorted(effects.made) == keys
        assert workers.sql("select distinct attempt, crashes from tasks") == [(1, 0)]


def test_a_kill_between_claim_and_ack_runs_nothing_twice(workers: Workers) -> None:
    with effects_server() as effects:
        keys = submit(workers, effects, 4)
        assert start_at(workers, "before the ack").wait(30) != 0
        assert "in_progress" in workers.statuses()
        workers.start(1)
        assert workers.all_final() == {"completed": 4}
        assert sorted(effects.made) == keys


def test_a_kill_before_the_final_status_repeats_no_effect(workers: Workers) -> None:
    with effects_server() as effects:
        keys = submit(workers, effects, 3)
        assert start_at(workers, "before the final status").wait(30) != 0
        assert effects.made
        workers.start(1)
        assert set(workers.all_final()) <= {"completed", "unknown"}
        assert len(effects.made) == len(set(effects.made))
        # An effect whose result had been stored is known; only one that was on its way at that moment is not.
        unknown = workers.statuses().get("unknown", 0)
        assert workers.sql("select count(*) from sends where state = 'unknown'") == [(unknown,)]
        assert unknown < len(keys) and len(set(keys) - set(effects.made)) <= unknown


@pytest.mark.parametrize(
    ("point", "handed_back"),
    [
        ("with a claimed batch in the buffer", True),  # by the consumer that is closed
        ("with the claim's answer lost", False),  # the same token asks again
        ("with a claim forgotten", True),  # by the beat's audit
    ],
)
def test_what_a_stumbling_consumer_had_claimed_runs_once(workers: Workers, point: str, handed_back: bool) -> None:
    start_at(workers, point)
    workers.runtime.submit(*[NewTask("broadcast", "work") for _ in range(6)])
    assert workers.all_final() == {"completed": 6}, workers.logs()
    assert workers.sql("select distinct attempt, crashes from tasks") == [(1, 0)]
    assert workers.sql("select count(*) > 0 from task_events where kind = 'handed back'") == [(handed_back,)]


def test_an_intent_whose_answer_was_lost_is_the_same_intent(workers: Workers) -> None:
    with effects_server() as effects:
        start_at(workers, "with the intent's answer lost")
        keys = submit(workers, effects, 3)
        assert workers.all_final() == {"completed": 3}
        assert sorted(effects.made) == keys


def test_a_run_that_hangs_costs_its_process_and_nobody_elses_attempt(workers: Workers) -> None:
    hung = workers.start(1, threads=2, CHRONOS_HUNG_SECONDS="1")[0]
    workers.runtime.submit(NewTask("broadcast", "hang_in_c", max_attempts=1))
    eventually(lambda: workers.statuses().get("in_progress") == 1, what=workers.logs())
    assert hung.wait(30) != 0
    workers.runtime.submit(NewTask("broadcast", "work", {"key": "innocent"}))
    workers.start(1)
    assert workers.all_final() == {"failed": 1, "completed": 1}
    assert workers.sql("select task_name, crashes from tasks order by task_name") == [("hang_in_c", 1), ("work", 0)]
    assert workers.sql("select error_class from dead_letters") == [("WorkerDied",)]


def test_rolling_restarts_under_load_lose_and_double_nothing(workers: Workers) -> None:
    with effects_server() as effects:
        keys: list[str] = []
        for process in workers.start(2):
            load = [str(number) for number in range(len(keys), len(keys) + 400)]
            keys += load
            workers.runtime.submit(
                *[NewTask("broadcast", "work", {"url": effects.url, "key": key, "seconds": 0.02}) for key in load]
            )
            eventually(lambda: set(effects.made) & set(load), what=workers.logs())  # noqa: B023 -- called here
            process.terminate()
            assert process.wait(30) == 0, workers.logs()
            workers.start(1)
        assert workers.all_final() == {"completed": len(keys)}
        assert sorted(effects.made) == sorted(keys)
        assert workers.sql("select distinct attempt, crashes from tasks") == [(1, 0)]
