"""matplotlib, imported when the first chart is drawn: a worker that makes no report does not pay for it."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from chronos.config import settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_importing = threading.Lock()


def new_figure(width: int, height: int) -> Figure:
    """An empty figure of so many pixels, with a canvas of its own: nothing that two threads could share."""
    with _importing:
        _choose_folder()
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    figure = Figure(figsize=(width / 100, height / 100), dpi=100, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def font_files() -> dict[str, Path]:
    """DejaVu Sans as matplotlib ships it: "" and "B" (bold)."""
    with _importing:
        _choose_folder()
        import matplotlib
    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    return {"": folder / "DejaVuSans.ttf", "B": folder / "DejaVuSans-Bold.ttf"}


def _choose_folder() -> None:
    """Where matplotlib keeps its list of fonts; left alone it would take the home directory."""
    if os.environ.get("MPLCONFIGDIR"):
        return
    folder = settings().data_dir / "matplotlib"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        usable = os.access(folder, os.W_OK)
    except OSError:
        usable = False
    if not usable:
        folder = Path(tempfile.mkdtemp(prefix="chronos-matplotlib-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["MPLCONFIGDIR"] = str(folder)
