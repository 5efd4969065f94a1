"""The tables beside tasks: workers, sends, budgets, dead letters, queue states, limits, leaders."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Boolean, CheckConstraint, Index, Integer, SmallInteger, Text, text
from sqlalchemy.dialects.postgresql import INTERVAL, JSONB, TIMESTAMP, UUID
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.types import BigInteger

from chronos.models.base import Base

_clock = text("clock_timestamp()")


class Worker(Base):
    """One boot of one worker process. Its beat is the lease of everything that it runs."""

    __tablename__ = "workers"

    id: Mapped[uuid.UUID] = mapped_column(UUID, primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    host: Mapped[str] = mapped_column(Text)  #: host name, boot id and pid namespace: where `pid` means something
    pid: Mapped[int] = mapped_column(Integer)
    process_start: Mapped[str] = mapped_column(Text)  #: with pid and host, exactly one process
    queues: Mapped[list[str]] = mapped_column(JSONB, server_default=text("'[]'"))
    threads: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    booted_at: Mapped[datetime] = mapped_column(TIMESTAMP(timezone=True), server_default=_clock)
    beat_at: Mapped[datetime] = mapped_column(TIMESTAMP(timezone=True), server_default=_clock)
    dead: Mapped[bool] = mapped_column(Boolean, server_default=text("false"))
    death: Mapped[str | None] = mapped_column(Text)  #: why it is dead, in words

    __table_args__ = (
        Index("workers_living_idx", "host", postgresql_where=text("not dead")),
        {"postgresql_with": {"fillfactor": "50"}},
    )


class Send(Base):
    """The ledger of outside effects: an intent is committed before the call, its result after."""

    __tablename__ = "sends"

    task_id: Mapped[uuid.UUID] = mapped_column(UUID, primary_key=True)
    key: Mapped[str] = mapped_column(Text, primary_key=True)
    chat: Mapped[int | None] = mapped_column(BigInteger)
    state: Mapped[str] = mapped_column(Text)
    token: Mapped[uuid.UUID | None] = mapped_column(UUID)  #: of the run that means to make it, or made it
    repeats: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    message_id: Mapped[int | None] = mapped_column(BigInteger)
    result: Mapped[Any | None] = mapped_column(JSONB)
    created_at: Mapped[datetime] = mapped_column(TIMESTAMP(timezone=True), server_default=_clock)
    updated_at: Mapped[datetime] = mapped_column(TIMESTAMP(timezone=True), server_default=_clock)

    __table_args__ = (
        CheckConstraint("state in ('intent', 'sent', 'not_sent', 'unknown')", name="state"),
        Index("sends_created_idx", "created_at", postgresql_using="brin"),
    )


class Budget(Base):
    """What a bot or one of its chats may send: `bot:<id>` or `chat:<bot>:<chat>`, with the GCRA clock of its rate."""

    __tablename__ = "budgets"

    key: Mapped[str] = mapped_column(Text(collation="C"), primary_key=True)
    tat: Mapped[datetime] = mapped_column(TIMESTAMP(timezone=True), server_default=text("'-infinity'"))
    held_until: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))  #: no call before it: a 429

    __table_args__ = (
        CheckConstraint("key like 'bot:%' or key like 'chat:%:%'", name="key"),
        {"postgresql_with": {"fillfactor": "10"}},
    )


class DeadLetter(Base):
    """What failed for good, in the fifth seed's shape, plus what groups it by cause."""

    __tablename__ = "dead_letters"

    id: Mapped[uuid.UUID] = mapped_column(UUID, primary_key=True)
    task_id: Mapped[uuid.UUID | None] = mapped_column(UUID)  #: null: a message that never was a task
    original_queue: Mapped[str] = mapped_column(Text)
    original_job_id: Mapped[str] = mapped_column(Text)
    original_job_data: Mapped[Any] = mapped_column(JSONB)
    failure_reason: Mapped[str] = mapped_column(Text)
    attempts_made: Mapped[int] = mapped_column(SmallInteger)
    failed_at: Mapped[datetime] = mapped_column(TIMESTAMP(timezone=True), server_default=_clock)
    error_class: Mapped[str | None] = mapped_column(Text)
    traceback: Mapped[str | None] = mapped_column(Text)
    fingerprint: Mapped[str] = mapped_column(Text)
    retried_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    told_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))  #: when the admins heard of it

    __table_args__ = (
        Index("dead_letters_open_idx", "task_id", unique=True, postgresql_where=text("retried_at is null")),
        Index("dead_letters_cause_idx", "fingerprint", "failed_at"),
        Index("dead_letters_untold_idx", "failed_at", postgresql_where=text("told_at is null")),
    )


class QueueState(Base):
    """A pause of a queue is a row: it survives restarts and stops delayed work too."""

    __tablename__ = "queue_states"

    queue: Mapped[str] = mapped_column(Text, primary_key=True)
    paused_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    paused_until: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    statistics: Mapped[dict[str, Any] | None] = mapped_column(JSONB)


class Limit(Base):
    """One rate and concurrency limit, of a queue or of one actor, with the GCRA clock of its rate."""

    __tablename__ = "limits"

    key: Mapped[str] = mapped_column(Text, primary_key=True)
    queue: Mapped[str] = mapped_column(Text)
    task_name: Mapped[str | None] = mapped_column(Text)
    step: Mapped[timedelta | None] = mapped_column(INTERVAL)
    tat: Mapped[datetime] = mapped_column(TIMESTAMP(timezone=True), server_default=text("'-infinity'"))
    max_running: Mapped[int | None] = mapped_column(Integer)

    __table_args__ = (Index("limits_queue_idx", "queue"), {"postgresql_with": {"fillfactor": "10"}})


class Leader(Base):
    """Who relays: a row held by a living worker, so a stopped process cannot keep it."""

    __tablename__ = "leaders"

    role: Mapped[str] = mapped_column(Text, primary_key=True)
    worker: Mapped[uuid.UUID] = mapped_column(UUID)
    since: Mapped[datetime] = mapped_column(TIMESTAMP(timezone=True), server_default=_clock)
