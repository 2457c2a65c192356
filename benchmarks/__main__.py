"""``make bench``, or ``python -m benchmarks [PART ...]``: measure, and write it down.

The parts are all run if none is named. What a part measured goes into results.json in
place of what was there; the tables of README.md and the picture are made from that.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks import command, report, steps
from benchmarks.rounds import ROOT, TUNING

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
PACKAGES = ("mindspore", "torch", "cookiecutter", "copier", "black", "jinja2", "click")


def machine() -> dict[str, Any]:
    """What was measured on."""
    model, flags = platform.machine(), ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":")[1].strip()
        if line.startswith("flags"):
            flags = line
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "avx512": "avx512f" in flags,
        "python": platform.python_version(),
        "versions": versions,
    }


def all_steps(folder: Path, device: str) -> list[dict[str, Any]]:
    """The step, of every network and level."""
    return [
        record
        for plan in steps.PLANS
        for amp in steps.LEVELS
        for record in steps.measure(plan, amp, folder, device)
    ]


def whole_scripts(folder: Path, device: str) -> list[dict[str, Any]]:
    """Scripts from start to end."""
    records = []
    for network, amp, kind, updates in (
        ("mlp", "O0", "single", 200),
        ("lenet5", "O0", "single", 200),
        ("lenet5", "O2", "window", 60),
        ("resnet18", "O0", "single", 50),
    ):
        for style in ("functional", "model"):
            script = folder / f"{network}_{amp}_{style}_{kind}.py"
            words = ["-m", "benchmarks.loop", str(script), str(updates), device]
            environ = {k: v for k, v in os.environ.items() if k not in TUNING}
            done = subprocess.run(
                [sys.executable, *words],
                cwd=folder,
                env=environ | {"GLOG_v": "3", "PYTHONPATH": str(ROOT)},
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                check=True,
            )
            about = {"network": network, "amp": amp, "style": style}
            about["N"] = 1 if kind == "single" else 4
            records.append(about | json.loads(done.stdout))
    return records


PARTS: dict[str, Callable[[Path, str], Any]] = {
    "command": lambda folder, _device: command.measure(folder),
    "compile": steps.compilation,
    "memory": steps.memory,
    "scripts": whole_scripts,
    "reader": steps.as_a_reader_runs_them,
    "isa": steps.instruction_set,
    "steps": all_steps,
}


def main() -> None:
    """Run the parts that are named, and report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--device", choices=["auto", "CPU", "Ascend"], default="auto")
    args = parser.parse_args()
    for part in set(args.parts) - {*PARTS, "report"}:
        parser.error(f"there is no part {part}; there are {', '.join(PARTS)}")
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if results.get("machine") != machine():
        results = {"machine": machine()}  # what was measured elsewhere is no neighbour
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        steps.write_scripts(folder)
        for part in args.parts or PARTS:
            if part == "report":
                continue
            start = time.perf_counter()
            results[part] = PARTS[part](folder, args.device)
            print(f"{part}: {time.perf_counter() - start:.0f} s", flush=True)
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    report.write(results, HERE)


if __name__ == "__main__":
    main()
