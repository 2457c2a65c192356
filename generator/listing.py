"""The catalogue as a table for people and as data for programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generator.catalog import (
    AMP_DTYPES,
    AMP_LEVELS,
    DATASETS,
    DEVICES,
    LOSS_SCALES,
    LR_SCHEDULES,
    MODELS,
    MODES,
    OPTIMIZERS,
    STYLES,
    Dataset,
    Entry,
    Optimizer,
)
from generator.catalog.options import format_value

CATALOGUES: Mapping[str, Mapping[str, Entry]] = {
    "styles": STYLES,
    "amp": AMP_LEVELS,
    "dtypes": AMP_DTYPES,
    "loss-scales": LOSS_SCALES,
    "models": MODELS,
    "datasets": DATASETS,
    "optimizers": OPTIMIZERS,
    "lr-schedules": LR_SCHEDULES,
    "modes": MODES,
    "devices": DEVICES,
}


def entries(name: str) -> list[dict[str, Any]]:
    """The entries of one catalogue as JSON has them."""
    return [_as_data(entry) for entry in CATALOGUES[name].values()]


def _as_data(entry: Entry) -> dict[str, Any]:
    data: dict[str, Any] = {
        "name": entry.key,
        "title": entry.title,
        "summary": entry.summary,
    }
    if isinstance(entry, Optimizer):
        data |= {"lr": entry.lr, "weight_decay": entry.weight_decay}
    if isinstance(entry, Dataset):
        data |= {"classes": entry.classes, "needs": entry.needs, "files": entry.files}
    return data


def table(name: str) -> str:
    """One catalogue as text: a heading, then an entry per line."""
    catalogue = CATALOGUES[name]
    width = max(len(key) for key in catalogue)
    lines = [f"{name}:"]
    for key, entry in catalogue.items():
        note = ""
        if isinstance(entry, Optimizer):
            note = f" (lr {format_value(entry.lr)})"
        if isinstance(entry, Dataset) and entry.needs:
            note = f" (needs {entry.needs})"
        lines.append(f"  {key:{width}}  {entry.summary}{note}")
    return "\n".join(lines)
