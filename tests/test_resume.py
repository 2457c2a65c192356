"""A run that is killed, stopped or cut short goes on to the same bits (property 14)."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from combinations import STYLES
from harness import environment, python, read_checkpoint, write_script

from generator import TrainingSpec
from generator.spec import SourceRef
from generator.verify.checks.common import SAME_LOSS

# Augmented at random in one worker each, in C++ and in Python, so that the place in the
# random numbers matters; BatchNorm, so that running statistics do.
OWN = """
import numpy as np
from mindspore import dataset as ds
from mindspore import nn
from mindspore.dataset import vision


def load(args, train):
    rng = np.random.default_rng(0 if train else 1)
    images = rng.integers(0, 255, size=(44, 6, 6, 3)).astype(np.uint8)
    items = [(images[i], np.array(images[i].sum() % 3, np.int32)) for i in range(44)]
    data = ds.GeneratorDataset(items, ["data", "label"], shuffle=train)
    if train:
        data = data.map(vision.RandomHorizontalFlip(0.5), "data")
        data = data.map(noise, "data", num_parallel_workers=1)
    data = data.map(lambda x: x.astype(np.float32) / 255, "data")
    return data.batch(args.batch_size)


def noise(image):
    return image // 2 + np.random.randint(0, 99, image.shape).astype(np.uint8)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.norm = nn.BatchNorm1d(108)
        self.head = nn.Dense(108, 3)

    def construct(self, x):
        return self.head(self.norm(self.flatten(x)))
