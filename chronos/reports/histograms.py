"""Durations as counts per bucket: they can be added up over days and queues, and a median read off the sum.

A bucket is a fifth wider than the one before it, so that is the most that a percentile can be wrong by.
"""

from __future__ import annotations

from collections.abc import Mapping

#: Buckets in which a duration doubles; bucket 0 ends at 1.19 ms.
STEPS = 4
#: About a day; longer runs are counted there too.
LAST = 107
#: Of what has no duration.
NONE = -1

#: The bucket of a `{span}`, an interval, in PostgreSQL.
BUCKET = f"""least({LAST}, greatest(0,
  floor(ln(greatest(date_part('epoch', {{span}}) * 1000, 1)) / ln(2.0::float8) * {STEPS})))::smallint"""


def _edge(bucket: float) -> float:
    """Seconds at which a bucket begins."""
    return float(2.0 ** (bucket / STEPS)) / 1000


def percentile(histogram: Mapping[int, int], share: float) -> float | None:
    """Seconds that `share` of the durations stay below; None: there are none."""
    total = sum(number for bucket, number in histogram.items() if bucket != NONE)
    rank, before = share * total, 0
    for bucket in sorted(bucket for bucket in histogram if bucket != NONE):
        number = histogram[bucket]
        if number and before + number >= rank:
            return _edge(bucket + (rank - before) / number)
        before += number
    return None
