"""What deleted rows had counted for, so that a report can look back further than the rows are kept."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, Boolean, CheckConstraint, SmallInteger, Text
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.orm import Mapped, mapped_column

from chronos.models.base import Base


class PrunedActivity(Base):
    """So many rows of one kind ended in one quarter of an hour: a whole number of them makes a day of any time zone.

    A row counts either in its own table or in here: the statement that deletes it adds it.
    """

    __tablename__ = "pruned_activity"

    slot: Mapped[datetime] = mapped_column(TIMESTAMP(timezone=True), primary_key=True)
    kind: Mapped[str] = mapped_column(Text, primary_key=True)  #: task or send
    queue: Mapped[str] = mapped_column(Text, primary_key=True)  #: empty for sends
    outcome: Mapped[str] = mapped_column(Text, primary_key=True)  #: a task's final status, a send's state
    #: of its duration, reports/histograms.py; -1: none
    bucket: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    cause: Mapped[str] = mapped_column(Text, primary_key=True)  #: fingerprint of a failure, else empty
    sample: Mapped[bool] = mapped_column(Boolean, primary_key=True)
    number: Mapped[int] = mapped_column(BigInteger)
    task_name: Mapped[str | None] = mapped_column(Text)  #: with the next two: one failure of this cause
    error_class: Mapped[str | None] = mapped_column(Text)
    words: Mapped[str | None] = mapped_column(Text)

    __table_args__ = (CheckConstraint("kind in ('task', 'send') and number > 0", name="kind"),)
