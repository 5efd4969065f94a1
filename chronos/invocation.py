"""This program and its folders as a person can type and read them in another terminal."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path


def short(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def program(folder: Path) -> str:
    """This program as somebody in another terminal, in this working folder, can type it."""
    script = Path(sys.argv[0]).absolute()
    if script.name != "chronos":
        script = Path(sys.executable).with_name("chronos")
    on_path = shutil.which("chronos")
    if not script.exists():
        typed = f"{shlex.quote(sys.executable)} -m chronos.cli"
    elif on_path and os.path.samefile(on_path, script):
        typed = "chronos"
    else:
        here = script.relative_to(Path.cwd()) if script.is_relative_to(Path.cwd()) else script
        typed = shlex.quote(str(here) if "/" in str(here) else f"./{here}")
    if folder == Path.home() / ".local/share/chronos":
        return typed
    return f"CHRONOS_DATA_DIR={shlex.quote(str(folder))} {typed}"
