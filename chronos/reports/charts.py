"""The picture of a report, made for a phone: what ended when and how, and how long each queue takes."""

from __future__ import annotations

import io
import math
from datetime import datetime
from typing import TYPE_CHECKING, Any

from chronos.reports.activity import OUTCOMES, Activity, Queue
from chronos.reports.drawing import new_figure
from chronos.reports.language import Language, language_of
from chronos.reports.texts import SAMPLE, comparison_of, dates_of, heading_of, queue_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Pixels: what a chat shows without making it smaller.
WIDTH, HEIGHT = 1080, 1350
INK, QUIET, FAINT, LINE = "#16202C", "#5B6775", "#9AA5B1", "#E6EAEE"
COLOURS = {
    "completed": "#2F80C2", "failed": "#E2513B", "unknown": "#F0A92E", "expired": "#8D6CC0", "cancelled": "#B9C2CC",
}  # fmt: skip
OUTCOME_NAMES = {
    "ru": {"completed": "выполнено", "failed": "не удалось", "unknown": "неизвестно", "expired": "опоздало",
           "cancelled": "отменено"},
    "en": {"completed": "done", "failed": "failed", "unknown": "unknown", "expired": "expired",
           "cancelled": "cancelled"},
}  # fmt: skip
_LEFT, _RIGHT = 0.065, 0.945


def chart_of(activity: Activity, language: str) -> bytes:
    """A PNG. The same activity gives the same bytes."""
    speak = language_of(language)
    figure = new_figure(WIDTH, HEIGHT)
    _header(figure, activity, speak)
    _tiles(figure, activity, speak)
    _bars(figure, activity, speak)
    _durations(figure, activity, speak)
    _footer(figure, activity, speak)
    return png(figure)


def png(figure: Figure) -> bytes:
    made = io.BytesIO()
    figure.savefig(made, format="png", metadata={"Software": None})
    figure.clear()
    return made.getvalue()


def _header(figure: Figure, activity: Activity, speak: Language) -> None:
    figure.text(_LEFT, 0.955, heading_of(activity, speak.code), size=33, weight="bold", color=INK, va="center")
    figure.text(_LEFT, 0.916, f"{dates_of(activity, speak.code)} · {activity.zone}", size=19, color=QUIET, va="center")
    if activity.sample:
        figure.text(
            _RIGHT, 0.957, SAMPLE[speak.code], size=17, weight="bold", color="#7A4B00", ha="right", va="center",
            bbox={"boxstyle": "round,pad=0.5,rounding_size=0.9", "facecolor": "#FFE9BF", "edgecolor": "none"},
        )  # fmt: skip


def _tiles(figure: Figure, activity: Activity, speak: Language) -> None:
    from matplotlib.patches import FancyBboxPatch

    counts, sends, ru = activity.counts, activity.sends, speak.code == "ru"
    share = counts.share
    change = comparison_of(activity, speak.code).partition("," if ru else " than")[0]
    tiles = [
        ("выполнено" if ru else "done", speak.number(counts.completed),
         f"из {speak.number(counts.total)}" if ru else f"of {speak.number(counts.total)}", INK),
        ("удачно" if ru else "went well", "—" if share is None else speak.percent(share), change,
         COLOURS["failed"] if share is not None and share < 0.95 else INK),
        ("доставлено" if ru else "delivered", speak.number(sends.sent),
         f"нет {speak.number(sends.not_sent)} · неясно {speak.number(sends.unknown)}" if ru
         else f"not {speak.number(sends.not_sent)} · unknown {speak.number(sends.unknown)}", INK),
    ]  # fmt: skip
    gap = 0.02
    width = (_RIGHT - _LEFT - gap * 2) / 3
    for index, (name, value, note, colour) in enumerate(tiles):
        left = _LEFT + index * (width + gap)
        figure.add_artist(
            FancyBboxPatch(
                (left, 0.765), width, 0.112, boxstyle="round,pad=0,rounding_size=0.014", facecolor="#F3F6F9",
                edgecolor="none", transform=figure.transFigure, mutation_aspect=WIDTH / HEIGHT,
            )
        )  # fmt: skip
        figure.text(left + 0.022, 0.857, name, size=17, color=QUIET, va="center")
        figure.text(left + 0.022, 0.8225, value, size=31, weight="bold", color=colour, va="center")
        figure.text(left + 0.022, 0.786, note, size=15, color=QUIET, va="center")


def _axes(figure: Figure, title: str, top: float, rectangle: tuple[float, float, float, float]) -> Axes:
    figure.text(_LEFT, top, title, size=22, weight="bold", color=INK, va="center")
    axes = figure.add_axes(rectangle)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.tick_params(length=0, labelsize=16, labelcolor=QUIET, pad=8)
    axes.set_axisbelow(True)
    return axes


def _bars(figure: Figure, activity: Activity, speak: Language) -> None:
    by = {
        "hour": {"ru": "Задачи по часам", "en": "Tasks by hour"},
        "day": {"ru": "Задачи по дням", "en": "Tasks by day"},
        "week": {"ru": "Задачи по неделям", "en": "Tasks by week"},
    }
    axes = _axes(figure, by[activity.unit][speak.code], 0.722, (_LEFT + 0.04, 0.405, _RIGHT - _LEFT - 0.04, 0.25))
    draw_bars(axes, activity, speak, size=16)
    shown = [outcome for outcome in OUTCOMES if getattr(activity.counts, outcome)]
    legend(figure, [(COLOURS[outcome], OUTCOME_NAMES[speak.code][outcome]) for outcome in shown], _LEFT, 0.686, 16)


