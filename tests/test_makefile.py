"""The Makefile, in a folder of its own with a space in its name; nothing is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import ROOT


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "a folder"
    (folder / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(ROOT / "Makefile", folder)
    for name in ("requirements-dev.lock", "pyproject.toml", ".venv/.ready"):
        (folder / name).touch()
    script(folder / ".venv/bin/python", f'exec {sys.executable} "$@"')
    script(folder / ".venv/bin/chronos", "echo up")
    return folder


def script(path: Path, line: str) -> Path:
    path.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "PYTHON")
    }
    return subprocess.run(
        ["make", *arguments], cwd=folder, env={**environment, "HOME": str(folder / "home")},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def test_make_alone_lists_the_targets(project: Path) -> None:
    listed = [line.split()[1] for line in make(project).stdout.splitlines()]
    assert listed == ["help", "run", "test", "check", "bench", "chaos", "pictures", "clean", "lock"]


def test_another_python_than_that_of_the_environment_is_refused_in_one_line(project: Path) -> None:
    assert make(project, "run", f"PYTHON={sys.executable}").stdout == "up\n"
    other = script(project.parent / "python9", "echo '(9, 9)'")
    answer = make(project, "run", f"PYTHON={other}")
    assert answer.returncode == 2 and "another Python" in answer.stderr and "`make clean` first" in answer.stderr


def test_a_python_too_old_is_named(project: Path) -> None:
    shutil.rmtree(project / ".venv")
    # sitecustomize of a Python that calls itself 3.9
    (project.parent / "sitecustomize.py").write_text("import sys; sys.version_info = (3, 9)\n", encoding="utf-8")
    old = script(project.parent / "old", f'PYTHONPATH={project.parent} exec {sys.executable} "$@"')
    assert "Chronos needs Python 3.11 or newer" in make(project, "run", f"PYTHON={old}").stderr


def test_a_set_up_that_fails_leaves_no_half_environment(project: Path) -> None:
    shutil.rmtree(project / ".venv")
    failing = script(
        project.parent / "failing", f'case "$1" in -m) mkdir -p .venv/bin; exit 1;; esac; exec {sys.executable} "$@"'
    )
    assert make(project, "run", f"PYTHON={failing}").returncode == 2
    assert not (project / ".venv").exists()


def test_clean_keeps_the_data(project: Path) -> None:
    data = project / "home/.local/share/chronos/postgres"
    data.mkdir(parents=True)
    assert make(project, "clean").returncode == 0
    assert data.exists() and not (project / ".venv").exists()
