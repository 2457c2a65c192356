"""Running generated scripts as a user does: as files, in processes of their own."""

from __future__ import annotations

import importlib.util
import math
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator import TrainingSpec, generate
from generator.verify.records import Recorded

TESTS = Path(__file__).parent


@dataclass(frozen=True)
class Run(Recorded):
    """What one run of a script left behind."""

    status: int
    stdout: str
    stderr: str
    output: Path


def environment() -> dict[str, str]:
    """The environment of a run: MindSpore's notes of the machine are not looked at."""
    return {**os.environ, "GLOG_v": "3", "PYTHONDONTWRITEBYTECODE": "1"}


def python(arguments: list[Any], folder: Path, timeout: float = 300) -> Any:
    """Run Python with ``arguments`` in ``folder`` and capture what it prints."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        env=environment(),
        text=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=timeout,
        check=False,
    )


def read_checkpoint(path: Path) -> dict[str, Any]:
    """The arrays of a checkpoint, read without the seconds that MindSpore takes.

    The format is MindSpore's own protocol buffer, whose module is loaded by its path.
    """
    import numpy as np

    # As MindSpore up to 2.9 does: its message classes are older than today's protobuf.
    os.environ.setdefault("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python")
    package = Path(str(importlib.util.find_spec("mindspore").origin)).parent
    where = package / "train" / "checkpoint_pb2.py"
    spec = importlib.util.spec_from_file_location("checkpoint_pb2", where)
    module = sys.modules.get("checkpoint_pb2")
    if module is None:  # its messages can be registered only once
        module = sys.modules["checkpoint_pb2"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    checkpoint = module.Checkpoint()
    content = path.read_bytes()
    if content[-17:-10] == b"crc_num":  # MindSpore's own check of a whole file
        content = content[:-17]
    checkpoint.ParseFromString(content)
    types = {"Float32": np.float32, "Float16": np.float16, "Int32": np.int32}
    types["UInt8"] = np.uint8
    return {
        value.tag: np.frombuffer(
            value.tensor.tensor_content, types[value.tensor.tensor_type]
        )
        for value in checkpoint.value
    }


def write_script(spec: TrainingSpec, folder: Path) -> Path:
    """Write the script of ``spec`` into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "train.py"
    script.write_text(generate(spec), encoding="utf-8")
    return script


def run_script(spec: TrainingSpec, folder: Path, *arguments: Any) -> Run:
    """Write a script, run it, and demand that it ends well."""
    script = write_script(spec, folder)
    done = python([script.name, *arguments], folder)
    run = Run(done.returncode, done.stdout, done.stderr, folder / "output")
    assert run.status == 0, run.stdout[-2000:] + run.stderr[-4000:]
    return run


# Enough for windows of every kind; the checkpoints between show that weights move.
FOUR_UPDATES = ("--max-updates", "4", "--checkpoint-every", "1", "--keep", "4")


def check_training(spec: TrainingSpec, run: Run) -> None:
    """A run of :data:`FOUR_UPDATES` made them, with finite weights that all moved.

    Raises:
        AssertionError: if not.
    """
    import numpy as np

    assert run.windows[-1]["updates"] == 4
    assert [w["window"] for w in run.windows] == list(range(1, len(run.windows) + 1))
    for window in run.windows:
        assert window["loss"] is not None and math.isfinite(window["loss"])
        assert 1 <= window["micro_batches"] <= spec.accum
        assert 1 <= window["items"] <= spec.accum * spec.batch_size
        assert window["loss_scale"] >= 1 and window["seconds"] > 0
    # In the default run; a scale that grows fast meets its limit and comes back.
    if spec.loss_scale_window is None:
        assert sum(window["skipped"] for window in run.windows[:6]) <= 1
    first = read_checkpoint(run.output / "update_00000001.ckpt")
    last = read_checkpoint(run.output / "last.ckpt")
    for name, value in last.items():
        if value.dtype == np.float32:
            assert np.isfinite(value).all(), name
    scaling = {"loss_scaler.scale_value", "loss_scaler.counter"}
    for name in last.keys() - scaling - {"about", "random_state"}:
        if not name.startswith("optimizer."):
            assert last[name].dtype == np.float32, name
            assert not np.array_equal(first[name], last[name]), f"{name} has not moved"