"""

# Each with what else a run carries: moments and step counts, a scale that changes (it
# grows every third window and overflows float16 at times), a schedule, statistics.
SPECS = {
    "functional": {"amp": "O2", "accum": 4, "loss_scale_window": 3},
    "cell": {"accum": 3, "optimizer": "momentum", "lr_schedule": "cosine"},
    "model": {"amp": "O2", "accum": 4, "optimizer": "adamw", "loss_scale_window": 3},
    "model alone": {"optimizer": "momentum", "lr_schedule": "step", "warmup": 5},
}
EPOCHS = 12  # of 11 micro-batches, the last one with fewer items


def write(name: str, folder: Path) -> list[str]:
    """Write the script of a name into a folder; return the command that runs it."""
    (folder / "own.py").write_text(OWN)
    spec = TrainingSpec(
        style=name.split()[0],
        model=SourceRef(str(folder / "own.py"), "Net"),
        dataset=SourceRef(str(folder / "own.py"), "load"),
        script=str(folder / "train.py"),
        batch_size=4 if SPECS[name].get("accum") else 6,
        epochs=EPOCHS,
        **SPECS[name],
    )
    return [sys.executable, write_script(spec, folder).name]


def start(command: list[str], folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*command, *arguments],
        cwd=folder,
        env=environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def finish(process: subprocess.Popen[str], status: int = 0) -> str:
    """What a process printed, once it has ended with a status."""
    output, errors = process.communicate(timeout=300)
    assert process.returncode == status, output[-2000:] + errors[-3000:]
    return output + errors


def wait_for_windows(process: subprocess.Popen[str], folder: Path, number: int) -> None:
    """Wait until a run has recorded that many lines, or has ended."""
    metrics, deadline = folder / "output" / "metrics.jsonl", time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if metrics.exists() and metrics.read_bytes().count(b"\n") >= number:
            return
        time.sleep(0.002)


def records(folder: Path) -> list[dict[str, object]]:
    lines = (folder / "output" / "metrics.jsonl").read_text().splitlines()
    return [{**json.loads(line), "seconds": None} for line in lines]


def about(path: Path) -> dict[str, object]:
    return json.loads(read_checkpoint(path)["about"].tobytes())


def assert_same_end(one: Path, other: Path) -> None:
    """The same bits of all state, and the same metrics but for the seconds."""
    first, second = (
        read_checkpoint(folder / "output" / "last.ckpt") for folder in (one, other)
    )
    assert first.keys() == second.keys()
    for name in first.keys() - {"about"}:
        assert first[name].tobytes() == second[name].tobytes(), name
    for mine, its in zip(records(one), records(other), strict=True):
        # MindSpore's kernel for the loss tries several ways to share its sum among
        # threads at its first launches: the last bits of a loss that is shown differ.
        shown = [
            record.pop("loss", record.pop("eval_loss", 0)) for record in (mine, its)
        ]
        assert mine == its
        assert shown[0] == pytest.approx(shown[1], rel=SAME_LOSS)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """The folder of an undisturbed run, by the name of its script."""
    done: dict[str, Path] = {}

    def run(name: str) -> Path:
        if name not in done:
            folder = tmp_path_factory.mktemp("undisturbed")
            finish(start(write(name, folder), folder))
            moved = read_checkpoint(folder / "output" / "last.ckpt")
            assert any(key.startswith("optimizer.") for key in moved)
            done[name] = folder
        return done[name]

    return run


@pytest.mark.parametrize("name", SPECS)
def test_a_run_killed_at_many_moments_ends_with_the_same_bits(
    tmp_path, undisturbed, name
):
    """Nine kills a script: in its start, in windows, in saves and in evaluations."""
    chance = random.Random(name)
    command = write(name, tmp_path)
    total = sum("window" in record for record in records(undisturbed(name)))
    # One kill falls into the imports or the compiler, the others into the training.
    targets = sorted(chance.sample(range(total - 4), 8))
    process = start(command, tmp_path, "--resume", "--checkpoint-every", "1")
    time.sleep(chance.uniform(0.5, 4))
    process.kill()
    for target in targets:
        process.communicate()
        process = start(command, tmp_path, "--resume", "--checkpoint-every", "1")
        wait_for_windows(process, tmp_path, target + target * EPOCHS // total)
        time.sleep(chance.uniform(0, 0.03))
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
    finish(start(command, tmp_path, "--resume", "--checkpoint-every", "1"))
    assert_same_end(tmp_path, undisturbed(name))


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("functional", signal.SIGINT),
        ("cell", signal.SIGTERM),
        ("model", signal.SIGTERM),
        ("model alone", signal.SIGINT),
    ],
)
def test_a_signal_ends_the_window_saves_and_says_how_to_go_on(
    tmp_path, undisturbed, name, number
):
    command = write(name, tmp_path)
    process = start(command, tmp_path)
    wait_for_windows(process, tmp_path, 8)
    process.send_signal(number)
    # From its first compilation on, MindSpore passes a SIGINT on as SIGTERM.
    output = finish(process, status=128 + signal.SIGTERM)
    place = about(tmp_path / "output" / "last.ckpt")["place"]
    windows = [record for record in records(tmp_path) if "window" in record]
    assert place["windows"] == len(windows) == windows[-1]["window"]
    accum = SPECS[name].get("accum", 1)
    assert place["micro_batch"] % accum == 0 or place["micro_batch"] in (8, 11)
    said = output.splitlines()
    index = said.index(f"stopped after update {place['updates']}; to go on:")
    assert said[index + 1] == "python train.py --resume"
    finish(start(command, tmp_path, "--resume"))
    assert_same_end(tmp_path, undisturbed(name))


def test_a_run_goes_on_after_max_updates_and_after_its_end(tmp_path, undisturbed):
    command = write("functional", tmp_path)
    finish(start(command, tmp_path, "--max-updates", "7"))
    assert "nothing left to do" in finish(
        start(command, tmp_path, "--max-updates", "7", "--resume")
    )
    finish(start(command, tmp_path, "--resume"))
    assert_same_end(tmp_path, undisturbed("functional"))
    finish(start(command, tmp_path, "--resume"))
    assert_same_end(tmp_path, undisturbed("functional"))


def test_older_checkpoints_are_kept_and_can_be_gone_back_to(tmp_path, undisturbed):
    command = write("cell", tmp_path)
    output = tmp_path / "output"
    arguments = ["--checkpoint-every", "3", "--keep", "2"]
    finish(start(command, tmp_path, *arguments, "--max-updates", "10"))
    # Saved after 3, 4 (the end of an epoch), 6, 8 (another) 9 and 10 updates.
    assert sorted(path.name for path in output.iterdir()) == [
        "last.ckpt",
        "metrics.jsonl",
        "update_00000008.ckpt",
        "update_00000009.ckpt",
    ]
    assert about(output / "update_00000008.ckpt")["place"]["updates"] == 8
    said = finish(start(command, tmp_path, "--resume", "output/update_00000008.ckpt"))
    assert "output/update_00000008.ckpt: going on after update 8" in said
    assert_same_end(tmp_path, undisturbed("cell"))
    # A new run puts the checkpoint of this one aside, and resumes nothing.
    last = (output / "last.ckpt").read_bytes()
    finish(start(command, tmp_path, "--max-updates", "1"))
    assert (output / "previous.ckpt").read_bytes() == last
    assert len(records(tmp_path)) == 2


REFUSALS = """
import contextlib, io, json, sys
from pathlib import Path
import mindspore as ms
import numpy as np
import train

