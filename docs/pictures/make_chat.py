"""docs/pictures/chat-*.png: the pictures of README.md, from a `chronos up` of its own and headless Chromium.

python -m docs.pictures.make_chat
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from telegram_sandbox import running
from telegram_sandbox.client import Sandbox

FOLDER = Path(__file__).parent
CHROMIUM = "/usr/bin/chromium"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="chronos-pictures-") as folder:
        up = subprocess.Popen(
            [sys.executable, "-m", "chronos.cli", "up"],
            env={**os.environ, "CHRONOS_DATA_DIR": folder},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert up.stdout is not None
        try:
            for line in up.stdout:
                if line.startswith("Stop"):
                    break
            url = running.find(Path(folder) / "sandbox")
            assert url is not None, "the sandbox does not run"
            _draw(Sandbox(url))
        finally:
            up.send_signal(signal.SIGINT)
            up.wait(60)


def _draw(sandbox: Sandbox) -> None:
    sandbox.say("/start", as_="admin", wait=20)
    sandbox.say("/report", as_="admin", wait=20)
    sandbox.press("Москва", as_="admin", wait=20)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-quic"])
        page = browser.new_page(viewport={"width": 1180, "height": 1120}, locale="ru-RU", device_scale_factor=1)
        page.goto(f"{sandbox.url}/?as=admin")
        sandbox.press("7 дней", as_="admin", wait=60)
        _until(lambda: page.locator("img").count() > 0, "the chart is there")
        _shot(page, "chat-report")
        sandbox.say("/queues", as_="admin", wait=20)
        sandbox.say("/tasks", as_="admin", wait=20)
        _shot(page, "chat-operator")
        phone = browser.new_page(viewport={"width": 400, "height": 800}, locale="en-US", color_scheme="dark")
        sandbox.say("/help", as_="user2", wait=20)
        phone.goto(f"{sandbox.url}/?as=user2")
        phone.get_by_text("Chronos").first.click()
        _shot(phone, "chat-phone")
        browser.close()


def _shot(page: Page, name: str) -> None:
    page.wait_for_load_state("load")
    page.wait_for_timeout(1500)  # pictures are decoded, the list has scrolled
    page.screenshot(path=FOLDER / f"{name}.png")


def _until(check: Callable[[], Any], what: str) -> None:
    ends = time.monotonic() + 60
    while not check():
        assert time.monotonic() < ends, f"not within a minute: {what}"
        time.sleep(0.2)


if __name__ == "__main__":
    main()
