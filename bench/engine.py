"""The same no-op as a Chronos actor, with full state."""

from __future__ import annotations

from bench.actors import note
from chronos.actor import actor
from chronos.middleware.context import Context
from chronos.models.params import Params


class Nothing(Params):
    pass


@actor(queue="broadcast", params=Nothing)
def noop(params: Nothing, ctx: Context) -> None:
    note()
