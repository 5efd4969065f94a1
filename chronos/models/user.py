"""People: who may do what, in which language and time zone; and the one-time link of the first admin."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import CheckConstraint, Index, Text, text
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.types import BigInteger

from chronos.models.base import Base

_clock = text("clock_timestamp()")


class Role(StrEnum):
    """Each may do what those before it may do."""

    USER = "user"
    EDITOR = "editor"
    ADMIN = "admin"


#: Languages that Chronos speaks.
LANGUAGES = ("ru", "en")

_roles = ", ".join(f"'{role}'" for role in Role)
_languages = ", ".join(f"'{language}'" for language in LANGUAGES)


class User(Base):
    __tablename__ = "users"

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)  #: Telegram's
    first_name: Mapped[str | None] = mapped_column(Text)  #: null: granted a role before they ever wrote
    username: Mapped[str | None] = mapped_column(Text)
    language_code: Mapped[str | None] = mapped_column(Text)  #: as Telegram says
    language: Mapped[str | None] = mapped_column(Text)  #: as they chose
    time_zone: Mapped[str | None] = mapped_column(Text)  #: IANA's name; null until asked
    role: Mapped[str | None] = mapped_column(Text)  #: null: a stranger
    granted_by: Mapped[int | None] = mapped_column(BigInteger)  #: null with a role: by a setting or by the link
    created_at: Mapped[datetime] = mapped_column(TIMESTAMP(timezone=True), server_default=_clock)
    updated_at: Mapped[datetime] = mapped_column(TIMESTAMP(timezone=True), server_default=_clock)

    __table_args__ = (
        CheckConstraint(f"role in ({_roles})", name="role"),
        CheckConstraint("granted_by is null or role is not null", name="granted"),
        CheckConstraint(f"language in ({_languages})", name="language"),
        CheckConstraint("time_zone <> ''", name="time_zone"),
        Index("users_role_idx", "role", postgresql_where=text("role is not null")),
    )


class Invitation(Base):
    """A one-time link; only the hash of its code is kept."""

    __tablename__ = "invitations"

    code_hash: Mapped[str] = mapped_column(Text, primary_key=True)
    role: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(TIMESTAMP(timezone=True), server_default=_clock)
    used_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    used_by: Mapped[int | None] = mapped_column(BigInteger)

    __table_args__ = (
        CheckConstraint(f"role in ({_roles})", name="role"),
        CheckConstraint("(used_at is null) = (used_by is null)", name="used"),
    )
