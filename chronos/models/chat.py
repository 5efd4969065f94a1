"""Chats as a bot sees them, who subscribed in them, and the one message about each task."""

from __future__ import annotations

import uuid
from datetime import datetime
from enum import StrEnum

from sqlalchemy import CheckConstraint, Index, Text, text
from sqlalchemy.dialects.postgresql import TIMESTAMP, UUID
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.types import BigInteger

from chronos.models.base import Base
from chronos.models.user import LANGUAGES

_clock = text("clock_timestamp()")


class ChatKind(StrEnum):
    PRIVATE = "private"
    GROUP = "group"
    SUPERGROUP = "supergroup"
    CHANNEL = "channel"


_kinds = ", ".join(f"'{kind}'" for kind in ChatKind)
_languages = ", ".join(f"'{language}'" for language in LANGUAGES)


class Chat(Base):
    __tablename__ = "chats"

    bot_id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    kind: Mapped[str] = mapped_column(Text)
    title: Mapped[str | None] = mapped_column(Text)
    username: Mapped[str | None] = mapped_column(Text)
    migrated_to: Mapped[int | None] = mapped_column(BigInteger)  #: the supergroup that this group became

    __table_args__ = (
        CheckConstraint(f"kind in ({_kinds})", name="kind"),
        CheckConstraint("migrated_to is null or (kind = 'group' and migrated_to <> id)", name="migrated"),
    )


class Subscriber(Base):
    __tablename__ = "subscribers"

    bot_id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    user_id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    subscribed_at: Mapped[datetime] = mapped_column(TIMESTAMP(timezone=True), server_default=_clock)
    unsubscribed_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    blocked_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))  #: by Telegram's word (403)
    blocked_why: Mapped[str | None] = mapped_column(Text)

    __table_args__ = (CheckConstraint("(blocked_at is null) = (blocked_why is null)", name="blocked"),)


class Card(Base):
    """THE message about a task: sent once, then edited until the task's end."""

    __tablename__ = "cards"

    task_id: Mapped[uuid.UUID] = mapped_column(UUID, primary_key=True)
    bot_id: Mapped[int] = mapped_column(BigInteger)
    chat: Mapped[int] = mapped_column(BigInteger)
    message_id: Mapped[int | None] = mapped_column(BigInteger)  #: null until Telegram has answered
    locale: Mapped[str] = mapped_column(Text)
    shown: Mapped[str | None] = mapped_column(Text)  #: hash of what it shows
    created_at: Mapped[datetime] = mapped_column(TIMESTAMP(timezone=True), server_default=_clock)

    __table_args__ = (
        CheckConstraint("shown is null or message_id is not null", name="shown"),
        CheckConstraint(f"locale in ({_languages})", name="locale"),
        Index("cards_message_idx", "bot_id", "chat", "message_id"),
        {"postgresql_with": {"fillfactor": "50"}},
    )
