"""Questions that several features ask; what a press on their buttons does is in zone.py and report.py."""

from __future__ import annotations

from chronos.bot.talk import Talk

#: Zones that are offered by name; the texts have them as zone.<name>.
OFFERED = ("Europe/Moscow", "Europe/Berlin")
#: What goes on behind the answer: nothing, the settings, the question for a report's period, or (r7d) that report.
NOTHING, SETTINGS, REPORT = "", "s", "r"
PERIODS = ("today", "7d", "30d")


async def ask_zone(talk: Talk, then: str) -> None:
    keyboard = [
        [(talk.plain(f"zone.{zone}"), f"z:{zone}:{then}") for zone in OFFERED]
        + [(talk.plain("zone.other"), f"zo:{then}")]
    ]
    if then == SETTINGS:
        keyboard.append([(talk.plain("back"), "set:")])
    await talk.reply(talk.say("zone.which"), keyboard)


async def ask_period(talk: Talk) -> None:
    """The buttons carry the number of the update that asked: whichever is pressed, and however often, is one task."""
    names = {"today": talk.plain("report.today")}
    names |= {period: talk.plain("report.days", count=int(period[:-1])) for period in PERIODS if period != "today"}
    keyboard = [
        [(names[period], f"r:{talk.update_id}:{period}") for period in PERIODS],
        [(talk.plain("cancel"), "drop")],
    ]
    await talk.reply(talk.say("report.period"), keyboard)
