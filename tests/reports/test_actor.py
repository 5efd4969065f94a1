"""The report actor by real workers against the real sandbox: what was sent is what is stored."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import uuid
from typing import Any

import psycopg
import pytest

from chronos.actor import checked_params
from chronos.engine import tasks
from chronos.errors import BadInput
from chronos.models.new_task import NewTask
from chronos.models.params import Report
from chronos.reports.activity import Activity
from chronos.reports.charts import chart_of
from chronos.reports.documents import pdf_of
from chronos.reports.sample import put_sample
from telegram_sandbox.client import Sandbox
from tests.processes import Workers, eventually
from tests.telegram.conftest import CANARY

USER = 1003


class Reports:
    """Workers with a bot that user1 has started, and a sample to report."""

    def __init__(self, workers: Workers, sandbox: Sandbox, font_folder: str) -> None:
        self.workers, self.sandbox = workers, sandbox
        self.bot = uuid.uuid4().int % 10**9 + 10**8
        sandbox.bot(self.bot)
        sandbox.start(as_="user1", bot=self.bot)
        workers.environment |= {
            "CHRONOS_BOT_TOKEN": f"{self.bot}:{CANARY}",
            "CHRONOS_TELEGRAM_URL": sandbox.url,
            "MPLCONFIGDIR": font_folder,
        }
        with workers.runtime.database.transaction() as connection:
            put_sample(connection)

    def submit(self, chat: int | None = USER, **params: Any) -> uuid.UUID:
        facts: dict[str, Any] = {} if chat is None else {"bot_id": self.bot, "chat": chat}
        asked = {"period": "7d", "language": "ru", "zone": "Europe/Moscow", **params}
        new = NewTask("report", "report", checked_params("report", Report, asked), **facts)
        return self.workers.runtime.submit(new)[0].id

    def becomes(self, id_: uuid.UUID, status: str) -> Any:
        def look() -> Any:
            statement = "select status, attempt, error_message, result_payload, progress from tasks where id = :id"
            return self.workers.sql(statement, id=id_)[0]

        eventually(lambda: look().status == status, 60, f"{status}; {look()[:3]}\n{self.workers.logs()[-3000:]}")
        return look()

    def arrived(self, chat: str | None = None) -> list[Any]:
        messages = self.sandbox.messages(as_="user1", bot=self.bot)
        return [message for message in messages if message["from"]["id"] == self.bot]


@pytest.fixture
def reports(embedded: Workers, sandbox: Sandbox, its_own_folder: Any) -> Reports:
    return Reports(embedded, sandbox, str(its_own_folder))


def test_a_report_for_a_chat_is_a_chart_with_its_text(reports: Reports) -> None:
    reports.workers.start(1)
    result = reports.becomes(reports.submit(), "completed").result_payload
    (message,) = reports.arrived()
    assert message["caption"] == result["text"] and "пример данных" in result["text"]
    assert message["photo"] and result["files"]["chart"]["message_id"] == message["message_id"]
    made = chart_of(Activity.model_validate_json(json.dumps(result["activity"])), "ru")
    stored = result["files"]["chart"]
    assert (stored["bytes"], stored["sha256"]) == (len(made), hashlib.sha256(made).hexdigest())
    assert reports.workers.sql("select key, state from sends where key in ('chart', 'pdf')") == [("chart", "sent")]


def test_the_pdf_of_a_report_says_what_its_chart_said(reports: Reports) -> None:
    reports.workers.start(1)
    first = reports.submit()
    shown = reports.becomes(first, "completed").result_payload
    result = reports.becomes(reports.submit(of=str(first), parts=["pdf"]), "completed").result_payload
    assert result["activity"] == shown["activity"]
    message = reports.arrived()[-1]
    assert message["document"]["file_name"].endswith(".pdf") and message["caption"] == result["text"]
    made = pdf_of(Activity.model_validate_json(json.dumps(result["activity"])), "ru")
    assert (message["document"]["file_size"], result["files"]["pdf"]["sha256"]) == (
        len(made),
        hashlib.sha256(made).hexdigest(),
    )


def test_chart_and_pdf_in_one_task_are_two_messages(reports: Reports) -> None:
    reports.workers.start(1)
    result = reports.becomes(reports.submit(parts=["chart", "pdf"]), "completed").result_payload
    photo, document = reports.arrived()
    assert "caption" in photo and "caption" not in document
    assert [result["files"][part]["message_id"] for part in ("chart", "pdf")] == [
        photo["message_id"],
        document["message_id"],
    ]


def test_a_report_without_a_chat_is_made_and_stored(reports: Reports) -> None:
    reports.workers.start(1)
    result = reports.becomes(reports.submit(chat=None, parts=["chart", "pdf"]), "completed").result_payload
    assert result["activity"]["counts"]["completed"] > 1000
    assert all(facts["bytes"] > 10_000 and "message_id" not in facts for facts in result["files"].values())
    assert reports.arrived() == []


def test_the_report_of_another_chat_cannot_be_made_again(reports: Reports) -> None:
    reports.workers.start(1)
    first = reports.submit(chat=None)
    reports.becomes(first, "completed")
    error = reports.becomes(reports.submit(of=str(first), parts=["pdf"]), "failed").error_message
    assert error == "the report to make again is not there any more: ask for a new one"
    assert reports.arrived() == []


def test_a_report_whose_worker_dies_while_it_waits_for_its_answer_is_not_sent_twice(reports: Reports) -> None:
    """The photo may have arrived: nobody sends it again by himself."""
    reports.sandbox.fault("slow", seconds=30, method="sendPhoto", bot=reports.bot)
    (process,) = reports.workers.start(1)
    id_ = reports.submit()
    statement = "select count(*) from sends where key = 'chart' and state = 'intent'"
    eventually(lambda: reports.workers.sql(statement)[0][0] == 1, 60, f"an intent\n{reports.workers.logs()[-3000:]}")
    os.killpg(process.pid, signal.SIGKILL)
    reports.sandbox.clear_faults()
    reports.workers.start(1)
    assert reports.becomes(id_, "unknown").attempt == 1
    assert len(reports.arrived()) <= 1


def test_a_second_run_sends_the_figures_of_the_first(reports: Reports) -> None:
    """The chart has been sent, the PDF has not: what the PDF and the result say is what the chart said."""
    reports.sandbox.fault("429", method="sendDocument", bot=reports.bot, next=1, retry_after=1)
    reports.workers.start(1)
    id_ = reports.submit(parts=["chart", "pdf"])
    eventually(lambda: len(reports.arrived()) == 1, 60, "the chart")
    made_at = reports.workers.sql("select result_payload #>> '{activity,made_at}' from tasks where id = :i", i=id_)[0][
        0
    ]
    found = reports.becomes(id_, "completed")
    assert found.result_payload["activity"]["made_at"] == made_at
    assert len(reports.arrived()) == 2


def test_a_cancelled_report_stops_between_its_steps(reports: Reports) -> None:
    """It waits for its turn to be cancelled: the statement that gathers is held by a lock."""
    reports.workers.start(1)
    # A connection of our own: those of the engine may not idle in a transaction for longer than a lease.
    with psycopg.connect(reports.workers.environment["CHRONOS_DATABASE_URL"]) as connection:
        connection.execute("lock table pruned_activity in access exclusive mode")
        id_ = reports.submit()
        eventually(lambda: reports.workers.statuses().get("in_progress") == 1, 30, "it runs")
        with reports.workers.runtime.database.statement() as another:
            assert tasks.cancel(another, id_, "user 1003") == "in_progress"
        note = "select progress ->> 'note' from tasks where id = :i"
        eventually(lambda: reports.workers.sql(note, i=id_) == [("считаю",)], 10, "it says what it does")
        # The second beat after the request: with the first one its worker has seen it.
        beaten = (
            "select bool_and(beat_at > cancel_requested_at + interval '1 second') from workers, tasks"
            " where tasks.id = :i and not dead"
        )
        eventually(lambda: reports.workers.sql(beaten, i=id_)[0][0], 10, "a beat")
    reports.becomes(id_, "cancelled")
    assert reports.arrived() == []


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"period": "soon"}, "period: 'soon' is no period: write today, 7d"),
        ({"zone": "Moscow"}, "zone: 'Moscow' is no time zone"),
        ({"language": "de"}, "language: input should be 'ru' or 'en'"),
        ({"parts": []}, "parts: tuple should have at least 1 item"),
        ({"parts": ["video"]}, "parts.0: input should be 'chart' or 'pdf'"),
        ({"of": "0192"}, "of: input should be a valid UUID"),
        ({"perid": "7d"}, "perid: extra inputs are not permitted"),
    ],
)
def test_wrong_params_fail_at_submit_in_one_line(params: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput) as told:
        checked_params("report", Report, params)
    assert words in str(told.value) and "\n" not in str(told.value)
