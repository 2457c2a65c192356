"""A user's own network and data: what is taken, what is refused, and why."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from harness import python
from test_cli import msgen, refusal
from test_rendering import ruff

from generator import SourceRef, TrainingSpec, generate, rules

NETWORK = """from mindspore import nn


class Net(nn.Cell):
    def __init__(self, classes=10):
        super().__init__()
        self.flatten = nn.Flatten()
        self.head = nn.Dense(1024, classes)

    def construct(self, x):
{body}
"""
GOOD = NETWORK.format(body="        return self.head(self.flatten(x))")
DATA = """import numpy as np
from mindspore import dataset as ds


def my_data(args, train):
    rows = [
        (np.ones((4, 1, 32, 32), np.float32) * i / 10, np.full(4, i % 3, np.int32))
        for i in range(6)
    ]
    return ds.GeneratorDataset(rows, ["data", "label"], shuffle=False)


def other(path):
    return None
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "net.py").write_text(GOOD)
    (tmp_path / "my_data.py").write_text(DATA)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def problems(body: str = "", source: str | None = None, **options) -> list[str]:
    """What is said of a network whose construct has that body."""
    Path("own.py").write_text(source or NETWORK.format(body=body))
    spec = TrainingSpec(model=SourceRef("own.py", "Net"), **options)
    found = rules.check(spec)
    if found:
        suggestion = rules.refuse(found, spec).suggestion
        assert suggestion is None or suggestion.startswith("msgen --style")
    return [f"{problem.flags}: {problem.reason}" for problem in found]


def test_own_network_and_data_are_imported_and_train(folder):
    done = msgen(
        *("--model", "net.py:Net", "--dataset", "my_data.py:my_data"),
        *("--amp", "O1", "--accum", "2", "--style", "cell"),
        cwd=folder,
    )
    assert (done.returncode, done.stderr) == (0, "")
    text = (folder / "train.py").read_text()
    assert "from my_data import my_data as create_dataset\n" in text
    assert "from net import Net as Network\n" in text
    assert ruff(folder / "train.py", "F,E,I,B") == ""
    ran = python(["train.py", "--epochs", 1], folder)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert "done: 3 updates, 0 skipped" in ran.stdout


def test_a_file_in_a_folder_below_is_imported_from_there(folder):
    (folder / "models").mkdir()
    (folder / "net.py").rename(folder / "models" / "net.py")
    text = generate(TrainingSpec(model=SourceRef("models/net.py", "Net")))
    assert "from models.net import Net as Network\n" in text


def test_a_file_that_no_import_reaches_is_warned_of(folder):
    (folder / "scripts").mkdir()
    done = msgen("--model", "net.py:Net", "-o", "scripts/train.py", cwd=folder)
    assert done.returncode == 0
    assert done.stderr == (
        "warning: --model net.py:Net: the script cannot import it from there; "
        "put net.py beside the script.\n"
    )


def test_missing_files_and_names_are_refused(folder):
    assert "--model no.py:Net\n      no.py does not exist." in refusal(
        "--model", "no.py:Net", cwd=folder
    )
    message = refusal("--model", "net.py:Network", cwd=folder)
    assert "net.py defines no class 'Network' at its top level (it has Net)." in message
    assert "msgen --style functional --model net.py:Net\n" in message
    message = refusal("--dataset", "my_data.py:mydata", cwd=folder)
    assert "(it has my_data, other)" in message and "my_data.py:my_data\n" in message
    message = refusal("--dataset", "my_data.py:other", cwd=folder)
    assert "other(args, train=True), which other(path) does not take" in message
    (folder / "broken.py").write_text("class Net(:\n")
    assert "broken.py, line 1: invalid syntax." in refusal(
        "--model", "broken.py:Net", cwd=folder
    )
    (folder / "binary.py").write_bytes(b"\xff\xfe\x00")
    assert "binary.py" in refusal("--model", "binary.py:Net", cwd=folder)
    (folder / "turtle.py").write_text(GOOD)
    assert "import another module named 'turtle'" in refusal(
        "--model", "turtle.py:Net", cwd=folder
    )
    assert "replace the file that it imports" in refusal(
        *("--model", "net.py:Net", "-o", "net.py", "--force"), cwd=folder
    )
    assert "Your own code is named path.py:Class." in refusal(
        "--model", "net.py", cwd=folder, status=2
    )


def test_network_that_the_script_cannot_call_is_refused(folder):
    needs = GOOD.replace("classes=10", "classes")
    assert problems(source=needs) == [
        "--model own.py:Net: The script calls Net(), but its __init__ requires "
        "classes; give them defaults."
    ]
    assert problems(source="class Net:\n    pass\n") == [
        "--model own.py:Net: Net is no mindspore.nn.Cell: it has no base class."
    ]
    assert problems(
        source="from mindspore import nn\n\nclass Net(nn.Cell):\n    pass\n"
    ) == ["--model own.py:Net: Net defines no construct method."]


LAMBDA = (
    "        flat = list(map(lambda layer: layer(x), [self.flatten]))\n"
    "        return self.head(flat[0])"
)
AT_O1 = "        return (lambda t: self.head(t))(self.flatten(x))"
TRY = (
    "        try:\n            return self.head(self.flatten(x))\n"
    "        except ValueError:\n            return x"
)
NESTED = (
    "        def go(t):\n            return self.head(self.flatten(t))\n\n"
    "        return go(x)"
)


