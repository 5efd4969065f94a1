"""Medians of merged histograms are those of the durations, a fifth aside; SQL and Python cut the same buckets."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from chronos.reports.histograms import BUCKET, LAST, NONE, _edge, percentile
from chronos.runtime import Runtime

SECONDS = st.floats(0.002, 80_000)


def bucket_of(seconds: float) -> int:
    return max(b for b in range(LAST + 1) if b == 0 or _edge(b) <= seconds)


@given(st.lists(SECONDS, min_size=1, max_size=60), st.sampled_from([0.5, 0.95]))
@settings(deadline=None)
def test_a_percentile_is_wrong_by_a_fifth_at_most(durations: list[float], share: float) -> None:
    found = percentile(Counter(bucket_of(seconds) for seconds in durations), share)
    rank = max(1, -(-int(share * 100) * len(durations) // 100))
    exact = sorted(durations)[rank - 1]
    assert found is not None and 1 / 1.2 <= found / exact <= 1.2


def test_nothing_has_no_percentile() -> None:
    assert percentile({}, 0.5) is None
    assert percentile({NONE: 5}, 0.5) is None


@given(st.one_of(SECONDS, st.just(0.0), st.just(-1.0), st.just(10.0**7)))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_postgresql_cuts_the_same_buckets(runtime: Runtime, seconds: float) -> None:
    with runtime.database.statement() as connection:
        found = connection.execute(
            text(f"select {BUCKET.format(span='make_interval(secs => :seconds)')}"), {"seconds": seconds}
        ).scalar_one()
    low, high = _edge(found), _edge(found + 1)
    tolerance = 2e-6  # an interval has whole microseconds
    assert (found == 0 or low <= seconds + tolerance) and (found == LAST or seconds - tolerance <= high)
