"""The tasks table, its timeline, and the contracts of the first seed (TaskQueueMessage, TaskStateRecord)."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict
from sqlalchemy import CheckConstraint, Index, SmallInteger, Text, text
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP, UUID
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.types import BigInteger, Float

from chronos.models.base import Base
from chronos.models.moves import FINAL, TaskStatus

MESSAGE_VERSION = 1
HIGHEST_PRIORITY, DEFAULT_PRIORITY, LOWEST_PRIORITY = 1, 5, 9

#: Characters of an id that hold its time to the millisecond: 0192f1c8-1a2b. Fewer would soon name later tasks too.
SHORTEST_ID = 13


def short_id(id_: uuid.UUID) -> str:
    """As people see it in a chat; it works in every command."""
    return str(id_)[:SHORTEST_ID]


#: Actors of queue `system` that nobody asked for by name: no report counts them, no list shows them unasked.
ROUTINE = ("keep_house", "tell", "alarm")


class TaskQueueMessage(BaseModel):
    """What travels through RabbitMQ: a wake-up. The params stay in the row, so a message never holds a secret."""

    model_config = ConfigDict(extra="ignore", strict=False)

    version: Literal[1] = 1
    task_id: uuid.UUID
    user_id: int | None = None
    task_name: str


class TaskStateRecord(BaseModel):
    """The state of one task as every front door shows it."""

    model_config = ConfigDict(from_attributes=True)

    id: uuid.UUID
    user_id: int | None
    bot_id: int | None
    chat: int | None
    queue: str
    task_name: str
    params: dict[str, Any]
    status: TaskStatus
    phase: str | None
    priority: int
    attempt: int
    max_attempts: int
    crashes: int
    worker: uuid.UUID | None
    run_at: datetime
    wake_at: datetime
    expires_at: datetime | None
    cancel_requested_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    idempotency_key: str | None
    schedule_id: uuid.UUID | None
    progress: dict[str, Any] | None
    result_payload: Any
    error_message: str | None
    error_class: str | None
    error_traceback: str | None
    created_at: datetime
    updated_at: datetime


_clock = text("clock_timestamp()")
_statuses = ", ".join(f"'{status}'" for status in TaskStatus)
_finals = ", ".join(f"'{status}'" for status in sorted(FINAL))


class Task(Base):
    __tablename__ = "tasks"

    id: Mapped[uuid.UUID] = mapped_column(UUID, primary_key=True)
    user_id: Mapped[int | None] = mapped_column(BigInteger)
    bot_id: Mapped[int | None] = mapped_column(BigInteger)
    chat: Mapped[int | None] = mapped_column(BigInteger)
    queue: Mapped[str] = mapped_column(Text)
    task_name: Mapped[str] = mapped_column(Text)
    params: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default=text("'{}'"))
    status: Mapped[str] = mapped_column(Text, server_default=TaskStatus.PENDING)
    phase: Mapped[str | None] = mapped_column(Text)
    priority: Mapped[int] = mapped_column(SmallInteger, server_default=text(str(DEFAULT_PRIORITY)))
    attempt: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    max_attempts: Mapped[int] = mapped_column(SmallInteger)
    crashes: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    worker: Mapped[uuid.UUID | None] = mapped_column(UUID)
    token: Mapped[uuid.UUID | None] = mapped_column(UUID)
    run_at: Mapped[datetime] = mapped_column(TIMESTAMP(timezone=True), server_default=_clock)
    wake_at: Mapped[datetime] = mapped_column(TIMESTAMP(timezone=True), server_default=_clock)
    expires_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    cancel_requested_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    started_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    finished_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    idempotency_key: Mapped[str | None] = mapped_column(Text)
    schedule_id: Mapped[uuid.UUID | None] = mapped_column(UUID)
    progress: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    result_payload: Mapped[Any | None] = mapped_column(JSONB)
    error_message: Mapped[str | None] = mapped_column(Text)
    error_class: Mapped[str | None] = mapped_column(Text)
    error_traceback: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(TIMESTAMP(timezone=True), server_default=_clock)
    updated_at: Mapped[datetime] = mapped_column(TIMESTAMP(timezone=True), server_default=_clock)

    __table_args__ = (
        CheckConstraint(f"status in ({_statuses})", name="status"),
        CheckConstraint(f"priority between {HIGHEST_PRIORITY} and {LOWEST_PRIORITY}", name="priority"),
        CheckConstraint("attempt >= 0 and attempt <= max_attempts and crashes >= 0", name="counts"),
        CheckConstraint("status <> 'pending' or (token is null and finished_at is null)", name="pending"),
        CheckConstraint(
            "status <> 'in_progress' or (worker is not null and token is not null"
            " and started_at is not null and finished_at is null and attempt > 0)",
            name="in_progress",
        ),
        CheckConstraint(f"status not in ({_finals}) or (token is null and finished_at is not null)", name="final"),
        CheckConstraint("status not in ('failed', 'unknown') or error_message is not null", name="error"),
        # The three loops read these and nothing else; a finished row is in none of them.
        Index("tasks_due_idx", "queue", "priority", "wake_at", postgresql_where=text("status = 'pending'")),
        Index("tasks_running_idx", "queue", "worker", postgresql_where=text("status = 'in_progress'")),
        Index(
            "tasks_expiring_idx",
            "expires_at",
            postgresql_where=text("status = 'pending' and expires_at is not null"),
        ),
        Index("tasks_trouble_idx", "id", postgresql_where=text("status in ('failed', 'unknown')")),
        # Partial, so that a task without key or user pays nothing for them.
        Index(
            "tasks_idempotency_key_idx",
            "idempotency_key",
            unique=True,
            postgresql_where=text("idempotency_key is not null"),
        ),
        Index("tasks_user_idx", "user_id", "id", postgresql_where=text("user_id is not null")),
        # For reports: a few kilobytes that spare "today" the pages of the other days.
        Index("tasks_finished_idx", "finished_at", postgresql_using="brin"),
        {
            "postgresql_with": {
                "fillfactor": "70",
                "autovacuum_vacuum_scale_factor": "0.01",
                "autovacuum_vacuum_threshold": "5000",
                "autovacuum_vacuum_cost_delay": "0",
                "autovacuum_analyze_scale_factor": "0.02",
            }
        },
    )


class TaskEvent(Base):
    """The exceptions of a task's life; its routine moments are columns of its row."""

    __tablename__ = "task_events"

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=True)
    task_id: Mapped[uuid.UUID] = mapped_column(UUID)
    at: Mapped[datetime] = mapped_column(TIMESTAMP(timezone=True), server_default=_clock)
    kind: Mapped[str] = mapped_column(Text)
    detail: Mapped[str] = mapped_column(Text, server_default="")
    attempt: Mapped[int | None] = mapped_column(SmallInteger)
    seconds: Mapped[float | None] = mapped_column(Float)

    __table_args__ = (Index("task_events_task_idx", "task_id", "id"),)
