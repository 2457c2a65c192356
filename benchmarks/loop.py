"""The whole script: ``python -m benchmarks.loop SCRIPT UPDATES``, in its own process.

Runs the script's ``main`` and prints, as JSON, what a window took in it, what of that
went into logging, and how fast its data alone comes.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.worker import load


def measure(script: Path, updates: int, device: str) -> dict[str, Any]:
    """Seconds a window, its share for logging, and items per second of the data."""
    module = load(script)
    logging: list[float] = []
    record = module.Recorder.window

    def timed(self: Any, *args: Any, **values: Any) -> None:
        start = time.perf_counter()
        record(self, *args, **values)
        logging.append(time.perf_counter() - start)

    module.Recorder.window = timed
    with tempfile.TemporaryDirectory() as folder:
        words = ["--device", device, "--output-dir", folder, "--epochs", "1000"]
        module.main([*words, "--max-updates", str(updates)])
        lines = (Path(folder) / "metrics.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    windows = [one for one in records if "loss" in one]
    # Every shape has been seen in the first epoch; from the second on nothing compiles.
    later = [one for one in windows if one["epoch"] > 1]
    seconds = [one["seconds"] for one in later]
    whole = [one for one in later if one["items"] == max(o["items"] for o in later)]
    median = statistics.median(one["seconds"] for one in whole)
    logged = statistics.median(logging[-len(later) :]) + read_values()
    return {
        "median": median,
        "p90_to_median": sorted(seconds)[int(0.9 * len(seconds))] / median,
        "windows": len(seconds),
        "logging_share": logged / median,
        "items_per_second": whole[0]["items"] / median,
        "data_items_per_second": data_speed(module, device),
    }


def read_values() -> float:
    """Seconds to read the scale and the flag of a window that has been computed."""
    import mindspore as ms

    values = [(ms.Tensor(float(i)), ms.Tensor(True)) for i in range(200)]
    start = time.perf_counter()
    for scale, finite in values:
        float(scale)
        bool(finite)
    return (time.perf_counter() - start) / len(values)


def data_speed(module: Any, device: str) -> float:
    """Items per second of the training data, when nothing is done with them."""
    args = module.parse_args(["--device", device])
    data = module.create_dataset(args, train=True)
    speeds = []
    for _ in range(7):
        items, start = 0, time.perf_counter()
        for batch, _label in data.create_tuple_iterator(num_epochs=1):
            items += batch.shape[0]
        speeds.append(items / (time.perf_counter() - start))
    return statistics.median(speeds)


def main() -> None:
    """Measure the script that the command line names."""
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    script, updates, device = sys.argv[1:]
    print(json.dumps(measure(Path(script), int(updates), device)), file=answer)


if __name__ == "__main__":
    main()
