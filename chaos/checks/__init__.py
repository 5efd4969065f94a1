"""One module per figure. Its name is the check's name, its docstring what is shown, its `run` shows it."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Protocol

from chaos.harness import Chaos
from chaos.verdicts import Verdict


class Check(Protocol):
    def __call__(self, chaos: Chaos) -> Verdict: ...


def names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def check(name: str) -> Check:
    found: Check = importlib.import_module(f"chaos.checks.{name}").run
    return found
