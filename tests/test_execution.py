"""Scripts of every kind run as files, make updates and keep finite weights."""

from __future__ import annotations

from dataclasses import replace

import pytest
from combinations import STYLES, matrix_specs, name_of, pairwise_specs
from harness import (
    FOUR_UPDATES,
    Run,
    check_training,
    python,
    run_script,
    write_script,
)

from generator import TrainingSpec
from generator.verify.ascend.host import has_npu


@pytest.mark.parametrize("spec", pairwise_specs(), ids=name_of)
def test_script_trains_on_cpu(tmp_path, spec):
    """Every two choices of the option space meet in one of these scripts."""
    check_training(spec, run_script(spec, tmp_path, "--device", "CPU", *FOUR_UPDATES))


@pytest.mark.ascend
@pytest.mark.parametrize(
    "spec",
    [*matrix_specs("float16"), *matrix_specs("bfloat16")],
    ids=name_of,
)
def test_script_trains_on_ascend(tmp_path, spec):
    check_training(
        spec, run_script(spec, tmp_path, "--device", "Ascend", *FOUR_UPDATES)
    )


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam", "adamw"])
def test_every_optimizer_lowers_the_loss(tmp_path, style, optimizer):
    spec = TrainingSpec(
        style=style,
        optimizer=optimizer,
        model="mlp",
        weight_decay=0.001,
        lr_schedule="cosine",
        warmup=3,
        clip_norm=5.0,
        epochs=2,
    )
    run = run_script(spec, tmp_path)
    assert run.evaluations[-1]["eval_loss"] < run.windows[0]["loss"]
    rates = [window["lr"] for window in run.windows]
    assert len(rates) == 40 and rates[0] < rates[1] < rates[2] and rates[-1] < rates[3]


SEVERAL_RUNS = """
import gc
import importlib.util
import sys

from mindspore import amp

addresses, reused = set(), 0


def at_used_address(scaler):
    init = scaler.__init__

    def seen_init(self, *args, **keywords):
        global reused
        elsewhere = []  # kept, so that the next try is at another address
        for _ in range(1000):
            init(self, *args, **keywords)
            if id(self.scale_value) in addresses:
                reused += 1
                break
            elsewhere.append(self.scale_value)
        addresses.add(id(self.scale_value))

    scaler.__init__ = seen_init


at_used_address(amp.StaticLossScaler)
at_used_address(amp.DynamicLossScaler)
modules = []
for path in sys.argv[1:]:
    spec = importlib.util.spec_from_file_location(f"train{len(modules)}", path)
    modules.append(importlib.util.module_from_spec(spec))
    spec.loader.exec_module(modules[-1])
for number in range(8):
    modules[number % 2].main(["--max-updates", "3", "--output-dir", str(number)])
    gc.collect()
print("reused", reused)
"""


@pytest.mark.parametrize("style", STYLES)
def test_every_run_of_a_process_has_its_own_loss_scale(tmp_path, style):
    """As in a notebook, where a scale can come to lie where an earlier run's lay."""
    spec = TrainingSpec(
        style=style, mode="pynative", model="mlp", optimizer="sgd", accum=2
    )
    scripts = [
        write_script(replace(spec, loss_scale=kind), tmp_path / kind)
        for kind in ("fixed", "dynamic")
    ]
    done = python(["-c", SEVERAL_RUNS, *scripts], tmp_path)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) > 3
    runs = [Run(0, "", "", tmp_path / str(number)) for number in range(8)]
    losses = [[window["loss"] for window in run.windows] for run in runs]
    assert len(set(losses[0])) == 3
    for found in losses[1:]:
        assert found == pytest.approx(losses[0], rel=1e-5)


@pytest.mark.parametrize("style", STYLES)
def test_resnet18_trains_at_every_level(tmp_path, style):
    amp = {"functional": "O2", "cell": "O3", "model": "O1"}[style]
    spec = TrainingSpec(
        style=style, model="resnet18", dataset="digits", amp=amp, accum=2, batch_size=8
    )
    run = run_script(spec, tmp_path, "--max-updates", 2)
    assert run.windows[-1]["updates"] == 2


@pytest.mark.parametrize(
    "spec",
    [
        TrainingSpec(style="functional", dataset="digits", amp="O2", accum=4),
        TrainingSpec(style="cell", dataset="digits", amp="O1"),
        TrainingSpec(style="model", dataset="digits", optimizer="momentum"),
    ],
    ids=lambda spec: spec.style,
)
def test_real_digits_are_learnt(tmp_path, spec):
    run = run_script(spec, tmp_path)
    assert run.evaluations[-1]["accuracy"] >= 0.93
    assert f"accuracy {run.evaluations[-1]['accuracy']:.4f}" in run.stdout


def test_a_run_on_cpu_in_bfloat16_ends_with_one_line(tmp_path):
    spec = TrainingSpec(amp="O2", amp_dtype="bfloat16", model="mlp")
    done = python([write_script(spec, tmp_path).name, "--device", "CPU"], tmp_path)
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1] == (
        "error: this script computes in bfloat16, which needs an Ascend NPU"
    )
    assert "Traceback" not in done.stderr


def test_a_missing_device_is_one_line(tmp_path):
    if has_npu():
        pytest.skip("this machine has an NPU")
    script = write_script(TrainingSpec(model="mlp"), tmp_path)
    done = python([script.name, "--device", "Ascend"], tmp_path)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "error: --device Ascend: MindSpore finds no such device here" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epochs", "0"], "epochs must be above 0, not 0"),
        (["--lr", "nan"], "lr must be above 0, not nan"),
        (["--max-updates", "-1"], "max_updates must be above 0, not -1"),
        (["--seed", "-1"], "seed must be from 0 to 2**32 - 1, not -1"),
        (["--batch-size", "x"], "argument --batch-size: invalid int value: 'x'"),
    ],
)
def test_wrong_values_of_the_script_are_one_line(tmp_path, arguments, message):
    script = write_script(TrainingSpec(model="mlp"), tmp_path)
    done = python([script.name, *arguments], tmp_path)
    assert done.returncode == 2
    assert done.stderr.endswith(f"train.py: error: {message}\n")


def test_an_output_folder_that_is_a_file_is_one_line(tmp_path):
    script = write_script(TrainingSpec(model="mlp"), tmp_path)
    (tmp_path / "taken").write_text("mine")
    done = python([script.name, "--output-dir", "taken"], tmp_path)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "error: [Errno 17] File exists: 'taken'" in done.stderr
    assert (tmp_path / "taken").read_text() == "mine"
