"""The chat page in Chromium: chat, buttons, pictures, files, live updates, and nothing that a text could inject."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from telegram_sandbox.client import Sandbox
from telegram_sandbox.process import SandboxProcess
from tests.telegram_sandbox.conftest import EchoBot
from tests.telegram_sandbox.echo_bot import png

ARGUMENTS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync"
)


@pytest.fixture(scope="module")  # its event loop must not be there for tests that start one of their own
def browser(chromium: Path) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS.split())
        yield made
        made.close()


class Pages:
    def __init__(self, browser: Browser, url: str, bot: int, person: str) -> None:
        self.browser, self.url, self.bot, self.person = browser, url, bot, person
        self.errors: list[str] = []
        self._contexts = []  # type: ignore[var-annotated]

    def open(self, query: str = "", width: int = 1100, locale: str = "ru-RU") -> Page:
        """With the chat of our bot open."""
        context = self.browser.new_context(
            viewport={"width": width, "height": 800}, locale=locale, accept_downloads=True
        )
        self._contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda line: self.errors.append(line.text) if line.type == "error" else None)
        page.goto(f"{self.url}/?{query or f'as={self.person}'}")
        return page

    def chat(self, query: str = "", width: int = 1100, locale: str = "ru-RU") -> Page:
        page = self.open(query, width, locale)
        page.locator(f"[data-place^='{self.bot}:']").click()
        return page

    def close(self) -> None:
        for context in self._contexts:
            context.close()


@pytest.fixture
def pages(browser: Browser, sandbox: Sandbox, echo_bot: EchoBot, person: str) -> Iterator[Pages]:
    made = Pages(browser, sandbox.url, echo_bot.id, person)
    yield made
    made.close()
    assert made.errors == []


def say(page: Page, text: str) -> None:
    page.get_by_role("textbox", name="Сообщение").fill(text)
    page.keyboard.press("Enter")


def begin(page: Page) -> None:
    page.get_by_role("button", name="Начать").click()
    expect(page.locator(".other .text")).to_contain_text("Здравствуйте!")


def test_a_person_starts_the_bot_and_talks_with_it(pages: Pages) -> None:
    page = pages.chat()
    begin(page)
    expect(page.locator(".own .text")).to_contain_text("/start")
    say(page, "привет <b>всем</b>")
    expect(page.locator(".other .text").last).to_contain_text("привет <b>всем</b>")
    expect(page.locator(".entry.chosen .last")).to_have_text("привет <b>всем</b>")


def test_the_reply_keyboard_says_its_text(pages: Pages) -> None:
    page = pages.chat()
    begin(page)
    page.locator(".key", has_text="Отчёт").click()
    expect(page.locator(".other .text").last).to_contain_text("Отчёт")


def test_a_button_edits_its_message_and_the_answer_is_a_toast_or_an_alert(pages: Pages) -> None:
    page = pages.chat()
    begin(page)
    say(page, "/buttons")
    page.get_by_role("button", name="Да", exact=True).click()
    expect(page.locator(".toast")).to_have_text("Вы выбрали yes")
    expect(page.locator(".other .text").last).to_contain_text("Выбрано: yes")
    expect(page.locator(".other").last.locator(".edited")).to_be_visible()
    expect(page.locator(".button")).to_have_count(0)
    say(page, "/buttons")
    page.locator(".button", has_text="Нет").click()
    expect(page.get_by_role("alertdialog")).to_contain_text("Вы выбрали no")
    page.get_by_role("button", name="OK").click()
    expect(page.get_by_role("alertdialog")).to_have_count(0)


def test_a_deleted_message_goes_away(pages: Pages) -> None:
    page = pages.chat()
    begin(page)
    say(page, "/buttons")
    page.locator(".button", has_text="Удалить").click()
    expect(page.locator(".button")).to_have_count(0)
    expect(page.locator(".message")).to_have_count(3)


def test_typing_a_slash_offers_the_commands(pages: Pages) -> None:
    page = pages.chat()
    begin(page)
    page.get_by_role("textbox", name="Сообщение").press_sequentially("/bu")
    offered = page.get_by_role("option")
    expect(offered).to_have_text(["/buttonsКнопки"])
    offered.click()
    expect(page.locator(".button").first).to_be_visible()


def test_formatted_text_is_shown_as_meant(pages: Pages) -> None:
    page = pages.chat()
    begin(page)
    say(page, "/rich")
    text = page.locator(".other .text").last
    expect(text.locator("strong em")).to_have_text("и курсив")
    expect(text.locator("pre code")).to_have_text("print(1)")
    expect(text.locator(".pre-head span")).to_have_text("python")
    expect(text.locator("a")).to_have_attribute("href", "https://example.com/a")
    expect(text.locator("a")).to_have_attribute("rel", re.compile("noopener"))
    spoiler = text.locator(".spoiler")
    expect(spoiler).to_have_css("color", "rgba(0, 0, 0, 0)")
    spoiler.click()
    expect(spoiler).to_have_class(re.compile("shown"))
    expect(page.locator(".quoted")).to_contain_text("/rich")


def test_pictures_are_shown_and_documents_downloaded(pages: Pages) -> None:
    page = pages.chat()
    begin(page)
    say(page, "/picture")
    image = page.locator(".photo img")
    expect(image).to_be_visible()
    assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") == 320
    page.locator(".photo").click()
    expect(page.locator("dialog.viewer img")).to_be_visible()
    page.keyboard.press("Escape")
    with page.expect_download() as download:
        page.locator("a.document").click()
    assert download.value.suggested_filename == "отчёт.pdf"
    assert download.value.path().read_bytes() == b"%PDF-1.4"


def test_a_person_sends_a_photo_and_a_file(pages: Pages, tmp_path: Path) -> None:
    page = pages.chat()
    begin(page)
    page.locator("input[type=file]").set_input_files({"name": "a.png", "mimeType": "image/png", "buffer": png(60, 40)})
    page.get_by_role("textbox", name="Подпись").fill("моё фото")
    page.get_by_role("button", name="Отправить").last.click()
    expect(page.locator(".own .photo")).to_be_visible()
    expect(page.locator(".other .text").last).to_contain_text(f"photo of {len(png(60, 40))} bytes")
    page.locator("input[type=file]").set_input_files({"name": "я.txt", "mimeType": "text/plain", "buffer": b"hi"})
    page.get_by_role("button", name="Отправить").last.click()
    expect(page.locator(".other .text").last).to_contain_text("я.txt: hi")


def test_no_text_button_or_file_name_runs_a_script(pages: Pages) -> None:
    page = pages.chat()
    begin(page)
    say(page, "<script>window.hacked=1</script><img src=x onerror=window.hacked=1>")
    say(page, "/script")
    expect(page.locator(".document")).to_be_visible()
    expect(page.locator(".button")).to_contain_text("<img")
    assert page.evaluate("window.hacked") is None
    assert page.locator(".messages img, .messages script").count() == 0
    address = page.locator("a.document").get_attribute("href")
    headers = page.request.get(f"{pages.url}{address}").headers
    assert headers["content-disposition"].startswith("attachment")
    assert "sandbox" in headers["content-security-policy"]


def test_what_others_write_appears_by_itself_and_counts_as_unread(pages: Pages, sandbox: Sandbox) -> None:
    page = pages.chat("as=user1")
    other = pages.chat("as=admin")
    sandbox.say("коллеги!", "editor", chat="group")
    entry = page.locator("[data-place='-1001000000002']")
    expect(entry.locator(".last")).to_have_text("Эдуард: коллеги!")
    expect(entry.locator(".unread")).not_to_be_empty()
    other.locator("[data-place='-1001000000002']").click()
    say(other, "здесь")
    entry.click()
    expect(page.locator(".message.other .text").last).to_contain_text("здесь")
    expect(page.locator(".message.other .author").last).to_contain_text("Анна")


def test_only_admins_write_in_the_channel(pages: Pages) -> None:
    page = pages.open("as=user1")
    page.locator("[data-place='-1001000000001']").click()
    expect(page.locator(".composer")).to_have_text("В канал пишут только администраторы")
    page.locator(".person[data-key=editor]").click()
    page.locator("[data-place='-1001000000001']").click()
    say(page, "выпуск первый")
    expect(page.locator(".message .text").last).to_contain_text("выпуск первый")


def test_who_acts_is_switched_by_an_avatar_and_kept_over_a_reload(pages: Pages) -> None:
    page = pages.open("as=admin")
    page.locator(".person[data-key=user2]").click()
    expect(page.locator(".person.chosen")).to_contain_text("Oliver")
    page.reload()
    expect(page.locator(".person.chosen")).to_contain_text("Oliver")


def test_a_deep_link_sends_its_code_once(pages: Pages) -> None:
    page = pages.open(f"as={pages.person}&start=invite_1&bot={pages.bot}")
    expect(page.locator(".other .text")).to_contain_text("code invite_1")
    assert "start" not in page.url
    page.reload()
    page.locator(f"[data-place^='{pages.bot}:']").click()
    expect(page.locator(".own .text")).to_have_count(1)


def test_links_of_telegram_stay_inside(pages: Pages) -> None:
    page = pages.chat()
    begin(page)
    say(page, "/link")
    links = page.locator(".other .text a")
    links.first.click()
    expect(page.locator(".other .text").last).to_contain_text("code again")
    links.nth(1).click()
    expect(page.locator(".head h1")).to_have_text("Новости")


def test_a_bot_that_works_is_seen_typing(pages: Pages) -> None:
    page = pages.chat()
    begin(page)
    say(page, "/typing")
    expect(page.locator(".head p")).to_have_text("печатает…")
    expect(page.locator(".entry.chosen .last")).to_have_text("печатает…")
    say(page, "x")
    expect(page.locator(".head p")).to_have_text("бот")


def test_before_the_first_bot_the_page_says_how_to_get_one(browser: Browser, tmp_path: Path) -> None:
    with SandboxProcess(tmp_path / "own") as own:
        pages = Pages(browser, own.url, 1, "admin")
        page = pages.open()
        expect(page.locator(".hint code")).to_have_text(own.url)
        own.client.bot(42, name="Chronos", username="chronos_bot")
        expect(page.locator(".head h1")).to_have_text("Chronos")
        expect(page.get_by_role("button", name="Начать")).to_be_visible()
        pages.close()


def test_a_message_is_answered_and_forwarded(pages: Pages) -> None:
    page = pages.chat()
    begin(page)
    page.locator(".other .bubble").first.click(button="right")
    page.get_by_role("menuitem", name="Ответить").click()
    say(page, "это ответ")
    expect(page.locator(".own .quoted")).to_contain_text("Здравствуйте!")
    page.locator(".own .bubble").last.click(button="right")
    page.get_by_role("menuitem", name="Переслать").click()
    page.locator(".choices button").first.click()
    expect(page.locator(".forwarded").last).to_contain_text("Пётр")


def test_a_bot_is_blocked_and_unblocked(pages: Pages) -> None:
    page = pages.chat()
    begin(page)
    page.get_by_role("button", name="Ещё").click()
    page.get_by_role("menuitem", name="Заблокировать бота").click()
    page.get_by_role("button", name="Разблокировать").click()
    say(page, "снова")
    expect(page.locator(".other .text").last).to_contain_text("снова")


def test_a_phone_shows_the_list_or_the_chat(pages: Pages) -> None:
    page = pages.open(width=390)
    expect(page.locator("#chat")).to_be_hidden()
    page.locator(f"[data-place^='{pages.bot}:']").click()
    expect(page.locator(".side")).to_be_hidden()
    begin(page)
    page.get_by_role("button", name="Назад").click()
    expect(page.locator(".side")).to_be_visible()
    expect(page.locator("#chat")).to_be_hidden()


def test_the_page_speaks_english_too(pages: Pages) -> None:
    page = pages.chat(locale="en-US")
    expect(page.get_by_role("button", name="Start")).to_be_visible()
    assert page.locator("html").get_attribute("lang") == "en"


def test_the_page_comes_back_after_the_sandbox_was_killed(browser: Browser, tmp_path: Path) -> None:
    with SandboxProcess(tmp_path / "own") as own:
        pages = Pages(browser, own.url, 1, "user1")
        page = pages.open()
        page.locator("[data-place='-1001000000002']").click()
        expect(page.locator(".head h1")).to_have_text("Команда")
        own.kill()
        expect(page.locator(".head p")).to_have_text("Соединение…")
        own.start()
        own.client.say("снова здесь", "admin", chat="group")
        expect(page.locator(".message .text")).to_contain_text("снова здесь")
        pages.close()
