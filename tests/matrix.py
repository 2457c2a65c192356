"""Runs the whole execution matrix and writes the table of it; `make test-matrix`.

Every valid style × level × type × loss scale × accum × mode × optimizer is written as a
script. Those in float16 are executed on this machine's CPU and checked as the tests
check theirs; all of them, and the examples, go through the Ascend dry run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any

from combinations import matrix_specs, name_of
from harness import FOUR_UPDATES, TESTS, Run, check_training, environment

from generator import TrainingSpec, generate
from generator.verify.ascend import Outcome, Verdict, dry_run
from generator.verify.ascend.judgement import SHORT

TABLE = TESTS.parent / "docs" / "matrix.md"
HEAD = """# The execution matrix

Written by `make test-matrix`, MindSpore {version}. Each script trains the MLP, and a
cell counts the scripts that are good, with `--accum 1` and `--accum 4`. Executed means:
four updates on the CPU, all losses and all saved values finite, every weight moved. The
Ascend dry run compiles a script with MindSpore's own Ascend plugin, whose hardware
libraries (CANN) are replaced by stubs: **nothing in it was executed on an NPU**.
"""
CHUNK = 24  # scripts a process, which imports MindSpore once

# The program of a process: runs the main() of every script that it is given.
WORKER = """
import importlib.util, json, os, pathlib, sys, traceback

for path in map(pathlib.Path, sys.argv[1:]):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
        output = path.with_suffix("")
        module.main(["--device", "CPU", "--output-dir", str(output), *ARGUMENTS])
        said = ""
    except BaseException:
        said = traceback.format_exc()
    print(json.dumps({"script": path.stem, "said": said[-1000:]}), flush=True)
"""


def execute(specs: list[TrainingSpec], folder: Path) -> Iterator[tuple[int, str]]:
    """Execute scripts on the CPU; yields the index of each and what went wrong."""
    worker = folder / "worker.py"
    worker.write_text(WORKER.replace("ARGUMENTS", repr(FOUR_UPDATES)))
    scripts = []
    for index, spec in enumerate(specs):
        scripts.append(folder / f"script{index}.py")
        scripts[-1].write_text(generate(spec), encoding="utf-8")

    def run(start: int) -> list[tuple[int, str]]:
        chunk = range(start, min(start + CHUNK, len(specs)))
        done = subprocess.run(
            [sys.executable, worker, *(scripts[index] for index in chunk)],
            cwd=folder,
            env=environment(),
            text=True,
            capture_output=True,
            check=False,
        )
        said = {}
        for line in done.stdout.splitlines():
            if line.startswith('{"script"'):
                record = json.loads(line)
                said[record["script"]] = record["said"]
        found = []
        for index in chunk:
            wrong = said.get(f"script{index}", f"the process ended: {done.stderr}")
            if not wrong:
                output = folder / f"script{index}"
                try:
                    check_training(specs[index], Run(0, "", "", output))
                except AssertionError as error:
                    wrong = str(error) or "a check failed"
            found.append((index, wrong))
        return found

    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(run, range(0, len(specs), CHUNK)):
            yield from found


def dry_run_all(scripts: list[Path]) -> Iterator[Outcome]:
    """The Ascend dry run of every script, two at once."""

    def judge(script: Path) -> Outcome:
        return dry_run(script, SHORT)

    with ThreadPoolExecutor(2) as pool:
        yield from pool.map(judge, scripts)


def table(specs: list[TrainingSpec], good: list[bool]) -> str:
    """How many of each cell's scripts are good: those with --accum 1 and 4."""
    columns = list(dict.fromkeys((s.amp, s.loss_scale) for s in specs))
    rows: dict[tuple[str, str, str], dict[Any, list[bool]]] = {}
    for spec, passed in zip(specs, good, strict=True):
        row = rows.setdefault((spec.style, spec.mode, spec.optimizer), {})
        row.setdefault((spec.amp, spec.loss_scale), []).append(passed)
    heads = [
        "style",
        "mode",
        "optimizer",
        *(f"{amp} {scale}" for amp, scale in columns),
    ]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for names, cells in rows.items():
        shown = [f"{sum(cells[column])}/{len(cells[column])}" for column in columns]
        lines.append(f"| {' | '.join([*names, *shown])} |")
    return "\n".join(lines)


def show(name: str, count: int, done: int) -> None:
    print(f"\r{name} {done}/{count}", end="", file=sys.stderr, flush=True)


def section(title: str, specs: list[TrainingSpec], said: list[str]) -> str:
    """A table under its title, and below it every script that is not good."""
    good = [not text for text in said]
    lines = [f"## {title}", "", f"{sum(good)} of {len(specs)} scripts.", ""]
    lines += [table(specs, good), ""]
    for spec, text in zip(specs, said, strict=True):
        if text:
            lines.append(f"- `{name_of(spec)}`: {text.strip().splitlines()[-1]}")
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    """Run all, write the table; the exit status is 1 if any script is not good."""
    half, bfloat = matrix_specs("float16"), matrix_specs("bfloat16")
    version = metadata.version("mindspore")
    parts = [HEAD.format(version=version)]
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        said = [""] * len(half)
        for done, (index, wrong) in enumerate(execute(half, folder), start=1):
            said[index] = wrong
            show("executed", len(half), done)
        parts.append(section("Executed on the CPU, float16", half, said))
        bad += sum(map(bool, said))
        for dtype, specs in (("float16", half), ("bfloat16", bfloat)):
            scripts = [folder / f"{dtype}{index}.py" for index in range(len(specs))]
            for spec, script in zip(specs, scripts, strict=True):
                script.write_text(generate(spec), encoding="utf-8")
            said = []
            for outcome in dry_run_all(scripts):
                passed = outcome.verdict is Verdict.PASS
                said.append(
                    "" if passed else f"{outcome.verdict.name} {outcome.reason}"
                )
                show(f"dry run {dtype}", len(specs), len(said))
            parts.append(section(f"Ascend dry run, {dtype}", specs, said))
            bad += sum(map(bool, said))
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text("\n".join(parts), encoding="utf-8")
    print(f"\n{TABLE.name}: {bad} scripts are not good", file=sys.stderr)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
