"""What a caller asks for, and everything that can be wrong with it: said in one line, before anything is written."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import uuid_utils.compat

from chronos.errors import BadInput
from chronos.models.task import DEFAULT_PRIORITY, HIGHEST_PRIORITY, LOWEST_PRIORITY
from chronos.queues import policy_of

#: Bytes of a task's name or key: both are in messages or indexes.
LONGEST_NAME = 500


@dataclass(frozen=True)
class NewTask:
    """What a caller asks for; `checked()` says what is wrong with it before anything is written."""

    queue: str
    task_name: str
    params: dict[str, Any] = field(default_factory=dict)
    user_id: int | None = None
    bot_id: int | None = None
    chat: int | None = None
    priority: int = DEFAULT_PRIORITY
    run_at: datetime | None = None
    expires_at: datetime | None = None
    idempotency_key: str | None = None
    max_attempts: int | None = None
    schedule_id: uuid.UUID | None = None

    def checked(self, max_payload_bytes: int) -> dict[str, Any]:
        policy = policy_of(self.queue)
        if not isinstance(self.params, dict):
            raise BadInput(f"params of {self.task_name} must be a JSON object, not {type(self.params).__name__}")
        try:
            payload = json.dumps(self.params, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise BadInput(f"params of {self.task_name} are not JSON: {error}") from None
        if len(payload.encode("utf-8", "surrogatepass")) > max_payload_bytes:
            raise BadInput(
                f"params of {self.task_name} take {len(payload.encode('utf-8', 'surrogatepass')):,} bytes,"
                f" at most {max_payload_bytes:,} are allowed: store the data elsewhere and pass its address"
            )
        for name, value in (
            ("params", payload),
            ("task name", self.task_name),
            ("key", self.idempotency_key or ""),
        ):
            if "\x00" in value or "\\u0000" in value:
                raise BadInput(f"{name} of {self.task_name!r} holds a NUL character, which PostgreSQL cannot store")
        try:
            payload.encode("utf-8")
        except UnicodeEncodeError:
            raise BadInput(f"params of {self.task_name} hold half a surrogate pair, which is no text") from None
        if not HIGHEST_PRIORITY <= self.priority <= LOWEST_PRIORITY:
            raise BadInput(f"priority {self.priority} is not between {HIGHEST_PRIORITY} (first) and {LOWEST_PRIORITY}")
        for name, number in (("user_id", self.user_id), ("bot_id", self.bot_id), ("chat", self.chat)):
            if number is not None and not -(2**63) <= number < 2**63:
                raise BadInput(f"{name} {number} of {self.task_name} is no 64-bit number")
        for name, words in (("task name", self.task_name), ("key", self.idempotency_key or "")):
            if len(words.encode("utf-8", "surrogatepass")) > LONGEST_NAME:
                raise BadInput(f"the {name} of {self.task_name[:40]!r} is longer than {LONGEST_NAME} bytes")
        for name, moment in (("run_at", self.run_at), ("expires_at", self.expires_at)):
            if moment is not None and moment.tzinfo is None:
                raise BadInput(f"{name} {moment} has no time zone")
        now = datetime.now(UTC)
        if self.expires_at is not None and self.expires_at <= max(self.run_at or now, now):
            raise BadInput(
                f"expires_at {self.expires_at:%Y-%m-%d %H:%M:%S%z} is past or before run_at: it could never run"
            )
        runs = policy.runs if self.max_attempts is None else self.max_attempts
        if not 1 <= runs <= 100:
            raise BadInput(f"max_attempts {runs} is not between 1 and 100")
        return {
            "id": uuid_utils.compat.uuid7(),
            "user_id": self.user_id,
            "bot_id": self.bot_id,
            "chat": self.chat,
            "queue": self.queue,
            "task_name": self.task_name,
            "params": payload,
            "priority": self.priority,
            "max_attempts": runs,
            "run_at": self.run_at,
            "expires_at": self.expires_at,
            "idempotency_key": self.idempotency_key,
            "schedule_id": self.schedule_id,
        }
