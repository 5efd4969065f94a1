"""The picture of a report, made for a phone: what ended when and how, and how long each queue takes."""

from __future__ import annotations

import io
import math
from datetime import datetime
from typing import TYPE_CHECKING

from chronos.language import Language, language_of
from chronos.reports.activity import OUTCOMES, Activity
from chronos.reports.drawing import new_figure
from chronos.reports.texts import SAMPLE, change_of, dates_of, heading_of, queue_name

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
    return _png(figure)


def _png(figure: Figure) -> bytes:
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
    tiles = [
        ("выполнено" if ru else "done", speak.number(counts.completed),
         f"из {speak.number(counts.total)}" if ru else f"of {speak.number(counts.total)}", INK),
        ("удачно" if ru else "went well", "—" if share is None else speak.percent(share),
         change_of(activity, speak.code),
         COLOURS["failed"] if share is not None and share < 0.95 else INK),
        ("доставлено" if ru else "delivered", speak.number(sends.sent),
         f"не дошло {speak.number(sends.not_sent)} · неясно {speak.number(sends.unknown)}" if ru
         else f"{speak.number(sends.not_sent)} not · {speak.number(sends.unknown)} unknown", INK),
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


def bars_title(activity: Activity, speak: Language) -> str:
    titles = {
        "hour": {"ru": "Задачи по часам", "en": "Tasks by hour"},
        "day": {"ru": "Задачи по дням", "en": "Tasks by day"},
        "week": {"ru": "Задачи по неделям", "en": "Tasks by week"},
    }
    return titles[activity.unit][speak.code]


def _bars(figure: Figure, activity: Activity, speak: Language) -> None:
    highest = max((step.counts.total for step in activity.steps), default=0)
    left = _LEFT + 0.014 * len(speak.number(highest))
    axes = _axes(figure, bars_title(activity, speak), 0.722, (left, 0.425, _RIGHT - left, 0.24))
    _draw_bars(axes, activity, speak, size=16)
    _legend(figure, activity, speak, _LEFT, 0.686, 16)


def wide_chart_of(activity: Activity, language: str) -> bytes:
    """Only the bars, in the shape of a page's width: for the PDF, whose tables say the rest."""
    speak = language_of(language)
    figure = new_figure(1800, 760)
    axes = _axes(figure, "", 0.9, (0.06, 0.14, 0.93, 0.74))
    axes.tick_params(labelsize=21)
    _draw_bars(axes, activity, speak, size=21)
    _legend(figure, activity, speak, 0.06, 0.95, 21)
    return _png(figure)


def _legend(figure: Figure, activity: Activity, speak: Language, left: float, y: float, size: float) -> None:
    """Only of what is there: a colour that is nowhere needs no name."""
    from matplotlib.lines import Line2D

    shown = [outcome for outcome in OUTCOMES if getattr(activity.counts, outcome)]
    entries = [(COLOURS[outcome], OUTCOME_NAMES[speak.code][outcome]) for outcome in shown]
    if not entries:
        return
    handles = [Line2D([], [], marker="s", linestyle="", markersize=size * 0.8, color=colour) for colour, _ in entries]
    figure.legend(
        handles, [name for _, name in entries], loc="center left", bbox_to_anchor=(left, y), ncols=len(entries),
        frameon=False, fontsize=size, labelcolor=QUIET, handletextpad=0.1, columnspacing=1.1, borderpad=0,
        borderaxespad=0, handlelength=1.4,
    )  # fmt: skip


def _draw_bars(axes: Axes, activity: Activity, speak: Language, size: float) -> None:
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
        size = size if len(steps) <= 16 else size * 0.8
        for place, step in zip(places, steps, strict=True):
            if bad := step.counts.judged_badly:
                axes.text(place, floor[place] + highest * 0.025, speak.number(bad), size=size * 0.94, weight="bold",
                          color=COLOURS["failed"], ha="center", va="bottom")  # fmt: skip
    ticks = _round_ticks(highest)
    axes.set_yticks(ticks, [speak.number(tick) for tick in ticks])
    axes.grid(axis="y", color=LINE, linewidth=1.6)
    every = max(1, math.ceil(len(steps) / (12 if activity.unit == "hour" and speak.code == "ru" else 8)))
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
    axes = _axes(figure, title, 0.325, (_LEFT, 0.055, _RIGHT - _LEFT, 0.245))
    _draw_durations(axes, activity, speak, size=17)


#: Where things stand in the width of the durations: the lines, and the right edges of the two columns.
_LINES, _HALF, _MOST = (0.29, 0.60), 0.80, 1.0
_DARK, _LIGHT = "#1B4F7A", "#7FB6E2"


def _draw_durations(axes: Axes, activity: Activity, speak: Language, size: float) -> None:
    """A line per queue, the slowest first, on a scale where each step is ten times the one before."""
    measured = [(queue, queue.durations) for queue in activity.queues if queue.durations is not None]
    measured = sorted(measured, key=lambda pair: -pair[1].median)[:6]
    axes.set_axis_off()
    axes.set_xlim(0, 1)
    axes.set_ylim(max(len(measured), 4) - 0.4, -1.6)
    if not measured:
        nothing = "Ни одна задача не выполнена" if speak.code == "ru" else "No task was done"
        axes.text(0.5, 0.5, nothing, size=size, color=FAINT, ha="center", va="center", transform=axes.transAxes)
        return
    for edge, colour, word in (
        (_HALF, _DARK, "половина до" if speak.code == "ru" else "half within"),
        (_MOST, _LIGHT, "95 % до" if speak.code == "ru" else "95% within"),
    ):
        axes.text(edge, -1, f"● {word}", size=size * 0.88, color=colour, ha="right", va="center")
    low = min(math.log10(durations.median) for _, durations in measured)
    wide = max(math.log10(durations.p95) for _, durations in measured) - low or 1.0

    def place(seconds: float) -> float:
        return _LINES[0] + (_LINES[1] - _LINES[0]) * (math.log10(seconds) - low) / wide

    for row, (queue, durations) in enumerate(measured):
        half, most = place(durations.median), place(durations.p95)
        axes.text(0, row, queue_name(queue.name, speak.code), size=size, color=INK, va="center")
        axes.plot(_LINES, [row, row], color="#EEF2F6", linewidth=size * 0.3, solid_capstyle="round")
        axes.plot([half, most], [row, row], color="#BBD8F0", linewidth=size * 0.55)
        axes.plot([most], [row], marker="o", markersize=size * 0.72, color=_LIGHT, markeredgewidth=0)
        axes.plot([half], [row], marker="o", markersize=size * 0.85, color=_DARK, markeredgewidth=0)
        axes.text(_HALF, row, speak.duration(durations.median), size=size * 0.94, color=INK, va="center", ha="right")
        axes.text(_MOST, row, speak.duration(durations.p95), size=size * 0.94, color=QUIET, va="center", ha="right")


def _footer(figure: Figure, activity: Activity, speak: Language) -> None:
    from zoneinfo import ZoneInfo

    made = speak.moment(activity.made_at.astimezone(ZoneInfo(activity.zone)))
    figure.text(_LEFT, 0.026, f"Chronos · {made}", size=14, color=FAINT, va="center")
