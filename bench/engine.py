"""The same actors in Chronos, with full state."""

from __future__ import annotations

from bench.marks import count_me, tell_now
from chronos.actor import actor
from chronos.middleware.context import Context
from chronos.models.params import Params


class Nothing(Params):
    pass


@actor(queue="broadcast", params=Nothing)
def noop(params: Nothing, ctx: Context) -> None:
    count_me()


@actor(queue="broadcast", params=Nothing)
def stamp(params: Nothing, ctx: Context) -> None:
    tell_now()