def test_constructs_that_graph_mode_or_o1_cannot_take_are_refused(folder):
    this = GOOD.replace("construct(self, x)", "construct(this, x)").replace(
        "return self.head(self", "return this.head(this"
    )
    (found,) = problems(source=this)
    assert found.startswith("--model own.py:Net --mode graph: The first argument of")
    assert "it is named 'this' (line 10)" in found
    assert problems(source=this, mode="pynative") == []
    assert len(problems(source=this, mode="pynative", amp="O1")) == 1
    (found,) = problems(LAMBDA)
    assert "construct has a lambda (line 11)" in found
    assert problems(LAMBDA, mode="pynative") == []
    assert "--amp O1" in problems(LAMBDA, mode="pynative", amp="O1")[0]
    assert "try statement (line 11)" in problems(TRY)[0]
    assert problems(NESTED) == []
    assert "nested function (line 11)" in problems(NESTED, amp="O1")[0]
    base = (
        GOOD.replace("class Net(", "class Base(") + "\n\nclass Net(Base):\n    x = 1\n"
    )
    assert problems(source=base) == []
    assert "inherits its construct" in problems(source=base, amp="O1")[0]


@pytest.mark.parametrize(
    ("name", "body", "amp"),
    [
        ("lambda in graph", LAMBDA, "O0"),
        ("lambda at O1", AT_O1, "O1"),
        ("try in graph", TRY, "O0"),
        ("nested at O1", NESTED, "O1"),
    ],
    ids=["lambda-graph", "lambda-O1", "try-graph", "nested-O1"],
)
def test_what_is_refused_does_fail(folder, name, body, amp):
    """The reasons are MindSpore's, not ours; a newer one that has lost them shows."""
    (folder / "own.py").write_text(NETWORK.format(body=body))
    (folder / "check.py").write_text(f"""
import mindspore as ms
import numpy as np
from mindspore import amp
from own import Net

ms.set_seed(1)
x = ms.Tensor(np.random.randn(4, 1, 32, 32).astype(np.float32))
ms.set_context(mode=ms.GRAPH_MODE if {amp!r} == "O0" else ms.PYNATIVE_MODE)
network = Net()
before = network(x).asnumpy()
after = amp.auto_mixed_precision(network, {amp!r}, ms.float16)(x).asnumpy()
print("in float32" if (before == after).all() else "converted")
""")
    done = python(["check.py"], folder)
    if amp == "O0":
        assert done.returncode != 0
    else:
        assert done.stdout.strip() == "in float32"


def own(layer: str) -> str:
    """A network with that layer."""
    return GOOD.replace(
        "nn.Flatten()", f"nn.SequentialCell([nn.{layer}, nn.Flatten()])"
    )


def test_layers_without_a_bfloat16_kernel_are_refused_with_the_level_that_works(folder):
    """They are those that failed the Ascend dry run; test_ascend shows that of one."""
    pooled, normal = own("MaxPool2d(1)"), own("BatchNorm2d(1)")
    for level in ("O2", "O3", "auto"):
        flags = f"--amp-dtype bfloat16 --amp {level} --model own.py:Net"
        assert problems(source=pooled, amp=level, amp_dtype="bfloat16") == [
            f"{flags}: MindSpore has no bfloat16 kernel for MaxPool2d on Ascend, and "
            f"--amp {level} converts it; O1 leaves it in float32."
        ]
        assert problems(source=pooled, amp=level) == []
    assert problems(source=pooled, amp="O1", amp_dtype="bfloat16") == []
    assert problems(source=own("ReLU6()"), amp="auto", amp_dtype="bfloat16") == []
    (found,) = problems(source=normal, amp="O3", amp_dtype="bfloat16")
    assert "Ascend's BatchNorm takes no bfloat16, and O3 converts it too" in found
    assert problems(source=normal, amp="O2", amp_dtype="bfloat16") == []
    spec = TrainingSpec(model="resnet18", amp="O3", amp_dtype="bfloat16")
    suggestion = rules.refuse(rules.check(spec), spec).suggestion
    assert suggestion == (
        "msgen --style functional --amp O2 --amp-dtype bfloat16 --model resnet18"
    )


def test_leaky_relu_at_o1_is_refused_and_does_fail(folder):
    source = own("LeakyReLU()")
    (found,) = problems(source=source, amp="O1")
    assert found.startswith("--model own.py:Net --amp O1: The script would not compile")
    assert problems(source=source, amp="O2") == []
    (folder / "check.py").write_text("""
import sys
import mindspore as ms
import numpy as np
from mindspore import amp
from own import Net

network = amp.auto_mixed_precision(Net(), sys.argv[1], ms.float16)
network(ms.Tensor(np.ones((4, 1, 32, 32), np.float32)))
""")
    assert python(["check.py", "O1"], folder).returncode != 0
    assert python(["check.py", "O2"], folder).returncode == 0


def test_dropout_is_warned_of(folder):
    (folder / "own.py").write_text(own("Dropout(0.5)"))
    (said,) = rules.warnings(TrainingSpec(model=SourceRef("own.py", "Net")))
    assert said.startswith("--model own.py:Net with Dropout: its random state")


def test_warnings_name_their_options(folder):
    said = "\n".join(
        rules.warnings(
            TrainingSpec(
                amp="O3",
                loss_scale_value=1000,
                loss_scale_factor=3,
                accum=2,
                model="resnet18",
            )
        )
    )
    for option in ("--loss-scale-value 1000", "--loss-scale-factor 3", "--amp O3"):
        assert option in said
    assert "--accum 2 with BatchNorm" in said
    assert rules.warnings(TrainingSpec(amp="O2", accum=8)) == []
    said = rules.warnings(TrainingSpec(amp="O2", loss_scale="none"))
    assert said[0].startswith("--loss-scale none with float16")


def test_quotes_and_controls_in_a_path_are_refused(folder):
    name = 'a"b.py'
    (folder / name).write_text(GOOD)
    assert 'control characters, " and \\' in refusal(
        "--model", f"{name}:Net", cwd=folder
    )
    assert os.path.exists(folder / name)
