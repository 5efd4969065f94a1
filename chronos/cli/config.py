"""chronos config: every setting with its value, default and meaning; secrets hidden, misspelt ones named."""

from __future__ import annotations

import difflib
import os
import textwrap
from typing import Any

from chronos.config import Settings, settings

PREFIX = "CHRONOS_"
HIDDEN = "**********"


def rows() -> list[dict[str, Any]]:
    values = settings()
    return [
        {
            "name": f"{PREFIX}{name.upper()}",
            "value": _text(getattr(values, name)),
            "default": _text(field.get_default(call_default_factory=True)),
            "meaning": field.description,
        }
        for name, field in Settings.model_fields.items()
    ]


def _text(value: Any) -> str | None:
    return None if value is None or value == "" else str(value)  # a SecretStr's str() is stars


def misspelt() -> list[str]:
    """Variables that look like settings and are none: a typing error would silently keep the default."""
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}
    words = []
    for name in sorted(os.environ):
        if name.startswith(PREFIX) and name not in known:
            near = difflib.get_close_matches(name, known, 1)
            words.append(f"{name} is no setting" + (f": is it {near[0]}?" if near else ""))
    return words


def texts(found: list[dict[str, Any]]) -> list[str]:
    lines = []
    for row in found:
        value, default = row["value"] or "(not set)", row["default"] or "not set"
        mark = "" if row["value"] == row["default"] else f"   (default: {default})"
        lines.append(f"{row['name']} = {value}{mark}")
        lines += textwrap.wrap(row["meaning"], 76, initial_indent="    ", subsequent_indent="    ")
    return lines + [f"\nwarning: {words}" for words in misspelt()]
