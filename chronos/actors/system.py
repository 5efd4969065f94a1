"""The actor behind `chronos doctor`: a task that goes through the whole pipeline."""

from __future__ import annotations

import time

from chronos.actor import actor
from chronos.errors import Cancelled
from chronos.middleware.context import Context
from chronos.models.params import Ping


@actor(queue="system", params=Ping)
def ping(params: Ping, ctx: Context) -> dict[str, str]:
    ends = time.monotonic() + params.seconds
    while (left := ends - time.monotonic()) > 0:
        if ctx.cancelled():
            raise Cancelled("stopped on request")
        ctx.progress(params.seconds - left, params.seconds)
        time.sleep(min(0.1, left))
    if params.fail:
        raise RuntimeError(params.fail)
    return {"say": params.say}
