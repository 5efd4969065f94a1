"""The params of the actors, one model each. They live here so that nothing below imports an actor."""

from __future__ import annotations

import uuid
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from chronos.errors import BadInput
from chronos.models.period import Period, checked_zone


class Params(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Ping(Params):
    """A task through the whole pipeline, for `chronos doctor` and for looking around."""

    say: str = Field("pong", max_length=1000)
    seconds: float = Field(0.0, ge=0, le=60)
    fail: str | None = Field(None, max_length=1000)


class Housekeeping(Params):
    """One housekeeping job, as periodiq's tick asks for it."""

    job: str


class Tell(Params):
    """How a task ended, for its chat. A trigger of the database asks for it (migration 0007)."""

    task_id: uuid.UUID


class Alarm(Params):
    """What failed and the admins have not heard of. A trigger of the database asks for it (migration 0007)."""


class Report(Params):
    """The activity of Chronos over a period, for the chat of the task; without a chat it is only made and stored."""

    period: str = Field("7d", max_length=40, description="today, 7d, 30d, 2026-11-18, 2026-11-01..2026-11-15")
    language: Literal["ru", "en"] = "en"
    zone: str = Field("UTC", max_length=64, description="the days are those of this IANA time zone")
    parts: tuple[Literal["chart", "pdf"], ...] = Field(("chart",), min_length=1, max_length=2)
    of: uuid.UUID | None = Field(None, description="a report that was made: these figures again, not new ones")

    @field_validator("period")
    @classmethod
    def _is_a_period(cls, value: str) -> str:
        try:
            return str(Period.parse(value))
        except BadInput as error:
            raise ValueError(str(error)) from None

    @field_validator("zone")
    @classmethod
    def _is_a_zone(cls, value: str) -> str:
        try:
            return checked_zone(value)
        except BadInput as error:
            raise ValueError(str(error)) from None
