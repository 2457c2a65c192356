"""Runs the whole execution matrix and writes its tables; `make test-matrix`.

    python tests/matrix.py [cpu] [ascend-float16] [ascend-bfloat16]

Every valid style × level × type × loss scale × accum × mode × optimizer is written as a
script. Those in float16 are executed on this machine's CPU and checked as the tests
check theirs; all of them go through the Ascend dry run. Each of the three parts, all of
which are run if none is named, writes a table of its own into docs/matrix/.
"""

from __future__ import annotations

import argparse
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

TABLES = TESTS.parent / "docs" / "matrix"
CPU = """# Executed on the CPU, float16

Written by `make test-matrix`, with MindSpore {version}. Each script trains the MLP, and
a cell counts the scripts that are good, with `--accum 1` and `--accum 4`: four updates
on the CPU, all losses and all saved values finite, every weight moved.
"""
ASCEND = """# Ascend dry run, {dtype}

Written by `make test-matrix`, with MindSpore {version}. Each script trains the MLP, and
a cell counts the scripts that pass, with `--accum 1` and `--accum 4`. The dry run
compiles a script with MindSpore's own Ascend plugin, whose hardware libraries (CANN)
are replaced by stubs: **nothing in it was executed on an NPU**.
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
        counted = [cells.get(column, []) for column in columns]
        shown = [f"{sum(cell)}/{len(cell)}" for cell in counted]
        lines.append(f"| {' | '.join([*names, *shown])} |")
    return "\n".join(lines)


def show(name: str, count: int, done: int) -> None:
    print(f"\r{name} {done}/{count}", end="", file=sys.stderr, flush=True)


def write(part: str, head: str, specs: list[TrainingSpec], said: list[str]) -> int:
    """Write a part's table, and below it every script that is not good.

    ``said`` is what is wrong with each, or empty. Returns how many are not good.
    """
    good = [not text for text in said]
    lines = [head, f"{sum(good)} of {len(specs)} scripts.", "", table(specs, good), ""]
    for spec, text in zip(specs, said, strict=True):
        if text:
            lines.append(f"- `{name_of(spec)}`: {text.strip().splitlines()[-1]}")
    TABLES.mkdir(parents=True, exist_ok=True)
    path = TABLES / f"{part}.md"
    path.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    print(f"\n{path.name}: {good.count(False)} scripts are not good", file=sys.stderr)
    return good.count(False)


def on_cpu(part: str, folder: Path, version: str) -> int:
    """The part that is executed."""
    specs = matrix_specs("float16")
    said = [""] * len(specs)
    for done, (index, wrong) in enumerate(execute(specs, folder), start=1):
        said[index] = wrong
        show(part, len(specs), done)
    return write(part, CPU.format(version=version), specs, said)


def dry(part: str, folder: Path, version: str) -> int:
    """A part that is dry-run."""
    dtype = part.removeprefix("ascend-")
    specs = matrix_specs(dtype)
    scripts = [folder / f"script{index}.py" for index in range(len(specs))]
    for spec, script in zip(specs, scripts, strict=True):
        script.write_text(generate(spec), encoding="utf-8")
    said = []
    for outcome in dry_run_all(scripts):
        passed = outcome.verdict is Verdict.PASS
        said.append("" if passed else f"{outcome.verdict.name} {outcome.reason}")
        show(part, len(specs), len(said))
    head = ASCEND.format(dtype=dtype, version=version)
    return write(part, head, specs, said)


PARTS = {"cpu": on_cpu, "ascend-float16": dry, "ascend-bfloat16": dry}


def main() -> int:
    """Run the parts that are named; the status is 1 if any script is not good."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=", ".join(PARTS))
    parts = parser.parse_args().parts
    for part in set(parts) - set(PARTS):
        parser.error(f"there is no part {part}; there are {', '.join(PARTS)}")
    version, bad = metadata.version("mindspore"), 0
    for part in parts or PARTS:
        with tempfile.TemporaryDirectory() as folder:
            bad += PARTS[part](part, Path(folder), version)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
