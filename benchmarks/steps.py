"""The step: a window of every style against the other ways to make one."""

from __future__ import annotations

import importlib.util
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.rounds import CAP_ONLY, DEFAULTS, Contestant, Worker, race, ratio
from generator import TrainingSpec, generate
from generator.catalog import MODELS, STYLES

LEVELS = ("O0", "O2")
LENGTHS = (1, 4, 16)
# In the order of a table: our styles, then the others.
OTHERS = ("one batch", "accumulator", "lists", "Model.train", "PyTorch")


@dataclass(frozen=True)
class Plan:
    """How much of a network is measured: windows a round, by the window's length."""

    network: str
    batch: int
    rounds: int
    windows: dict[int, int]


PLANS = (
    Plan("mlp", 32, 8, {1: 25, 4: 25, 16: 5}),
    Plan("lenet5", 32, 8, {1: 25, 4: 25, 16: 4}),
    Plan("resnet18", 16, 3, {1: 4, 4: 1, 16: 1}),
)


def write_scripts(folder: Path) -> None:
    """The scripts whose steps are measured; N is no part of a step that accumulates."""
    for plan in PLANS:
        for amp in LEVELS:
            for style in STYLES:
                for kind, accum in (("single", 1), ("window", 4)):
                    spec = TrainingSpec(
                        style=style,
                        amp=amp,
                        accum=accum,
                        model=plan.network,
                        batch_size=plan.batch,
                    )
                    name = f"{plan.network}_{amp}_{style}_{kind}.py"
                    (folder / name).write_text(generate(spec), encoding="utf-8")


def request(plan: Plan, amp: str, folder: Path, device: str) -> dict[str, Any]:
    """What a worker is started with."""
    shape = MODELS[plan.network].synthetic_shape
    return {
        "network": plan.network,
        "amp": amp,
        "batch": plan.batch,
        "shape": [shape.channels, shape.size, shape.size],
        "scripts": str(folder),
        "device": device,
    }


def variants(plan: Plan, amp: str, length: int) -> list[str]:
    """Who takes part: long windows of a large network only in one style."""
    long = plan.network == "resnet18" and length == 16
    styles = ["functional"] if long else list(STYLES)
    others = ["one batch"]
    if length == 1:
        others.append("Model.train")
    else:
        others += ["accumulator", "lists"]
    # PyTorch's own mixed precision on a CPU is in bfloat16: nothing to compare.
    if amp == "O0" and importlib.util.find_spec("torch"):
        others.append("PyTorch")
    return styles + others


def measure(plan: Plan, amp: str, folder: Path, device: str) -> list[dict[str, Any]]:
    """All lengths of a network at a level; one record a length."""
    asked = request(plan, amp, folder, device)
    records = []
    with ExitStack() as stack:
        ours = stack.enter_context(Worker(asked, folder))
        torch = stack.enter_context(Worker({**asked, "framework": "torch"}, folder))
        for length in LENGTHS:
            group = {
                name: Contestant(
                    torch if name == "PyTorch" else ours,
                    name,
                    length,
                    plan.windows[length],
                )
                for name in variants(plan, amp, length)
            }
            race(list(group.values()), plan.rounds)
            records.append(record(plan, amp, length, group))
    return records


def record(
    plan: Plan, amp: str, length: int, group: dict[str, Contestant]
) -> dict[str, Any]:
    """What a group's race gave."""
    return {
        "network": plan.network,
        "amp": amp,
        "N": length,
        "batch": plan.batch,
        "seconds": {name: one.summary() for name, one in group.items()},
        "ratios": {
            style: {
                other: ratio(group[style], group[other])
                for other in OTHERS
                if other in group
            }
            for style in STYLES
            if style in group
        },
    }


def as_a_reader_runs_them(folder: Path, device: str) -> list[dict[str, Any]]:
    """LeNet-5 against the others with what a reader has set in the environment.

    That is nothing ("library defaults"), or the cap for oneDNN ("cap only").
    """
    plan, length = PLANS[1], 4
    records = []
    for amp in LEVELS:
        asked = request(plan, amp, folder, device)
        for settings, windows in ((DEFAULTS, 2), (CAP_ONLY, 10)):
            with Worker(asked, folder) as ours, Worker(asked, folder, settings) as base:
                group = {
                    "functional": Contestant(ours, "functional", length, 10),
                    "one batch": Contestant(base, "one batch", length, windows),
                    "accumulator": Contestant(base, "accumulator", length, windows),
                    "lists": Contestant(base, "lists", length, windows),
                }
                race(list(group.values()), 5)
            name = "library defaults" if settings is DEFAULTS else "cap only"
            records.append({"settings": name, **record(plan, amp, length, group)})
    return records


def instruction_set(folder: Path, device: str) -> dict[str, Any]:
    """ResNet-18's step against that of the same script with oneDNN's own choice."""
    plan = PLANS[2]
    asked = request(plan, "O0", folder, device)
    default = {"ONEDNN_MAX_CPU_ISA": "DEFAULT"}
    with Worker(asked, folder) as ours, Worker(asked, folder, default) as theirs:
        capped = Contestant(ours, "functional", 1, 5)
        plain = Contestant(theirs, "functional", 1, 1)
        capped.warm_up()
        plain.first = theirs.run("functional", 1, 1)[0]  # minutes, on some machines
        for one in (capped, plain):
            one.round()
    return record(plan, "O0", 1, {"functional": capped, "one batch": plain})


def compilation(folder: Path, device: str) -> dict[str, Any]:
    """Seconds of the first window, compilation and all, of N = 2 and N = 16."""
    plan = PLANS[1]
    asked = request(plan, "O2", folder, device)
    first: dict[int, list[float]] = {2: [], 16: []}
    for _ in range(4):
        for length, seconds in first.items():
            with Worker(asked, folder) as worker:
                call = worker.run("functional", length, 1)[0]
                step = min(worker.run("functional", length, 3))
                seconds.append(call - step)
    return {"network": plan.network, "amp": "O2", "seconds": first}


def memory(folder: Path, device: str) -> dict[str, Any]:
    """Peak memory of ResNet-18 in bytes, above that of the process before."""
    plan = PLANS[2]
    asked = request(plan, "O0", folder, device)
    peaks = {}
    for name, variant, length in (
        ("N = 1", "functional", 1),
        ("N = 8", "functional", 8),
        ("one batch of 128", "one batch", 8),
    ):
        with Worker(asked, folder) as worker:
            before = worker.run("peak memory", 0, 0)[0]
            worker.run(variant, length, 3)
            peaks[name] = worker.run("peak memory", 0, 0)[0] - before
    return {"network": plan.network, "batch": plan.batch, "bytes": peaks}