def legend(figure: Figure, entries: list[tuple[str, str]], left: float, y: float, size: float) -> None:
    from matplotlib.lines import Line2D

    if not entries:
        return
    handles = [Line2D([], [], marker="s", linestyle="", markersize=size * 0.8, color=colour) for colour, _ in entries]
    figure.legend(
        handles, [name for _, name in entries], loc="center left", bbox_to_anchor=(left, y), ncols=len(entries),
        frameon=False, fontsize=size, labelcolor=QUIET, handletextpad=0.1, columnspacing=1.1, borderpad=0,
        borderaxespad=0, handlelength=1.4,
    )  # fmt: skip


def draw_bars(axes: Axes, activity: Activity, speak: Language, size: float) -> None:
    """One stack per hour, day or week; how many did not go well stands above it."""
    steps = activity.steps
    places = list(range(len(steps)))
    floor = [0.0] * len(steps)
    for outcome in OUTCOMES:
        heights = [float(getattr(step.counts, outcome)) for step in steps]
        if any(heights):
            axes.bar(places, heights, bottom=floor, width=0.74, color=COLOURS[outcome], linewidth=0)
            floor = [low + height for low, height in zip(floor, heights, strict=True)]
    highest = max([*floor, 1.0])
    axes.set_ylim(0, highest * 1.14)
    axes.set_xlim(-0.6, len(steps) - 0.4)
    if len(steps) <= 31:
        for place, step in zip(places, steps, strict=True):
            if bad := step.counts.judged_badly:
                axes.text(place, floor[place] + highest * 0.025, speak.number(bad), size=size * 0.94, weight="bold",
                          color=COLOURS["failed"], ha="center", va="bottom")  # fmt: skip
    ticks = _round_ticks(highest)
    axes.set_yticks(ticks, [speak.number(tick) for tick in ticks])
    axes.grid(axis="y", color=LINE, linewidth=1.6)
    every = max(1, math.ceil(len(steps) / (8 if activity.unit != "hour" else 12)))
    labelled = [place for place in places if place % every == 0]
    axes.set_xticks(labelled, [_step_name(activity, steps[place].start, speak) for place in labelled])


def _step_name(activity: Activity, start: datetime, speak: Language) -> str:
    if activity.unit == "hour":
        return speak.hour(start)
    day = start.date()
    if activity.days <= 8:
        return f"{speak.weekday(day)}\n{speak.day_and_month(day)}"
    return speak.day_and_month(day).replace(" ", "\n").replace("\u00a0", "\n")


def _round_ticks(highest: float) -> list[int]:
    """Three or four round numbers up to the highest bar."""
    rough = highest / 3.2
    size = 10.0 ** math.floor(math.log10(rough)) if rough > 0 else 1.0
    step = max(1, round(next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough * 0.8)))
    return list(range(0, math.floor(highest / step) * step + 1, step))


def _durations(figure: Figure, activity: Activity, speak: Language) -> None:
    title = "Сколько длится запуск" if speak.code == "ru" else "How long a run takes"
    axes = _axes(figure, title, 0.345, (_LEFT, 0.062, _RIGHT - _LEFT, 0.222))
    words = ("половина быстрее", "95 % быстрее") if speak.code == "ru" else ("half within", "95% within")
    if draw_durations(axes, activity, speak, size=17):
        legend(figure, [("#1B4F7A", words[0]), ("#8FC1E8", words[1])], _LEFT, 0.31, 16)


def draw_durations(axes: Axes, activity: Activity, speak: Language, size: float) -> bool:
    """A line per queue, the slowest first, on a scale where each step is ten times the one before."""
    measured = [queue for queue in activity.queues if queue.durations is not None]
    measured.sort(key=lambda queue: -queue.durations.median if queue.durations else 0.0)
    measured = measured[:6]
    axes.set_xticks([])
    axes.set_yticks([])
    if not measured:
        nothing = "Ни одна задача не выполнилась" if speak.code == "ru" else "No task was completed"
        axes.text(0.5, 0.5, nothing, size=size, color=FAINT, ha="center", va="center", transform=axes.transAxes)
        return False
    spans = [queue.durations for queue in measured if queue.durations]
    low = math.log10(min(span.median for span in spans)) - 0.15
    high = math.log10(max(span.p95 for span in spans))
    wide = max(high - low, 0.5)
    # Names stand left of the lines, the words of the durations right of them.
    axes.set_xlim(low - wide * 0.52, low + wide * 1.6)
    axes.set_ylim(max(len(measured), 3) - 0.45, -0.55)
    for place, queue in enumerate(measured):
        _duration(axes, place, queue, speak, size, low - wide * 0.52, low + wide * 1.6)
    return True


def _duration(
    axes: Any, place: int, queue: Queue, speak: Language, size: float, left: float, right: float
) -> None:
    assert queue.durations is not None  # noqa: S101
    median, p95 = math.log10(queue.durations.median), math.log10(queue.durations.p95)
    axes.text(left, place, queue_name(queue.name, speak.code), size=size, color=INK, va="center")
    axes.plot([median, p95], [place, place], color="#CFE3F4", linewidth=size * 0.72, solid_capstyle="round")
    axes.plot([p95], [place], marker="o", markersize=size * 0.72, color="#8FC1E8", markeredgewidth=0)
    axes.plot([median], [place], marker="o", markersize=size * 0.9, color="#1B4F7A", markeredgewidth=0)
    words = f"{speak.duration(queue.durations.median)} · {speak.duration(queue.durations.p95)}"
    axes.text(right, place, words, size=size * 0.94, color=QUIET, va="center", ha="right")


def _footer(figure: Figure, activity: Activity, speak: Language) -> None:
    from zoneinfo import ZoneInfo

    made = speak.moment(activity.made_at.astimezone(ZoneInfo(activity.zone)))
    figure.text(_LEFT, 0.026, f"Chronos · {made}", size=14, color=FAINT, va="center")