good = ms.load_checkpoint("output/last.ckpt")
state = {k: v for k, v in good.items() if k != "about"}
about = json.loads(good["about"].asnumpy().tobytes())


def write(name, state, about):
    values = [{"name": k, "data": v} for k, v in state.items()]
    if about:
        text = np.frombuffer(json.dumps(about).encode(), np.uint8)
        values.append({"name": "about", "data": ms.Tensor(text)})
    ms.save_checkpoint(values, name, crc_check=True)


write("future.ckpt", state, about | {"format": 2})
write("weights.ckpt", train.Network().parameters_dict(), None)
write("smaller.ckpt", {k: v for k, v in state.items() if k != "head.bias"}, about)
whole = Path("output/last.ckpt").read_bytes()
Path("cut.ckpt").write_bytes(whole[: len(whole) * 2 // 3])
spoilt = bytearray(whole)
spoilt[len(whole) // 2] ^= 1
Path("spoilt.ckpt").write_bytes(spoilt)
Path("text.ckpt").write_text("no checkpoint")
Path("empty.ckpt").write_text("")
Path("folder.ckpt").mkdir()
cases = [[f"{name}.ckpt"] for name in sys.argv[1:]]
cases += [["output/last.ckpt", "--seed", "2"], ["output/last.ckpt", "--lr", "0.5"]]
cases += [["output/last.ckpt", "--batch-size", "5"]]
for resumed, *more in cases:
    try:
        train.main(["--resume", resumed, *more])
        print("not refused")
    except SystemExit as error:
        print(error)
"""


def test_files_that_do_not_fit_are_refused_by_name_and_nothing_changes(tmp_path):
    command = write("functional", tmp_path)
    finish(start(command, tmp_path, "--max-updates", "4"))
    before = {p: p.read_bytes() for p in (tmp_path / "output").iterdir()}
    (tmp_path / "refusals.py").write_text(REFUSALS)
    damaged = ["weights", "cut", "spoilt", "text", "empty"]
    names = [*damaged, "future", "smaller", "folder", "none"]
    done = python(["refusals.py", *names], tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    last = "error: output/last.ckpt is of a run with"
    assert [line for line in done.stdout.splitlines() if "[" not in line] == [
        *[
            f"error: {name}.ckpt is damaged or not a checkpoint of this script"
            for name in damaged
        ],
        "error: future.ckpt has format 2; this script reads 1",
        "error: smaller.ckpt is of another network or optimizer: see head.bias",
        "error: there is no checkpoint folder.ckpt",
        "error: there is no checkpoint none.ckpt",
        f"{last} seed 1, not 2",
        f"{last} lr 0.002, not 0.5",
        f"{last} micro_batches 11, not 9",
    ]
    assert {p: p.read_bytes() for p in (tmp_path / "output").iterdir()} == before


@pytest.mark.parametrize("keep", ["0", "1"])
def test_a_full_disk_leaves_the_checkpoint_before(tmp_path, undisturbed, keep):
    """A limit on the size of files fails a save where a full disk would."""
    command = write("functional", tmp_path)
    finish(start(command, tmp_path, "--max-updates", "5"))
    last = tmp_path / "output" / "last.ckpt"
    before = last.read_bytes()
    limited = (
        f"import resource, runpy, sys; sys.argv = ['train.py', '--resume', '--keep', "
        f"'{keep}']; resource.setrlimit(resource.RLIMIT_FSIZE, ({len(before) // 2}, "
        f"{resource.RLIM_INFINITY})); runpy.run_path('train.py', run_name='__main__')"
    )
    said = finish(start([sys.executable, "-c", limited], tmp_path), status=1)
    reason = os.strerror(27)
    assert f"error: output/unfinished.ckpt: {reason}; output/last.ckpt is as" in said
    assert last.read_bytes() == before
    assert {path.name for path in last.parent.iterdir()} == {
        "last.ckpt",
        "metrics.jsonl",
    }
    finish(start(command, tmp_path, "--resume"))
    assert_same_end(tmp_path, undisturbed("functional"))


BLIND = """
import numpy as np
from mindspore import dataset as ds
from mindspore import nn, ops


class Rows:
    read = 0

    def __len__(self):
        return 8

    def __getitem__(self, index):
        data = np.linspace(-1, 1, 12).reshape(4, 3).astype(np.float32) + index
        Rows.read += 1
        if Rows.read > BAD:
            data[0, 0] = np.nan
        return data, np.arange(4, dtype=np.int32) % 3


def load(args, train):
    rows = Rows() if train else [(np.ones((4, 3), np.float32), np.zeros(4, np.int32))]
    return ds.GeneratorDataset(rows, ["data", "label"], shuffle=False)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.head = nn.Dense(3, 3)

    def construct(self, x):
        return self.head(x)


class Root(Net):
    # The root of 0 is 0, and its slope there is infinite.
    def construct(self, x):
        return self.head(ops.sqrt(self.head(x) * 0))
"""


def blind(folder: Path, style: str, bad: int, network: str = "Net", **choices):
    """Run a script whose data are NaN from a micro-batch on; it has to fail."""
    (folder / "own.py").write_text(BLIND.replace("BAD", str(bad)))
    spec = TrainingSpec(
        style=style,
        model=SourceRef(str(folder / "own.py"), network),
        dataset=SourceRef(str(folder / "own.py"), "load"),
        script=str(folder / "train.py"),
        optimizer="sgd",
        **choices,
    )
    done = python([write_script(spec, folder).name, "--epochs", 60], folder)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    return done.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("accum", [1, 3])
def test_a_loss_that_is_not_finite_ends_the_run(tmp_path, style, accum):
    error = blind(tmp_path, style, bad=12, accum=accum)
    window = 13 if accum == 1 else 5
    assert error == (
        f"error: epoch 2 window {window}: the loss is nan. "
        "Try a smaller --lr, and look for NaN in the data."
    )
    last = tmp_path / "output" / "last.ckpt"
    assert about(last)["place"]["epoch"] == 1
    assert all(np.isfinite(value).all() for value in read_checkpoint(last).values())


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("scale", ["fixed", "dynamic"])
def test_endless_overflow_ends_the_run(tmp_path, style, scale):
    error = blind(tmp_path, style, bad=8, accum=2, loss_scale=scale)
    shown = "1024" if scale == "fixed" else "1"
    assert error == (
        f"error: epoch 14 window 55, loss scale {shown}: 51 overflows in a row. "
        "Try a smaller --lr, and look for NaN in the data."
    )
    last = tmp_path / "output" / "last.ckpt"
    assert about(last)["place"]["skipped_in_row"] == 48  # saved at the end of epoch 13
    assert all(np.isfinite(value).all() for value in read_checkpoint(last).values())


@pytest.mark.parametrize("style", STYLES)
def test_weights_that_are_not_finite_are_not_saved(tmp_path, style):
    """The loss of the only window is finite, its gradient is not."""
    error = blind(tmp_path, style, bad=999, network="Root", accum=8)
    assert error.startswith("error: head.weight is not finite after update 1, so ")
    assert not (tmp_path / "output" / "last.ckpt").exists()
