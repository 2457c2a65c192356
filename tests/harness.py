"""Running generated scripts as a user does: as files, in processes of their own."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator import TrainingSpec, generate

TESTS = Path(__file__).parent
DRIVER = TESTS / "driver.py"


@dataclass(frozen=True)
class Run:
    """What one run of a script left behind."""

    status: int
    stdout: str
    stderr: str
    output: Path

    @property
    def records(self) -> list[dict[str, Any]]:
        text = (self.output / "metrics.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    @property
    def windows(self) -> list[dict[str, Any]]:
        return [record for record in self.records if "window" in record]

    @property
    def evaluations(self) -> list[dict[str, Any]]:
        return [record for record in self.records if "eval_loss" in record]


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


def drive(spec: TrainingSpec, folder: Path, cases: list[dict[str, Any]]) -> list[Any]:
    """Run a script once per case with a network and data of ours in place of its own.

    A case names ``sizes`` (items of each micro-batch of an epoch), and may name
    ``epochs``, ``max_updates``, ``network`` (plain, norm), ``plant`` (micro-batch index
    in the run → value put into its data) and ``seed``. All cases of a call share one
    process, since importing MindSpore takes seconds.

    Returns:
        Per case a :class:`Driven`.
    """
    script = write_script(spec, folder)
    (folder / "cases.json").write_text(json.dumps(cases), encoding="utf-8")
    done = python([DRIVER, script.name, "cases.json"], folder)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return [Driven(folder / f"case{index}") for index in range(len(cases))]


class Driven:
    """Weights, buffers and metrics of one driven case."""

    def __init__(self, output: Path):
        import numpy as np

        with np.load(output / "state.npz") as state:
            self.before = {k[7:]: state[k] for k in state if k.startswith("before.")}
            self.after = {k[6:]: state[k] for k in state if k.startswith("after.")}
            self.checkpoint = {k[5:]: state[k] for k in state if k.startswith("ckpt.")}
            self.training = bool(state["training"])
        self.run = Run(0, "", "", output)
        self.windows = self.run.windows
        self.evaluations = self.run.evaluations
