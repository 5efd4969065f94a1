"""Who may do what; strangers can do nothing but ask for access."""

from __future__ import annotations

import pytest

from chronos import people
from chronos.bot.access import ANYONE
from chronos.bot.commands import COMMANDS
from chronos.bot.routers import all_of_them
from chronos.errors import BadInput
from chronos.models.user import Role
from tests.bot.conftest import Bot, Who, menu_of
from tests.processes import eventually


def test_a_stranger_is_shown_the_number_to_hand_to_an_admin(bot: Bot) -> None:
    stranger = bot.new(None)
    said = stranger.says("/start")
    assert str(stranger.id) in said["text"]
    assert [entity["type"] for entity in said["entities"]] == ["code"]


@pytest.mark.parametrize("words", ["/report 7d", "/status", "/queues", "/stop", "hello", "/grant 1 admin"])
def test_nothing_else_works_for_a_stranger(bot: Bot, words: str) -> None:
    stranger = bot.new(None)
    assert "Доступа пока нет" in stranger.says(words)["text"]
    assert bot.sql("select count(*) from tasks where user_id = :id", id=stranger.id) == [(0,)]


def test_every_handler_declares_who_may_use_it() -> None:
    handlers = [
        (handler.callback.__qualname__, handler.flags.get("role"))
        for router in all_of_them()
        for observer in router.observers.values()
        for handler in observer.handlers
    ]
    assert len(handlers) > 30
    assert [name for name, role in handlers if role != ANYONE and role not in set(Role)] == []
    assert sorted(name for name, role in handlers if role == ANYONE) == ["membership", "start"]


def test_an_admins_button_does_nothing_for_who_is_no_admin_any_more(bot: Bot) -> None:
    admin = bot.new(Role.ADMIN)
    bot.new(Role.ADMIN)
    admin.says("/queues")
    people.grant(bot.here, admin.id, Role.USER)
    assert admin.is_answered("⏸ посты") == "Это может только администратор."
    people.revoke(bot.here, admin.id)
    assert admin.is_answered("⏸ посты") == "Доступа нет: обратитесь к администратору"
    assert bot.sql("select count(*) from queue_states where queue = 'post' and paused_at is not null") == [(0,)]


@pytest.mark.parametrize("command", [command.name for command in COMMANDS if command.role is Role.ADMIN])
def test_a_user_is_refused_what_only_admins_may(user: Who, command: str) -> None:
    assert user.says(f"/{command} 1")["text"] == "Это может только администратор."


def test_help_lists_what_this_person_may_do(user: Who, admin: Who) -> None:
    assert "/dlq" not in user.says("/help")["text"]
    assert "/dlq" in admin.says("/help")["text"]


def test_a_person_who_is_let_in_is_told_and_gets_a_menu(bot: Bot, admin: Who) -> None:
    friend = bot.new(None)
    friend.says("/start")
    said = admin.says(f"/grant {friend.id} редактор")["text"]
    assert "теперь редактор" in said and "сообщил" in said
    eventually(lambda: "вы редактор" in friend.last()["text"], 10)
    assert bot.sql("select role, granted_by from users where id = :id", id=friend.id) == [("editor", admin.id)]
    eventually(lambda: "queues" not in menu_of(bot, friend) and "report" in menu_of(bot, friend), 10)
    assert "доступа больше нет" in admin.says(f"/revoke {friend.id}")["text"]
    eventually(lambda: friend.last()["text"] == "Ваш доступ к боту закрыт.", 10)
    assert "Доступа пока нет" in friend.says("/report")["text"]


def test_somebody_who_has_never_written_can_be_let_in(bot: Bot, admin: Who) -> None:
    assert "Сообщить не удалось" in admin.says("/grant 987654321")["text"]
    assert bot.sql("select role from users where id = 987654321") == [("user",)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("/grant", "Например"),
        ("/grant Anna", "не номер"),
        ("/grant 5 king", "Роли «king» нет"),
        ("/revoke 99999999", "и так нет доступа"),
    ],
)
def test_a_wrong_grant_is_explained(admin: Who, words: str, said: str) -> None:
    assert said in admin.says(words)["text"]


def test_the_last_admin_stays(runtime: object) -> None:
    from chronos.runtime import Runtime

    assert isinstance(runtime, Runtime)
    people.grant(runtime, 5, Role.ADMIN)
    for change in (lambda: people.revoke(runtime, 5), lambda: people.grant(runtime, 5, Role.USER)):
        with pytest.raises(BadInput, match="last admin"):
            change()
    people.grant(runtime, 6, Role.ADMIN)
    assert people.revoke(runtime, 5).before is Role.ADMIN
    assert [person.id for person in people.with_roles(runtime)] == [6]


def test_an_invitation_makes_one_admin_once(bot: Bot) -> None:
    code = people.invite_admin(bot.here)
    assert bot.sql("select count(*) from invitations where code_hash like :code", code=f"%{code}%") == [(0,)]
    first, second = bot.new(None), bot.new(None)
    assert "теперь вы администратор" in first.says(f"/start {code}")["text"]
    assert "уже использована" in second.says(f"/start {code}")["text"]
    assert bot.sql("select role from users where id = any(:ids) order by id", ids=[first.id, second.id]) == [
        ("admin",),
        (None,),
    ]
    people.revoke(bot.here, first.id)
    assert "уже использована" in first.says(f"/start {code}")["text"]


def test_start_subscribes_and_stop_ends_that(bot: Bot, user: Who) -> None:
    user.says("/start")
    found = "select unsubscribed_at is null from subscribers where user_id = :id"
    assert bot.sql(found, id=user.id) == [(True,)]
    assert "отписались" in user.says("/stop")["text"]
    assert bot.sql(found, id=user.id) == [(False,)]
    assert "и так не подписаны" in user.says("/stop")["text"]
    user.says("/start")
    assert bot.sql(found, id=user.id) == [(True,)]
