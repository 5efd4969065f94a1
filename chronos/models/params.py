"""The params of the actors, one model each. They live here so that nothing below imports an actor."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


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
