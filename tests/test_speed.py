"""What decides how fast a script is, held by counts; seconds are for `make bench`."""

from __future__ import annotations

import ast

import pytest
from combinations import STYLES
from harness import python, write_script

from generator import TrainingSpec, generate

# Runs a script's main(), and prints how many graphs there are at the end of each epoch.
COUNT = """
import sys
import train
try:
    from mindspore.graph import api
except ImportError:  # up to MindSpore 2.8
    from mindspore.common import api

def graphs():
    return len(api.ms_compile_cache) + sum(map(len, api.cells_compile_cache.values()))

evaluation = train.Recorder.evaluation
def counted(self, *values):
    evaluation(self, *values)
    print("graphs", graphs(), file=sys.stderr)

train.Recorder.evaluation = counted
train.main(sys.argv[1:])
"""


def graphs_by_epoch(folder, spec, *arguments):
    write_script(spec, folder)
    (folder / "count.py").write_text(COUNT)
    done = python(["count.py", "--device", "CPU", "--epochs", "3", *arguments], folder)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line.split() for line in done.stderr.splitlines()]
    return [int(words[1]) for words in lines if words[:1] == ["graphs"]]


@pytest.mark.parametrize("style", STYLES)
def test_nothing_is_compiled_after_the_first_epoch(tmp_path, style):
    spec = TrainingSpec(style=style, amp="O2", accum=3, model="mlp")
    # 640 items make 13 micro-batches and a short one, 160 test items 3 and a short one.
    counts = graphs_by_epoch(tmp_path, spec, "--batch-size", "48")
    # The step and the evaluation, each for a full micro-batch and for a short one.
    assert counts[0] >= 4
    assert counts == [counts[0]] * 3


def step_of(spec):
    """The definition of the step, without its docstring and all that is around it."""
    for node in ast.parse(generate(spec)).body:
        if getattr(node, "name", "") in ("make_train_step", "TrainStep"):
            return ast.dump(node)
    raise AssertionError("there is no step")


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("amp", ["O0", "O2"])
def test_the_graph_does_not_grow_with_the_window(style, amp):
    short, long = (TrainingSpec(style=style, amp=amp, accum=n) for n in (2, 16))
    assert step_of(short) == step_of(long)


def test_the_users_own_settings_are_kept(tmp_path):
    write_script(TrainingSpec(model="mlp"), tmp_path)
    names = ("ONEDNN_MAX_CPU_ISA", "MS_DEV_JIT_PIPELINE")
    code = (
        "import os, sys\n"
        "os.environ |= dict(word.split('=') for word in sys.argv[1:])\n"
        "import train\n"
        "train.select_device('CPU')\n"
        f"print(*(os.environ[name] for name in {names}))\n"
    )
    own = [f"{name}={value}" for name, value in zip(names, ("SSE41", "1"), strict=True)]
    for words, expected in ((own, "SSE41 1"), ([], "AVX2 0")):
        done = python(["-c", code, *words], tmp_path)
        assert done.stdout.split("\n")[0] == expected, done.stderr
