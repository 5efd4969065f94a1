"""How a run ended, on its way into the table."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from chronos.engine.tasks import Claimed, Completion


@dataclass(frozen=True)
class Ending:
    """`write` is None for a plain completion, which may be written together with others."""

    run: Claimed
    result: Any = None
    write: Callable[[Connection], str | None] | None = None
    then: Callable[[str | None], None] | None = None

    def completion(self) -> Completion:
        """Any exception: the result is nothing that PostgreSQL can hold."""
        result = None if self.result is None else json.dumps(self.result, allow_nan=False, default=str)
        if result is not None and "\\u0000" in result:
            raise ValueError("the result holds a NUL character")
        return self.run.id, self.run.token, result
