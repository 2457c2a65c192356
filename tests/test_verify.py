"""The command ``msgen verify``: what it says of good, wrong and foreign files."""

from __future__ import annotations

import importlib.util
import json
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace

import numpy as np
import pytest
from test_cli import msgen

from generator import TrainingSpec, generate
from generator.verify import command, reference, session
from generator.verify.case import Case
from generator.verify.checks import CHECKS, check
from generator.verify.contract import BY_NAME, PROPERTIES
from generator.verify.facts import rule_of
from generator.verify.lab import Drivers, Lab
from generator.verify.looking import CannotVerify, look_at
from generator.verify.report import as_data, passed, summary, table
from generator.verify.result import NotJudged, Result

SPEC = TrainingSpec(model="mlp", accum=2, loss_scale="fixed", optimizer="momentum")


def test_the_properties_are_the_contract_s_and_each_has_a_check():
    assert [p.number for p in PROPERTIES] == list(range(1, 19))
    assert list(CHECKS) == list(BY_NAME)


# ---- the command


def test_a_script_is_verified_and_the_answer_is_data(tmp_path):
    (tmp_path / "train.py").write_text(generate(SPEC), encoding="utf-8")
    names = ["window-equals-batch", "clip-norm"]
    only = [word for name in names for word in ("--only", name)]
    done = msgen("verify", "train.py", *only, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = {entry["name"]: entry for entry in json.loads(done.stdout)}
    assert list(found) == names
    assert found["window-equals-batch"]["verdict"] == "pass"
    assert found["clip-norm"]["reason"] == "the script does not clip"
    assert sorted(line.split()[0] for line in done.stderr.splitlines()) == [
        "1/2",
        "2/2",
    ]
    # Nothing is left beside the script.
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


@pytest.mark.parametrize(("extra", "status"), [("", 0), ("\nms.no_such_name()\n", 1)])
def test_on_an_npu_the_answer_is_of_calls_and_contract(
    tmp_path, monkeypatch, capsys, extra, status
):
    """What is executed there is made up here; that both are asked and count is not."""
    script = tmp_path / "train.py"
    script.write_text(generate(SPEC) + extra, encoding="utf-8")
    asked = []

    def verified(path, names, device, say):
        asked.append(device)
        return {PROPERTIES[0]: Result("pass", "made up")}

    monkeypatch.setattr(command, "has_npu", lambda: True)
    monkeypatch.setattr(session, "verify", verified)
    assert command.verify_script(str(script), (), "Ascend", as_json=True) == status
    answer = json.loads(capsys.readouterr().out)
    assert answer["passed"] is (status == 0) and asked == ["Ascend"]
    assert [entry["name"] for entry in answer["properties"]] == [PROPERTIES[0].name]
    assert any(entry["kind"] == "fail" for entry in answer["calls"]) is (status == 1)
    assert command.verify_script(str(script), (), "Ascend", as_json=False) == status
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("calls    PASS" if status == 0 else "calls    FAIL")
    assert lines[-1] == "1 passed"


def test_a_wrong_script_is_named_and_the_status_says_so(tmp_path):
    text = generate(SPEC)
    wrong = text.replace("return data.shape[0] / ", "return 1.0  # ")
    assert wrong != text
    (tmp_path / "edited.py").write_text(wrong, encoding="utf-8")
    done = msgen("verify", "edited.py", "--only", "window-equals-batch", cwd=tmp_path)
    assert done.returncode == 1
    assert "window-equals-batch  fail" in done.stdout
    assert "window 1: the weights differ by" in done.stdout
    assert done.stdout.endswith("1 failed\n")


def test_options_stand_for_the_script_that_they_describe(tmp_path):
    words = ["--style", "cell", "--model", "mlp", "--only", "workers-agree"]
    done = msgen("verify", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "the script runs in one process" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_names_are_listed_without_numpy(tmp_path):
    code = (
        "import sys\n"
        "from generator.cli import cli\n"
        "cli.main(['verify', '--list'], standalone_mode=False)\n"
        "cli.main(['--help'], standalone_mode=False)\n"
        "assert not {'numpy', 'mindspore'} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in BY_NAME)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["none.py"], 1, "msgen: none.py does not exist\n"),
        (["folder.py"], 1, "msgen: folder.py is not a file\n"),
        (["text.txt"], 1, "text.txt is no Python file: its name ends in no .py"),
        (["syntax.py"], 1, "msgen: syntax.py, line 2: "),
        (["other.py"], 1, "it defines no main, create_dataset"),
        (["ours.py", "--amp", "O2"], 2, "--amp describes a script, and ours.py is one"),
        (["ours.py", "--device", "TPU"], 2, "'TPU' is none of auto, CPU, Ascend"),
        (["ours.py", "--only", "ordr"], 2, "Did you mean order?"),
        (["--amp", "O9"], 2, "--amp O9"),
        (["raises.py"], 1, "raises.py cannot be imported: ValueError, line 1: boo"),
        (["exits.py"], 1, "exits.py cannot be imported: no luck"),
        (["dies.py"], 1, "ended the process (SIGSEGV)"),
        (["fails.py"], 1, "the run ended with status 1: KeyError, line 2: 'x'"),
    ],
)
def test_what_cannot_be_verified_is_said_without_a_traceback(
    tmp_path, arguments, status, message
):
    (tmp_path / "folder.py").mkdir()
    names = "Network = create_dataset = main = None\n"
    files = {
        "text.txt": "",
        "syntax.py": "x = 1\ndef main(:\n",
        "other.py": "class Network:\n    pass\n",
        "ours.py": names,
        "raises.py": f"raise ValueError('boo')\n{names}",
        "exits.py": f"raise SystemExit('no luck')\n{names}",
        "dies.py": f"import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n{names}",
        "fails.py": "def main(argv):\n    {}['x']\nNetwork = create_dataset = None\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = msgen("verify", *arguments, cwd=tmp_path)
    assert done.returncode == status, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr and done.stdout == ""


def test_without_mindspore_it_says_what_to_install(tmp_path, monkeypatch):
    script = tmp_path / "train.py"
    script.write_text(generate(SPEC), encoding="utf-8")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        CannotVerify, match=r"pip install 'mindspore-msgen\[mindspore\]'"
    ):
        look_at(str(script))


# ---- what runs it


@pytest.fixture(scope="module")
def drivers(tmp_path_factory):
    found = Drivers(tmp_path_factory.mktemp("drivers"))
    yield found
    found.stop()


def write(folder, text):
    script = folder / "train.py"
    script.write_text(text, encoding="utf-8")
    return script


def test_a_hang_is_ended_with_all_that_it_started(tmp_path, drivers):
    code = """
        import subprocess, time

        def main(argv):
            child = subprocess.Popen(["sleep", "1000"])
            open(argv[1] + ".pid", "w").write(str(child.pid))
            time.sleep(1000)

        Network = create_dataset = None
    """
    lab = Lab(write(tmp_path, textwrap.dedent(code)), drivers)
    assert lab.loaded["constants"] == {}
    run = lab.attempt(Case(sizes=(4,)), timeout=5)
    assert run.status == -signal.SIGKILL
    assert run.message == "did not end within 5 s"
    pid = run.output.with_name(run.output.name + ".pid").read_text()
    state = subprocess.run(["ps", "-o", "stat=", "-p", pid], capture_output=True)
    assert state.stdout.strip() in (b"", b"Z")
    # The next run has a process again.
    assert Lab(write(tmp_path, generate(SPEC)), drivers).facts.accum == 2


@pytest.mark.parametrize(
    "call",
    [
        "nn.SGD(network.trainable_params(), args.lr, momentum=0.9, dampening=0.2)",
        "nn.SGD(network.trainable_params(), args.lr, momentum=0.9, nesterov=True)",
        "nn.Adam(network.trainable_params(), args.lr, use_nesterov=True)",
        "nn.Adam(network.trainable_params(), args.lr, 0.8, 0.9, weight_decay=0.1)",
        "nn.AdamWeightDecay(network.trainable_params(), args.lr, weight_decay=0.1)",
        "nn.Momentum([{'params': network.trainable_params()[::-1], "
        "'weight_decay': 0.1}], args.lr, 0.9)",
    ],
)
def test_the_reference_knows_what_users_set_on_optimizers(tmp_path, drivers, call):
    text = generate(SPEC)
    old = "nn.Momentum(network.trainable_params(), args.lr, momentum=0.9)"
    assert old in text
    lab = Lab(write(tmp_path, text.replace(old, call)), drivers)
    assert check("window-equals-batch", lab).verdict == "pass"


def test_what_the_reference_does_not_know_is_not_judged(tmp_path, drivers):
    text = generate(SPEC)
    lion = text.replace("nn.Momentum(", "Lion(").replace(
        "def parse_args", "class Lion(nn.Momentum):\n    pass\n\n\ndef parse_args"
    )
    lab = Lab(write(tmp_path, lion), drivers)
    result = check("window-equals-batch", lab)
    assert (result.verdict, result.reason) == (
        "not judged",
        "the reference does not know Lion",
    )
    # What needs no reference is judged all the same.
    assert check("overflow", lab).verdict in ("pass", "not judged")
    assert check("train-mode", lab).verdict == "pass"


def test_windows_that_cannot_be_seen_are_not_judged(tmp_path, drivers):
    text = generate(SPEC)
    hidden = text.replace("print(json.dumps(record),", "print(repr(record),")
    assert hidden != text
    lab = Lab(write(tmp_path, hidden), drivers)
    result = check("window-equals-batch", lab)
    assert result.verdict == "not judged", result
    assert result.reason == "a line of metrics.jsonl is not JSON"


def test_a_random_state_of_before_does_not_matter_but_the_seed_does(tmp_path, drivers):
    lab = Lab(write(tmp_path, generate(SPEC)), drivers)
    case = Case(network="random", sizes=(4,) * 3, lr=0.1)
    runs = [
        lab.run(replace(case, stir=1)),
        lab.run(replace(case, stir=2)),
        lab.run(replace(case, arguments=("--seed", "7"))),
    ]
    weights = [run.arrays["start.net.hidden.weight"] for run in runs]
    assert np.array_equal(weights[0], weights[1])
    assert not np.array_equal(weights[0], weights[2])


# ---- the report


def test_only_what_applies_counts():
    first, second, third = PROPERTIES[:3]
    good = {first: Result("pass", "1", bound="2"), second: Result("not applicable")}
    assert passed(good)
    bad = good | {third: Result("not judged", reason="because")}
    assert not passed(bad)
    assert summary(bad) == "1 passed, 1 not judged, 1 not applicable"
    assert "because" in table(bad)
    assert as_data(bad)[2]["verdict"] == "not judged"


# ---- the reference, held against what is known without it


@pytest.mark.parametrize("weights", [reference.weights(), reference.linear_weights()])
def test_the_gradient_is_the_slope_of_the_loss(weights):
    data, label = reference.micro_batches((5,))[0]
    _, gradient = reference.loss_and_gradient(weights, data, label)
    weights = {name: value.astype(float) for name, value in weights.items()}
    for name, value in weights.items():
        for index in np.ndindex(value.shape):
            ends = []
            for step in (1e-6, -1e-6):
                moved = value.copy()
                moved[index] += step
                changed = weights | {name: moved}
                ends.append(reference.loss_and_gradient(changed, data, label)[0])
            slope = (ends[0] - ends[1]) / 2e-6
            assert slope == pytest.approx(gradient[name][index], abs=1e-8)


def test_the_scale_grows_and_shrinks_by_windows():
    scale = reference.LossScale(1024, 2, 3)
    finite = [1, 1, 1, 1, 1, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1]
    seen = []
    for good in finite:
        scale.adjust(bool(good))
        seen.append(scale.value)
    # As amp.DynamicLossScaler went.
    assert (
        seen
        == [1024] * 2 + [2048] * 3 + [1024] * 3 + [2048, 1024] + [512] * 3 + [1024] * 2
    )
    scale = reference.LossScale(1.5, 2, 3)
    scale.adjust(False)
    assert scale.value == 1.0


def test_windows_of_epochs():
    found = reference.windows(5, 2, 2)
    assert [window.indices for window in found[:3]] == [(0, 1), (2, 3), (4,)]
    assert [window.partial for window in found] == [False, False, True] * 2
    assert [window.start for window in found] == [0, 2, 4, 5, 7, 9]
    assert [len(reference.windows(count, 1, 3)) for count in (1, 3, 4)] == [1, 1, 2]


def test_optimizers_that_the_reference_does_not_know_are_refused_by_name():
    about = {
        "class": "Adam",
        "own": False,
        "bases": ["Optimizer"],
        "order": ["w"],
        "grouped_rates": False,
        "loss_scale": 1.0,
        "decay": [0.1],
        "dampening": 0.0,
        "nesterov": False,
        "decoupled": None,
    }
    assert rule_of(about).kind == "adam"
    for change, name in (
        ({"class": "Lion"}, "Lion"),
        ({"class": "Adam", "own": True}, "Adam"),
        ({"amsgrad": True}, "Adam with AMSGrad"),
        ({"class": "Momentum", "nesterov": True}, "Nesterov's Momentum"),
        ({"grouped_rates": True}, "parameter groups with own rates"),
        ({"loss_scale": 2.0}, "an optimizer with a loss_scale"),
    ):
        with pytest.raises(NotJudged, match=f"does not know {name}"):
            rule_of(about | change)
    with pytest.raises(NotJudged, match="no optimizer"):
        rule_of(None)
