"""Measures what mixed precision costs in accuracy; `make accuracy` prints the table.

LeNet-5 on the digits, everything at its default, one run per level and seed.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness import run_script

from generator import TrainingSpec
from generator.catalog import AMP_LEVELS

SEEDS = (1, 2, 3, 4, 5)


def accuracy(level: str, seed: int) -> float:
    """The accuracy on the test digits after the last epoch, in percent."""
    with tempfile.TemporaryDirectory() as folder:
        spec = TrainingSpec(amp=level, dataset="digits", seed=seed)
        run = run_script(spec, Path(folder))
        print(f"{level} seed {seed}", run.stdout.splitlines()[-1], file=sys.stderr)
        return 100 * float(run.evaluations[-1]["accuracy"])


def main() -> None:
    jobs = [(level, seed) for level in AMP_LEVELS for seed in SEEDS]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda job: accuracy(*job), jobs))
    print("| level | accuracy, % | least to most | against O0, same seed |")
    print("|---|---|---|---|")
    for start, level in zip(range(0, len(jobs), len(SEEDS)), AMP_LEVELS, strict=True):
        mine, base = found[start : start + len(SEEDS)], found[: len(SEEDS)]
        lost = [a - b for a, b in zip(mine, base, strict=True)]
        mean, spread = statistics.mean(mine), statistics.stdev(mine)
        ends = f"{min(mine):.2f} to {max(mine):.2f}"
        change = f"{statistics.mean(lost):+.2f} ± {statistics.stdev(lost):.2f}"
        print(f"| {level} | {mean:.2f} ± {spread:.2f} | {ends} | {change} |")


if __name__ == "__main__":
    main()
