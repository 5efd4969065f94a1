"""Bots, each with the one process that polls it, and the updates it received: stored first, then handled."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Boolean, CheckConstraint, Index, SmallInteger, Text, text
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.types import BigInteger

from chronos.models.base import Base

_clock = text("clock_timestamp()")


class Bot(Base):
    __tablename__ = "bots"

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)  #: Telegram's
    username: Mapped[str | None] = mapped_column(Text)
    name: Mapped[str | None] = mapped_column(Text)
    paid: Mapped[bool] = mapped_column(Boolean, server_default=text("false"))  #: up to 1,000 messages/s
    stopped_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    stopped_why: Mapped[str | None] = mapped_column(Text)
    poller: Mapped[str | None] = mapped_column(Text)  #: who polls: host, pid
    poller_beat_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))

    __table_args__ = (
        CheckConstraint("(stopped_at is null) = (stopped_why is null)", name="stopped"),
        CheckConstraint("(poller is null) = (poller_beat_at is null)", name="poller"),
        {"postgresql_with": {"fillfactor": "50"}},
    )


class Update(Base):
    """One update as Telegram gave it. It is handled once all before it in its chat are handled or put aside."""

    __tablename__ = "updates"

    bot_id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    update_id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    chat: Mapped[int] = mapped_column(BigInteger)  #: the order key: its chat, or its user where there is none
    payload: Mapped[dict[str, Any]] = mapped_column(JSONB)
    received_at: Mapped[datetime] = mapped_column(TIMESTAMP(timezone=True), server_default=_clock)
    tries: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    handled_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    put_aside_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    error: Mapped[str | None] = mapped_column(Text)  #: of the last try that failed
    told_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))  #: when the admins heard of it

    __table_args__ = (
        CheckConstraint("tries >= 0", name="tries"),
        CheckConstraint("put_aside_at is null or (handled_at is null and error is not null)", name="put_aside"),
        Index(
            "updates_waiting_idx",
            "bot_id",
            "chat",
            "update_id",
            postgresql_where=text("handled_at is null and put_aside_at is null"),
        ),
        Index("updates_put_aside_idx", "put_aside_at", postgresql_where=text("put_aside_at is not null")),
        Index("updates_handled_idx", "handled_at", postgresql_where=text("handled_at is not null")),
        {"postgresql_with": {"fillfactor": "70"}},
    )
