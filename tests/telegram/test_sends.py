"""Messages of tasks, by real workers against the real sandbox: at most once, and what is in doubt a person decides."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text

from chronos.engine import sends, tasks
from chronos.models.new_task import NewTask
from chronos.telegram.reasons import SENTENCES
from telegram_sandbox.client import Sandbox
from tests.processes import Workers, eventually
from tests.telegram.conftest import CANARY

USER = 1003


class Sending:
    """Workers with a bot that user1 has started."""

    def __init__(self, workers: Workers, sandbox: Sandbox) -> None:
        self.workers, self.sandbox = workers, sandbox
        self.bot = uuid.uuid4().int % 10**9 + 10**8
        sandbox.bot(self.bot)
        sandbox.start(as_="user1", bot=self.bot)
        workers.environment |= {
            "CHRONOS_ACTORS": "tests.telegram.actors",
            "CHRONOS_BOT_TOKEN": f"{self.bot}:{CANARY}",
            "CHRONOS_TELEGRAM_URL": sandbox.url,
        }

    def submit(self, *texts: str, actor: str = "shout", chat: int = USER, **params: Any) -> uuid.UUID:
        # Without a chat of its own, so that no notice comes to where its messages go.
        task = NewTask("post", actor, {"chat": chat, "texts": texts, **params}, bot_id=self.bot)
        return self.workers.runtime.submit(task)[0].id

    def becomes(self, status: str) -> Any:
        def look() -> Any:
            return self.workers.sql("select status, attempt, error_message, result_payload from tasks")

        eventually(lambda: look()[0][0] == status, what=f"{status}; {look()}\n{self.workers.logs()[-3000:]}")
        return look()[0]

    def arrived(self) -> list[str]:
        """What the bot's messages in the chat are, by the sandbox's word."""
        return [
            message["text"]
            for message in self.sandbox.messages(as_="user1", bot=self.bot)
            if message["from"]["id"] == self.bot
        ]

    def decide(self, verb: Callable[..., Any], id_: uuid.UUID, key: str) -> Any:
        with self.workers.runtime.database.statement() as connection:
            return verb(connection, id_, key, "user 1003")

    def unknown(self, id_: uuid.UUID) -> list[tuple[str, int | None]]:
        with self.workers.runtime.database.statement() as connection:
            return sends.unknown(connection, id_)


@pytest.fixture
def sending(embedded: Workers, sandbox: Sandbox) -> Sending:
    return Sending(embedded, sandbox)


@pytest.mark.parametrize("actor", ["shout", "whisper"])
def test_a_message_is_sent_and_its_id_kept(sending: Sending, actor: str) -> None:
    sending.workers.start(1)
    sending.submit("one", "two", actor=actor)
    _, _, _, result = sending.becomes("completed")
    assert sending.arrived() == ["one", "two"]
    rows = sending.workers.sql("select key, state, chat, message_id from sends order by message_id")
    assert rows == [("one", "sent", USER, result["ids"][0]), ("two", "sent", USER, result["ids"][1])]


def test_a_second_run_sends_nothing_again_and_edits_what_the_first_one_sent(sending: Sending) -> None:
    sending.workers.start(1)
    sending.submit("one", "two", fail_first=True, edit="edited")
    assert sending.becomes("completed")[1] == 2
    assert sending.arrived() == ["edited", "two"]


def test_a_429_uses_no_attempt(sending: Sending) -> None:
    sending.sandbox.fault("429", next=1, retry_after=1, bot=sending.bot)
    sending.workers.start(1)
    sending.submit("one")
    assert sending.becomes("completed")[1] == 1
    assert sending.arrived() == ["one"]
    assert sending.workers.sql("select kind, detail from task_events") == [("later", SENTENCES["busy"])]
    assert not any(entry.get("inside_retry_after") for entry in sending.sandbox.log(bot=sending.bot))


def test_a_blocked_bot_fails_the_task_in_words_for_people(sending: Sending) -> None:
    sending.sandbox.block("user1", bot=sending.bot)
    sending.workers.start(1)
    sending.submit("one")
    assert sending.becomes("failed")[2] == SENTENCES["blocked"]
    assert sending.workers.sql("select state from sends") == [("not_sent",)]


def test_a_bot_whose_token_is_refused_keeps_its_tasks_pending(sending: Sending) -> None:
    sending.sandbox.bot(sending.bot, revoked=True)
    sending.workers.start(1)
    sending.submit("one")
    eventually(lambda: sending.workers.sql("select 1 from task_events where kind = 'later'"))
    assert sending.workers.sql("select status, attempt from tasks") == [("pending", 0)]
    assert sending.workers.sql("select stopped_why from bots") == [(SENTENCES["stopped"],)]
    assert sending.workers.sql("select state from sends") == [("not_sent",)]


def test_a_task_of_another_bot_waits_for_a_process_that_has_its_token(sending: Sending) -> None:
    sending.workers.start(1)
    sending.bot = 5
    sending.submit("one")
    eventually(lambda: sending.workers.sql("select 1 from task_events where kind = 'later'"))
    assert sending.workers.sql("select status, attempt from tasks") == [("pending", 0)]
    assert sending.workers.sql("select detail from task_events") == [(SENTENCES["other bot"],)]


def test_a_cut_connection_ends_as_unknown(sending: Sending) -> None:
    sending.sandbox.fault("reset_after", next=1, bot=sending.bot)
    sending.workers.start(1)
    id_ = sending.submit("one")
    assert SENTENCES["unsure"] in sending.becomes("unknown")[2]
    assert sending.unknown(id_) == [("one", USER)]
    assert sending.arrived() == ["one"]


def test_a_worker_that_is_killed_while_telegram_answers_leaves_the_message_in_doubt(sending: Sending) -> None:
    sending.sandbox.fault("hang", next=1, bot=sending.bot, stored=True)
    sending.workers.start(1)
    sending.submit("one")
    eventually(sending.arrived)
    os.killpg(sending.workers.processes[0].pid, signal.SIGKILL)
    sending.workers.start(1)
    sending.becomes("unknown")
    assert sending.arrived() == ["one"]


def test_a_worker_that_is_killed_while_it_waits_for_its_turn_leaves_nothing_in_doubt(sending: Sending) -> None:
    sending.workers.start(1)
    hold = "insert into budgets (key, held_until) values (:key, clock_timestamp() + interval '4 seconds')"
    with sending.workers.runtime.database.statement() as connection:
        connection.execute(text(hold), {"key": f"bot:{sending.bot}"})
    sending.submit("one")
    eventually(lambda: sending.workers.sql("select 1 from tasks where status = 'in_progress'"))
    os.killpg(sending.workers.processes[0].pid, signal.SIGKILL)
    assert sending.workers.sql("select * from sends") == []
    sending.workers.start(1)
    sending.becomes("completed")
    assert sending.arrived() == ["one"]


# ------------------------------------------------------------------------------- what a person decides


def test_send_again_repeats_exactly_one_message(sending: Sending) -> None:
    """Two are in doubt, neither had arrived. One is sent again: the other stays in doubt, and is told again."""
    sending.sandbox.fault("reset_before", next=2, bot=sending.bot)
    sending.workers.start(1)
    id_ = sending.submit("one", "two", go_on=True)
    sending.becomes("unknown")
    assert [key for key, _ in sending.unknown(id_)] == ["one", "two"]
    assert sending.decide(tasks.send_again, id_, "two") == "pending"
    assert sending.decide(tasks.send_again, id_, "two") is None, "a second tap"
    eventually(lambda: sending.arrived() == ["two"])
    assert "'one' may have been made" in sending.becomes("unknown")[2]
    assert [key for key, _ in sending.unknown(id_)] == ["one"]
    assert sending.decide(tasks.send_again, id_, "one") == "pending"
    sending.becomes("completed")
    assert sending.arrived() == ["two", "one"]


def test_it_arrived_marks_exactly_one_message_and_the_run_goes_on_behind_it(sending: Sending) -> None:
    sending.sandbox.fault("reset_after", next=2, bot=sending.bot)
    sending.workers.start(1)
    id_ = sending.submit("one", "two", go_on=True)
    sending.becomes("unknown")
    assert sending.decide(tasks.go_on, id_, "one") == "unknown"
    assert sending.decide(tasks.go_on, id_, "one") is None, "a second tap"
    assert [key for key, _ in sending.unknown(id_)] == ["two"]
    assert sending.decide(tasks.go_on, id_, "two") == "pending"
    assert sending.becomes("completed")[3] == {"ids": [None, None]}
    assert sending.arrived() == ["one", "two"]


def test_it_arrived_lets_the_messages_behind_it_be_sent(sending: Sending) -> None:
    sending.sandbox.fault("reset_after", next=1, bot=sending.bot)
    sending.workers.start(1)
    id_ = sending.submit("one", "two")
    sending.becomes("unknown")
    assert sending.arrived() == ["one"]
    assert sending.decide(tasks.go_on, id_, "one") == "pending"
    sending.becomes("completed")
    assert sending.arrived() == ["one", "two"]


def test_only_what_is_in_doubt_can_be_decided(sending: Sending) -> None:
    sending.workers.start(1)
    id_ = sending.submit("one")
    sending.becomes("completed")
    for verb in (tasks.send_again, tasks.go_on):
        assert sending.decide(verb, id_, "one") is None
        assert sending.decide(verb, id_, "no such key") is None
    assert sending.workers.sql("select status from tasks") == [("completed",)]
