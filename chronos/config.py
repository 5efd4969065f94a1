"""All settings, read and validated in one place. Every one can be set as CHRONOS_<NAME> or in .env."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from chronos import redaction
from chronos.errors import BadInput


def _default_data_dir() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME", "~/.local/share")).expanduser() / "chronos"


_ADDRESSES = {
    "database_url": ("PostgreSQL", ("postgresql", "postgres", "postgresql+psycopg")),
    "amqp_url": ("RabbitMQ", ("amqp", "amqps")),
}


#: Telegram's form of a token; the digits are the bot's id.
_TOKEN = re.compile(r"[0-9]{1,18}:[A-Za-z0-9_-]{35}")
_USER_ID = re.compile(r"[1-9][0-9]{0,17}")
#: Settings whose wrong value would show a password or a token.
_NEVER_SHOWN = {*_ADDRESSES, "bot_token", "telegram_url"}


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="CHRONOS_", env_file=".env", extra="ignore")

    database_url: SecretStr | None = Field(
        None, description="PostgreSQL address, postgresql://user:password@host/db; empty: the embedded one"
    )
    amqp_url: SecretStr | None = Field(
        None, description="RabbitMQ address, amqp://user:password@host:5672/; empty: the in-process broker"
    )
    bot_token: SecretStr | None = Field(
        None, description="the bot's token from @BotFather; empty: the bot talks to the Telegram sandbox"
    )
    telegram_url: str | None = Field(
        None, description="address of another Bot API server, http://host:port; empty: Telegram's own"
    )
    admins: Annotated[str, NoDecode] = Field(
        "", description="numeric Telegram ids of people who are always admins, comma-separated"
    )
    paid_broadcast: bool = Field(
        False, description="the bot pays for up to 1,000 messages per second (allow_paid_broadcast)"
    )
    sandbox_port: int | None = Field(
        None, ge=1, le=65535, description="port of the Telegram sandbox; empty: 8081, or a free one when that is taken"
    )
    data_dir: Path = Field(
        default_factory=_default_data_dir, description="folder of the embedded servers, their data and logs"
    )
    actors: Annotated[str, NoDecode] = Field(
        "", description="your own modules with actors, comma-separated: myapp.actors"
    )
    worker_name: str = Field("", description="name of this worker in lists and logs; empty: host name")
    lease_seconds: float = Field(
        15.0,
        ge=0.5,
        le=3600,
        description="a worker without a beat for so long is dead; beats come 3 times as often",
    )
    shutdown_seconds: float = Field(
        25.0, ge=1, le=3600, description="SIGTERM: running work is finished or handed back within this time"
    )
    hung_seconds: float = Field(
        30.0, ge=1, le=86400, description="a run that ignores its time limit for so long costs its process its life"
    )
    statement_timeout_seconds: float = Field(
        30.0, ge=1, le=86400, description="longest time that one statement may take in PostgreSQL"
    )
    connect_timeout_seconds: float = Field(5.0, ge=1, le=3600, description="longest time to wait for a connection")
    pool_size: int = Field(
        8,
        ge=4,
        le=100,
        description="PostgreSQL connections for the actors of a process, at most; its loops have 6 more",
    )
    keep_completed_days: float = Field(
        7.0, ge=0, le=36500, description="completed, cancelled and expired tasks are kept so long"
    )
    keep_failed_days: float = Field(
        0.0, ge=0, le=36500, description="failed and unknown tasks are kept so long; 0: until cleared"
    )
    max_payload_bytes: int = Field(65536, ge=1024, le=1048576, description="largest params of one task")
    max_message_bytes: int = Field(16384, ge=1024, description="a larger message is no wake-up of ours: dead letter")
    unknown_actor_minutes: float = Field(
        10.0, ge=0, le=100000, description="how long a task waits for a worker that knows its actor (rolling deploy)"
    )
    log_format: Literal["pretty", "json"] = Field("pretty", description="pretty for people, json for collectors")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="least level that is logged")
    log_file: Path | None = Field(None, description="log into this file; empty: standard error")

    @field_validator("database_url", "amqp_url")
    @classmethod
    def _is_an_address(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        """Empty counts as not set: that is what an empty line in .env means."""
        if value is None or not value.get_secret_value().strip():
            return None
        kind, schemes = _ADDRESSES[info.field_name or ""]
        address = value.get_secret_value()
        try:
            ok = address.split("://")[0] in schemes and urlsplit(address).port != 0
        except ValueError:
            ok = False
        if not ok:
            raise ValueError(f"no address of {kind}: write {schemes[0]}://user:password@host:port/name")
        return value

    @field_validator("bot_token")
    @classmethod
    def _is_a_token(cls, value: SecretStr | None) -> SecretStr | None:
        if value is None or not value.get_secret_value().strip():
            return None
        token = value.get_secret_value().strip()
        if not _TOKEN.fullmatch(token):
            raise ValueError(
                "no bot token: @BotFather gives it as digits, a colon and 35 letters, such as 110201543:AAHdqTcv..."
            )
        redaction.hide(token)
        return SecretStr(token)

    @field_validator("telegram_url")
    @classmethod
    def _is_a_server(cls, value: str | None) -> str | None:
        if value is None or not value.strip():
            return None
        try:
            parts = urlsplit(value.strip())
            ok = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and "@" not in value
        except ValueError:
            ok = False
        if not ok:
            raise ValueError("no address of a Bot API server: write http://host:port")
        return value.strip().rstrip("/")

    @field_validator("admins")
    @classmethod
    def _are_ids(cls, value: str) -> str:
        for name in filter(None, (part.strip() for part in value.split(","))):
            if not _USER_ID.fullmatch(name):
                raise ValueError(f"{name!r} is no numeric Telegram id (/start shows it)")
        return value

    @property
    def bot_id(self) -> int | None:
        """The digits of the token are the bot's id."""
        return None if self.bot_token is None else int(self.bot_token.get_secret_value().split(":")[0])

    @property
    def admin_ids(self) -> frozenset[int]:
        return frozenset(int(part) for part in self.admins.split(",") if part.strip())

    @property
    def lease(self) -> float:
        return self.lease_seconds

    @property
    def actor_modules(self) -> list[str]:
        return [name.strip() for name in self.actors.split(",") if name.strip()]


def _explain(error: ValidationError) -> str:
    first = error.errors()[0]
    field = str(first["loc"][0]) if first["loc"] else ""
    words = first["msg"].removeprefix("Value error, ")
    shown = "" if field in _NEVER_SHOWN else f", and is {first.get('input')!r}"
    meaning = Settings.model_fields[field].description if field in Settings.model_fields else ""
    return f"CHRONOS_{field.upper()} ({meaning}): {words[:1].lower()}{words[1:]}{shown}"


@lru_cache(maxsize=1)
def settings() -> Settings:
    """The settings of this process; a wrong one is named in one line (BadInput)."""
    try:
        return Settings()
    except ValidationError as error:
        raise BadInput(_explain(error)) from None
