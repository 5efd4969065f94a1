"""Who is there at the first start: four people to act as, a channel, a group, fifty subscribers."""

from __future__ import annotations

from telegram_sandbox.world import World

CHANNEL = -1001000000001
GROUP = -1001000000002
FIRST_SUBSCRIBER, SUBSCRIBERS = 2001, 50

PEOPLE = {
    "admin": (1001, "Анна", "Админ", "anna_admin", "ru"),
    "editor": (1002, "Эдуард", "Редактор", "ed_editor", "ru"),
    "user1": (1003, "Ульяна", "", "user1", "ru"),
    "user2": (1004, "Oliver", "", "user2", "en"),
}

FIRST_NAMES = (
    "Алиса Борис Вера Глеб Дарья Егор Жанна Захар Ирина Кирилл Лариса Максим Нина Олег Полина Роман Софья Тимур"
    " Фаина Харитон Цветана Шамиль Эмма Юрий Яна"
)
LAST_NAMES = (("Белова", "Белов"), ("Гончарова", "Гончаров"))


def seed(world: World) -> None:
    if world.users:
        return
    for key, (id_, first, last, username, language) in PEOPLE.items():
        world.put(
            {
                "id": id_,
                "key": key,
                "first_name": first,
                **({"last_name": last} if last else {}),
                "username": username,
                "language_code": language,
            },
            "users",
            id_,
        )
    names = FIRST_NAMES.split()
    for number in range(SUBSCRIBERS):
        first = names[number % len(names)]
        hers, his = LAST_NAMES[number // len(names)]
        id_ = FIRST_SUBSCRIBER + number
        world.put(
            {
                "id": id_,
                "key": f"subscriber{number + 1}",
                "first_name": first,
                "last_name": hers if first[-1] in "ая" else his,
                "username": f"subscriber{number + 1}",
                "language_code": "ru" if number % 5 else "en",
                "subscriber": True,
            },
            "users",
            id_,
        )
    members = {str(PEOPLE[key][0]): {"status": "member"} for key in ("user1", "user2")}
    admins = {str(PEOPLE["admin"][0]): {"status": "creator"}, str(PEOPLE["editor"][0]): {"status": "administrator"}}
    shared: tuple[tuple[int, str, str, str | None], ...] = (
        (CHANNEL, "channel", "Новости", "news"),
        (GROUP, "supergroup", "Команда", None),
    )
    for id_, type_, title, name in shared:
        world.put(
            {
                "id": id_,
                "type": type_,
                "title": title,
                **({"username": name} if name else {}),
                "seeded": True,
                "members": {**admins, **members},
            },
            "chats",
            id_,
        )
    world.commit()
