"""Data read from files: real formats, and one clear line for what is not right."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from harness import python, run_script, write_script

from generator import TrainingSpec

SPEC = TrainingSpec(dataset="mnist", model="mlp", epochs=2, batch_size=16)


def idx(array: np.ndarray) -> bytes:
    """An array of bytes in the IDX format."""
    header = struct.pack(">BBBB", 0, 0, 8, array.ndim)
    return header + struct.pack(f">{array.ndim}i", *array.shape) + array.tobytes()


def write_mnist(folder: Path, zipped: bool) -> None:
    """A small MNIST: each digit is a bright row at a height of its own."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for part, count in (("train", 200), ("t10k", 50)):
        label = rng.integers(10, size=count).astype(np.uint8)
        images = rng.integers(60, size=(count, 28, 28)).astype(np.uint8)
        images[np.arange(count), 2 * label.astype(int) + 4] = 250
        for name, array in (("images-idx3", images), ("labels-idx1", label)):
            data = idx(array)
            path = folder / f"{part}-{name}-ubyte"
            if zipped:
                path = path.with_name(path.name + ".gz")
                data = gzip.compress(data)
            path.write_bytes(data)


@pytest.mark.parametrize("zipped", [False, True])
def test_mnist_files_are_read_and_learnt(tmp_path, zipped):
    write_mnist(tmp_path / "my data", zipped)
    run = run_script(SPEC, tmp_path, "--data-dir", "my data")
    assert run.windows[-1]["updates"] == 2 * 13  # 200 images in batches of 16
    assert run.windows[12]["items"] == 8
    assert run.evaluations[-1]["accuracy"] > 0.9


def test_mnist_has_a_border_for_lenet5(tmp_path):
    write_mnist(tmp_path / "data", zipped=True)
    spec = TrainingSpec(dataset="mnist", model="lenet5", batch_size=64, epochs=1)
    assert run_script(spec, tmp_path).windows[-1]["items"] == 8


def last_line(folder: Path) -> str:
    """The one line with which a script ends that cannot use its data."""
    done = python([write_script(SPEC, folder).name], folder)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    return done.stderr.strip().splitlines()[-1]


def test_missing_and_broken_files_are_one_line_each(tmp_path):
    assert last_line(tmp_path) == (
        "error: no train-images-idx3-ubyte or train-images-idx3-ubyte.gz in data: put "
        "the four MNIST files there, or name their folder with --data-dir"
    )
    write_mnist(tmp_path / "data", zipped=False)
    images = tmp_path / "data" / "train-images-idx3-ubyte"
    whole = images.read_bytes()
    for broken in (b"", whole[:1000], b"\0\0\x08\x03", b"no IDX at all, but text"):
        images.write_bytes(broken)
        assert last_line(tmp_path).startswith(
            "error: data/train-images-idx3-ubyte is no complete IDX file"
        )
    images.unlink()
    zipped = images.with_name(images.name + ".gz")
    for broken in (b"no gzip", gzip.compress(whole)[:500]):
        zipped.write_bytes(broken)
        assert last_line(tmp_path).startswith("error: data/train-images-idx3-ubyte.gz")
    zipped.write_bytes(gzip.compress(idx(np.zeros((7, 28, 28), np.uint8))))
    assert (
        last_line(tmp_path) == "error: data: the train images and labels do not match"
    )


def test_digits_without_scikit_learn_are_one_line(tmp_path):
    (tmp_path / "sklearn.py").write_text("raise ImportError\n")
    script = write_script(TrainingSpec(dataset="digits", model="mlp"), tmp_path)
    done = python([script.name], tmp_path)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.strip().splitlines()[-1] == (
        "error: the digits come with scikit-learn: pip install scikit-learn"
    )
