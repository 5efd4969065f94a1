"""Rows that ended when a test says so, and figures without a database."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from chronos.reports.activity import Activity, Cause, Counts, Durations, Queue, Sends, Step
from chronos.runtime import Runtime
from tests.telegram.conftest import sandbox, sandbox_process  # noqa: F401

NOON = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
End = Callable[..., uuid.UUID]


@pytest.fixture
def end(runtime: Runtime) -> End:
    """A task that ended at a moment, with its id of that time, and its sends."""

    def end(
        finished_at: datetime,
        status: str = "completed",
        *,
        queue: str = "post",
        seconds: float | None = 1.0,
        name: str = "some_task",
        error: str | None = None,
        error_class: str | None = None,
        sends: dict[str, str] | None = None,
        phase: str | None = None,
    ) -> uuid.UUID:
        id_ = uuid.UUID(int=(int(finished_at.timestamp() * 1000) << 80) | uuid.uuid4().int & (1 << 80) - 1)
        if status in ("failed", "unknown"):
            error = error or "it did not work"
        with runtime.database.transaction() as connection:
            connection.execute(
                text(
                    "insert into tasks (id, queue, task_name, status, attempt, max_attempts, started_at, finished_at,"
                    " error_message, error_class, phase) values (:id, :queue, :name, :status, 1, 5,"
                    " cast(:finished as timestamptz) - :seconds * interval '1 second', :finished, :error, :class,"
                    " :phase)"
                ),
                {"id": id_, "queue": queue, "name": name, "status": status, "seconds": seconds, "phase": phase,
                 "finished": finished_at, "error": error, "class": error_class},
            )  # fmt: skip
            for key, state in (sends or {}).items():
                connection.execute(
                    text("insert into sends (task_id, key, state, created_at) values (:id, :key, :state, :at)"),
                    {"id": id_, "key": key, "state": state, "at": finished_at},
                )
        return id_

    return end


@pytest.fixture(autouse=True)
def its_own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """matplotlib builds its list of fonts once per folder, so all tests of a run share one."""
    folder = tmp_path_factory.getbasetemp() / "matplotlib"
    monkeypatch.setenv("MPLCONFIGDIR", str(folder))
    yield folder


def figures(**changed: Any) -> Activity:
    """A week's figures, complete and small."""
    first = date(2026, 11, 12)
    steps = [
        Step(start=datetime(2026, 11, 12 + day, tzinfo=UTC), counts=Counts(completed=100 + day, failed=day))
        for day in range(7)
    ]  # fmt: skip
    facts: dict[str, Any] = {
        "period": "7d", "first": first, "last": first + timedelta(days=6), "zone": "Europe/Moscow",
        "made_at": datetime(2026, 11, 18, 12, tzinfo=UTC), "unit": "day",
        "counts": Counts(completed=721, failed=21), "before": Counts(completed=95, failed=5), "steps": steps,
        "queues": [
            Queue(name="post", counts=Counts(completed=700, failed=21), durations=Durations(median=0.4, p95=1.2)),
            Queue(name="report", counts=Counts(completed=21), durations=Durations(median=95.0, p95=200.0)),
        ],
        "causes": [
            Cause(queue="post", task_name="publish", error_class="PermanentError",
                  words="the user has blocked the bot", number=21),
        ],
        "sends": Sends(sent=700, not_sent=21, unknown=2), "waiting_letters": 3, "sample": False,
    }  # fmt: skip
    return Activity(**{**facts, **changed})


NOTHING = figures(
    counts=Counts(), before=Counts(), steps=[], queues=[], causes=[], sends=Sends(), waiting_letters=0
)  # fmt: skip
