"""The command: the time of whole processes, side by side, and where it goes."""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from generator import TrainingSpec, generate

ROUNDS = 15
CHOICES = ("--style", "functional", "--amp", "O2", "--accum", "4")

# Run in a process of its own: seconds of each stage of writing a script.
STAGES = """
import json, os, sys, tempfile, time
folder = tempfile.TemporaryDirectory()
path = os.path.join(folder.name, "train.py")
marks = [("", time.perf_counter())]
def mark(name): marks.append((name, time.perf_counter()))
import click; mark("import Click")
import generator.cli; mark("import the command line and the catalogue")
import generator.rules, generator.plan; mark("import rules and plan")
import generator.render; mark("import Jinja2")
from generator.formatting import format_source
from generator.writing import write
mark("import the rest")
spec = generator.TrainingSpec(style="functional", amp="O2", accum=4)
generator.rules.check(spec); plan = generator.plan.plan(spec); mark("check and plan")
text = generator.render.render(plan); mark("compile and render the templates")
text = format_source(text); mark("look for lines that are too long")
write(path, text); mark("write, flushed to the disk")
import black; mark("(not here: import Black)")
black.format_str(text, mode=black.Mode()); mark("(not here: Black on the whole)")
print(json.dumps({b[0]: b[1] - a[1] for a, b in zip(marks, marks[1:])}))
"""


def measure(folder: Path) -> dict[str, Any]:
    """Seconds of the commands, their ratios, scripts per second, and the stages."""
    commands = prepare(folder)
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(ROUNDS + 1):
        for name, words in commands.items():
            start = time.perf_counter()
            run(words, folder)
            if number:  # the first fills the caches
                seconds[name].append(time.perf_counter() - start)
    pairs = [
        ("msgen", "cookiecutter"),
        ("msgen", "copier"),
        ("msgen --help", "cookiecutter --help"),
    ]
    return {
        "seconds": {name: statistics.median(times) for name, times in seconds.items()},
        "ratios": {
            f"{one} / {other}": ratios(seconds[one], seconds[other])
            for one, other in pairs
            if other in seconds
        },
        "scripts_per_second": rates(),
        "stages": stages(folder),
    }


def ratios(one: list[float], other: list[float]) -> dict[str, float]:
    """Median and range of the rounds' ratios."""
    found = [a / b for a, b in zip(one, other, strict=True)]
    return {
        "median": statistics.median(found),
        "least": min(found),
        "most": max(found),
    }


def run(words: list[str], folder: Path) -> str:
    """Run a command of this environment as a user does, with compiled modules."""
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        words,
        cwd=folder,
        env=environ,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    return done.stdout


def prepare(folder: Path) -> dict[str, list[str]]:
    """The commands, and for the others a template of one file as long as the script."""
    here = Path(sys.executable).parent
    commands = {
        "python": [sys.executable, "-c", "pass"],
        "python, import click": [sys.executable, "-c", "import click"],
        "msgen --help": [str(here / "msgen"), "--help"],
        "msgen": [str(here / "msgen"), *CHOICES, "-o", "train.py", "--force"],
    }
    text = generate(TrainingSpec(style="functional", amp="O2", accum=4))
    lines = [line for line in text.splitlines() if not set("{%#}") & set(line)]
    lines += ["pass"] * (len(text.splitlines()) - len(lines) - 1)
    if importlib.util.find_spec("cookiecutter"):
        inner = folder / "cookiecutter" / "{{cookiecutter.name}}"
        inner.mkdir(parents=True)
        (inner.parent / "cookiecutter.json").write_text('{"name": "o", "accum": "4"}')
        body = ["ACCUM = {{cookiecutter.accum}}", *lines]
        (inner / "train.py").write_text("\n".join(body) + "\n")
        program = str(here / "cookiecutter")
        commands["cookiecutter --help"] = [program, "--help"]
        commands["cookiecutter"] = [program, "--no-input", "-f", "cookiecutter"]
    if importlib.util.find_spec("copier"):
        source = folder / "copier"
        source.mkdir()
        (source / "copier.yml").write_text("accum:\n  type: int\n  default: 4\n")
        body = ["ACCUM = {{ accum }}", *lines]
        (source / "train.py.jinja").write_text("\n".join(body) + "\n")
        program = str(here / "copier")
        commands["copier"] = [program, "copy", "-f", "--quiet", "copier", "copied"]
    return commands


def rates() -> dict[str, float]:
    """Scripts per second in one process, Black included where there is work for it."""
    common = [
        TrainingSpec(style=style, amp=amp, accum=accum, seed=seed)
        for style in ("functional", "cell", "model")
        for amp in ("O0", "O1", "O2")
        for accum in (1, 4)
        for seed in range(5)
    ]
    broken = [
        TrainingSpec(optimizer="momentum", weight_decay=0.01, seed=seed)
        for seed in range(40)
    ]
    found = {}
    for name, specs in (("no line too long", common), ("asking Black", broken)):
        generate(specs[0])
        start = time.perf_counter()
        for spec in specs:
            generate(spec)
        found[name] = len(specs) / (time.perf_counter() - start)
    return found


def stages(folder: Path) -> dict[str, float]:
    """Median seconds of the stages of writing a script, in fresh processes."""
    runs = [json.loads(run([sys.executable, "-c", STAGES], folder)) for _ in range(7)]
    return {name: statistics.median(one[name] for one in runs) for name in runs[0]}
