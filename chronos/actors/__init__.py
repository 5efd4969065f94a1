"""`dramatiq chronos.actors`: the broker first, then the actors, then the user's own modules."""

import importlib
import sys

from chronos.broker import broker as make_broker
from chronos.config import settings
from chronos.errors import BadInput, ChronosError

try:
    # Before any actor: without a broker Dramatiq silently takes one on localhost.
    broker = make_broker()
    from chronos.actors import housekeeping, notice, report, system

    for _module in settings().actor_modules:
        try:
            importlib.import_module(_module)
        except ImportError as _error:
            raise BadInput(f"CHRONOS_ACTORS: cannot import {_module}: {_error}") from _error
except ChronosError as _error:
    sys.stderr.write(f"chronos: {_error}\n")
    raise SystemExit(2) from None

__all__ = ["broker", "housekeeping", "notice", "report", "system"]
