"""Time zones as people name them: by IANA's name or by a city, in Russian or in English."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime
from functools import lru_cache

from babel import Locale

from chronos.language import language_of

#: Choices of one answer.
MOST = 6

#: Big cities that have no zone of their own name.
_CITIES = {
    "Europe/Moscow": "санкт петербург|петербург|питер|спб|мск|msk|saint petersburg|st petersburg|"
    "казань|kazan|сочи|sochi|краснодар|krasnodar|нижний новгород|nizhny novgorod|ростов на дону|воронеж",
    "Asia/Yekaterinburg": "пермь|perm|уфа|ufa|челябинск|chelyabinsk|тюмень|tyumen",
    "Asia/Almaty": "астана|astana",
    "Europe/Berlin": "мюнхен|munich|гамбург|hamburg|франкфурт|frankfurt|кельн|cologne|дюссельдорф",
    "Europe/Zurich": "женева|geneva",
    "Europe/Madrid": "барселона|barcelona",
    "Europe/Rome": "милан|milan",
    "Asia/Shanghai": "пекин|beijing",
    "Asia/Jerusalem": "тель авив|tel aviv|хайфа|haifa",
    "Asia/Kolkata": "дели|delhi|мумбаи|mumbai",
    "America/New_York": "вашингтон|washington|майами|miami|бостон|boston",
    "America/Los_Angeles": "сан франциско|san francisco|сиэтл|seattle",
}


def search(given: str) -> list[str]:
    """Zones that it may mean, the likeliest first; empty: none."""
    wanted = _plain(given)
    if not wanted or len(wanted) > 60:
        return []
    names = _names()
    for fits in (str.__eq__, str.startswith, str.__contains__):
        if len(wanted) < 3 and fits is not str.__eq__:
            break
        found = list(dict.fromkeys(zone for name, zone in names if fits(name, wanted)))
        if found:
            return found[:MOST]
    return []


def time_in(zone: str, language: str) -> str:
    return language_of(language).clock(datetime.now(UTC).astimezone(zoneinfo.ZoneInfo(zone)))


@lru_cache(maxsize=1)
def _names() -> list[tuple[str, str]]:
    """(a name, its zone): cities before whole names, so that 'moscow' is not found in the middle of one."""
    zones = sorted(zone for zone in zoneinfo.available_timezones() if "/" in zone or zone == "UTC")
    usual = [zone for zone in zones if not zone.startswith(("Etc/", "US/", "Canada/", "Mexico/", "Brazil/", "Chile/"))]
    names = [(_plain(zone.rsplit("/", 1)[-1]), zone) for zone in usual]
    for language in ("ru", "en"):
        cities = Locale.parse(language).time_zones
        names += [(_plain(cities[zone]["city"]), zone) for zone in usual if cities.get(zone, {}).get("city")]
    names += [(city, zone) for zone, cities in _CITIES.items() for city in cities.split("|")]
    return names + [(_plain(zone), zone) for zone in zones]


def _plain(name: str) -> str:
    return " ".join(name.casefold().replace("ё", "е").replace("_", " ").replace("-", " ").replace("/", " ").split())
