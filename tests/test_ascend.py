"""Scripts are judged for Ascend without an NPU; what must pass passes, and no more.

The dry run needs g++ and binutils. Without them its tests fail: a check that is
silently left out is none.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from combinations import name_of, pairwise_specs
from golden_specs import paths
from harness import write_script

from generator.verify.ascend import (
    Finding,
    Outcome,
    Verdict,
    check_calls,
    check_controls,
    dry_run,
    dryrun,
    stubs,
)
from generator.verify.ascend.judgement import SHORT
from generator.verify.ascend.judgement import judge as judge_script

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
WORDS = "Ascend dry-run checked (CANN replaced by stubs)"


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """One folder of stand-ins for all test processes of a session."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    return shared / "cache"


@pytest.fixture(autouse=True)
def _use_cache(cache, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))


def judge(text: str, folder: Path, *arguments: str, timeout: float = 60) -> Outcome:
    """Dry-run a script of this text."""
    script = folder / "script.py"
    script.write_text(textwrap.dedent(text), encoding="utf-8")
    return dry_run(script, arguments, timeout=timeout)


def findings(text: str, folder: Path, device: str = "Ascend") -> list[Finding]:
    """Check the calls of a script of this text."""
    script = folder / "script.py"
    script.write_text(textwrap.dedent(text), encoding="utf-8")
    return check_calls(script, device)


def of_kind(kind: str, found: list[Finding]) -> list[str]:
    return [str(finding) for finding in found if finding.kind == kind]


# The dry run


def test_the_controls_come_out_right():
    outcome = check_controls()
    assert outcome.verdict is Verdict.PASS, f"{outcome}\n{outcome.log[-3000:]}"
    began = time.monotonic()
    assert check_controls().verdict is Verdict.PASS
    assert time.monotonic() - began < 3, "a good result is kept; anew, it takes 6 s"


@pytest.mark.parametrize("name", sorted(dryrun.EXPECTED))
def test_nothing_is_trusted_when_a_control_is_wrong(tmp_path, monkeypatch, name):
    """Each control alone can stop the judging."""
    controls = tmp_path / "controls"
    shutil.copytree(dryrun.CONTROLS, controls)
    # The one that must pass now fails; those that must fail now pass.
    source = "falls_back.py" if name == "passes.py" else "passes.py"
    shutil.copy(dryrun.CONTROLS / source, controls / name)
    monkeypatch.setattr(dryrun, "CONTROLS", controls)
    outcome = judge("print('never run')", tmp_path)
    assert outcome.verdict is Verdict.UNCHECKABLE
    assert f"the control {name} has to end with" in outcome.reason
    assert "never run" not in outcome.log


@pytest.mark.parametrize(
    "spec", [*pairwise_specs("float16"), *pairwise_specs("bfloat16")], ids=name_of
)
def test_every_two_choices_meet_in_scripts_that_pass(tmp_path, spec):
    script = write_script(spec, tmp_path)
    outcome = dry_run(script, SHORT)
    assert outcome.verdict is Verdict.PASS, f"{outcome}\n{outcome.log[-3000:]}"
    assert outcome.reason.startswith(WORDS) and outcome.kernels > 20
    # Made-up values count as finite: the run ended by its own limit of updates.
    assert "done: 1 updates, 0 skipped" in outcome.log
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.py"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_pass_both_layers(path):
    found = judge_script(path)
    assert found.passed, f"{found.text()}\n{found.outcome.log[-3000:]}"
    assert found.text().startswith("There is no NPU here: nothing was executed on one.")


IMPORTS = """
    import numpy as np
    import mindspore as ms
    from mindspore import Tensor, amp, nn, ops
    ms.set_device("Ascend")
"""


def test_a_users_network_with_max_pooling_fails_in_bfloat16_alone(tmp_path):
    text = """
    import sys
    network = nn.SequentialCell(nn.Conv2d(1, 6, 5), nn.MaxPool2d(2, 2))
    network = amp.auto_mixed_precision(network, "O2", getattr(ms, sys.argv[1]))

    @ms.jit
    def run(x):
        return network(x)

    run(Tensor(np.ones((2, 1, 8, 8), np.float32)))
    """
    good = judge(IMPORTS + text, tmp_path, "float16")
    assert good.verdict is Verdict.PASS, f"{good}\n{good.log[-3000:]}"
    bad = judge(IMPORTS + text, tmp_path, "bfloat16")
    assert bad.verdict is Verdict.FAIL
    assert bad.reason == "no Ascend kernel, falls back to the CPU: MaxPool."


def test_a_name_that_is_gone_fails_at_its_line(tmp_path):
    outcome = judge(IMPORTS + "    ms.ms_function(print)\n", tmp_path)
    assert outcome.verdict is Verdict.FAIL
    assert outcome.reason == (
        "script.py:6: AttributeError: module 'mindspore' has no attribute "
        "'ms_function'"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import sys; sys.exit('error: no data')", "the script ended itself"),
        ("raise SystemExit(3)", "the script ended itself"),
        ("assert 1 > 2, 'my own'", "the script raised an error of its own"),
        ("1 / float(Tensor([1.0]).sum())", "values are made up in a dry run"),
        ("open('nowhere.txt')", "the script lacks something here"),
        ("import no_such_module", "the script lacks something here"),
        ("import os; os.abort()", "the process died of SIGABRT"),
        ("import os; os._exit(0)", "the process ended with status 0 before"),
        ("print('no operator')", "nothing was run on Ascend"),
    ],
)
def test_what_says_nothing_of_ascend_is_not_judged(tmp_path, text, reason):
    outcome = judge(IMPORTS + f"    {text}\n", tmp_path)
    assert outcome.verdict is Verdict.UNCHECKABLE, str(outcome)
    assert outcome.reason.startswith(reason)


@pytest.mark.parametrize("text", ["if bool(x.isnan()):", "if not bool(x.isfinite()):"])
def test_a_script_may_ask_for_finite_or_for_nan(tmp_path, text):
    outcome = judge(
        IMPORTS + f"""
    x = Tensor(2.0) * Tensor(3.0)
    {text}
        raise RuntimeError("the loss is not finite")
    """,
        tmp_path,
    )
    assert outcome.verdict is Verdict.PASS, f"{outcome}\n{outcome.log[-3000:]}"


def test_a_run_without_end_is_cut_with_all_that_it_started(tmp_path):
    pid = tmp_path / "pid"
    began = time.monotonic()
    outcome = judge(
        f"""
    import subprocess, sys, time
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    open({str(pid)!r}, "w").write(str(child.pid))
    time.sleep(600)
    """,
        tmp_path,
        timeout=8,
    )
    assert time.monotonic() - began < 60
    assert outcome.verdict is Verdict.UNCHECKABLE
    assert outcome.reason.startswith("still running after 8 seconds")
    time.sleep(0.5)
    status = Path("/proc", pid.read_text(), "stat")
    # Whoever adopts it may not have waited for it yet.
    assert not status.exists() or ") Z " in status.read_text()


def test_a_long_pass_over_data_is_cut_short(tmp_path):
    outcome = judge(
        IMPORTS + """
    import mindspore.dataset as ds
    rows = [np.ones(2, np.float32)] * 10**6
    count = 0
    for (x,) in ds.GeneratorDataset(rows, ["x"]).create_tuple_iterator(num_epochs=1):
        count += 1
    print("passed over", count, "of", len(rows), x + 1)
    """,
        tmp_path,
        timeout=20,
    )
    assert outcome.verdict is Verdict.PASS, f"{outcome}\n{outcome.log[-3000:]}"
    assert "passed over" in outcome.log
    assert "passed over 1000000" not in outcome.log


def test_a_missing_compiler_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    monkeypatch.setenv("PATH", str(tmp_path))
    outcome = judge("print(1)", tmp_path)
    assert outcome.verdict is Verdict.UNCHECKABLE
    assert outcome.reason.startswith("g++, nm, readelf, strings not found")
    assert "apt-get install g++ binutils" in outcome.reason


def test_a_cache_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    outcome = judge("print(1)", tmp_path)
    assert outcome.verdict is Verdict.UNCHECKABLE
    assert outcome.reason.startswith("no place to build stand-ins for CANN: ")


def test_an_interpreter_without_mindspore_is_named(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("print(1)", encoding="utf-8")
    for python, said in (("/usr/bin/false", "has no MindSpore"), ("no/such", "be run")):
        outcome = dry_run(script, python=python)
        assert outcome.verdict is Verdict.UNCHECKABLE and said in outcome.reason
        (finding,) = check_calls(script, "Ascend", python=python)
        assert finding.kind == "unknown" and "no call was judged" in finding.problem


def test_many_may_build_the_stand_ins_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    mindspore = stubs.find_mindspore(sys.executable)
    built: list[Path] = []
    threads = [
        threading.Thread(target=lambda: built.append(stubs.stub_libraries(mindspore)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 3 and len(set(built)) == 1
    assert (built[0] / "libascendcl.so").is_file()
    # Nothing is left of what was built on the way, and not used.
    assert list(stubs.cache_folder().iterdir()) == [built[0].parent.parent]


# The static check

# MindSpore 2.9 and 2.10 announce the end of these; they are there, and work, in both.
ANNOUNCED = {
    "nn.Momentum",
    "ops.assign",
    "ops.assign_add",
    "ops.assign_sub",
    "ops.clip_by_global_norm",
}


@pytest.mark.parametrize("path", paths(), ids=lambda path: path.name)
def test_golden_scripts_have_no_findings(path):
    found = check_calls(path, "Ascend")
    assert of_kind("fail", found) == [] and of_kind("unknown", found) == []
    assert {finding.name for finding in found} <= ANNOUNCED


BAD_CALLS = {
    "ms.ms_function(print)": (
        "ms.ms_function: MindSpore {version} has no such name: there is no "
        "mindspore.ms_function; use mindspore.jit"
    ),
    "import mindspore.dataset.vision.c_transforms as c": (
        "mindspore.dataset.vision.c_transforms: MindSpore {version} has no such name: "
        "there is no mindspore.dataset.vision.c_transforms; "
        "use mindspore.dataset.vision"
    ),
    "nn.Relu()": (
        "nn.Relu: MindSpore {version} has no such name: there is no mindspore.nn.Relu; "
        "use ReLU"
    ),
    "nn.Dense(3, 4, bias=False)": "nn.Dense: it takes no keyword bias; it has ",
    "nn.Adam(parameters, lr=0.1)": "nn.Adam: it takes no keyword lr; it has ",
    "ms.jit(print, jit_levl='O0')": "ms.jit: it takes no keyword jit_levl; it has ",
    "nn.Dense(3)": "nn.Dense: it needs out_channels",
    "ops.assign(1, 2, 3)": "ops.assign: it takes at most 2 arguments in order, not 3",
    "ops.Cholesky()": "ops.Cholesky: it runs on GPU and CPU, not on Ascend",
    "ds.GeneratorDataset([1], ['a']).batch(2).maps(3)": (
        "ds.GeneratorDataset([1], ['a']).batch(2).maps: MindSpore {version} has no "
        "such name: a Dataset has no maps; use map"
    ),
    "amp.auto_mixed_precision(nn.Dense(3, 4), level='O2')": (
        "amp.auto_mixed_precision: it takes no keyword level; it has network, "
    ),
    "nn.SGD([]).get_rate()": (
        "nn.SGD([]).get_rate: MindSpore {version} has no such name: "
        "a SGD has no get_rate"
    ),
}


@pytest.fixture(scope="session")
def judged_calls(tmp_path_factory):
    """The findings on all bad calls, a line each, from one look-up."""
    lines = "import mindspore as ms\nimport mindspore.dataset as ds\n"
    lines += "from mindspore import amp, nn, ops\nparameters = []\n"
    return findings(lines + "\n".join(BAD_CALLS), tmp_path_factory.mktemp("calls"))


@pytest.mark.parametrize("call", BAD_CALLS)
def test_a_bad_call_is_found(judged_calls, call):
    line = 5 + list(BAD_CALLS).index(call)
    found = [item for item in judged_calls if item.line == line]
    version = stubs.find_mindspore(sys.executable).version
    if "c_transforms" in call and version.startswith("2.7."):
        assert found == []  # the last one that still has it
        return
    said = f"line {line}: " + BAD_CALLS[call].format(version=version)
    assert any(str(item).startswith(said) for item in found), list(map(str, found))
    assert all(item.kind == "fail" for item in found)


def test_the_device_decides(tmp_path):
    text = "import mindspore\nmindspore.mint.optim.AdamW([])\n"
    assert of_kind("fail", findings(text, tmp_path)) == []
    assert of_kind("fail", findings(text, tmp_path, "CPU")) == [
        "line 2: mindspore.mint.optim.AdamW: it runs on Ascend, not on CPU"
    ]


def test_own_overflow_tests_are_a_trap_on_ascend(tmp_path):
    text = """
    from mindspore import amp, ops

    def finite(gradients):
        return all(ops.isfinite(g).all() for g in gradients)
    """
    said = (
        "line 5: ops.isfinite: a test of gradients written by hand sees no overflow "
        "where Ascend saturates; use amp.all_finite"
    )
    assert of_kind("fail", findings(text, tmp_path)) == [said]
    assert of_kind("fail", findings(text, tmp_path, "CPU")) == []
    other = text.replace("gradients", "losses").replace("isfinite(g)", "isfinite(x)")
    assert of_kind("fail", findings(other.replace(" g ", " x "), tmp_path)) == []


@pytest.mark.parametrize(
    ("arguments", "bad"),
    [
        ("callbacks=[Log()], dataset_sink_mode=True", True),
        ("[LossMonitor()], True", True),
        ("callbacks=Log(), dataset_sink_mode=True", True),
        ("callbacks=[Log()], dataset_sink_mode=False", False),
        ("callbacks=[Log()], dataset_sink_mode=True, sink_size=1", False),
        ("callbacks=[Epochs()], dataset_sink_mode=True", False),
        ("dataset_sink_mode=True", False),
    ],
)
def test_sink_mode_hides_steps_from_callbacks(tmp_path, arguments, bad):
    text = f"""
    from mindspore.train import Callback, LossMonitor, Model

    class Log(Callback):
        def on_train_step_end(self, run_context):
            print(run_context.original_args().cur_step_num)

    class Epochs(Callback):
        def on_train_epoch_end(self, run_context):
            print("epoch")

    Model(None).train(1, None, {arguments})
    """
    found = findings(text, tmp_path)
    assert of_kind("unknown", found) == []
    assert ["dataset_sink_mode" in said for said in of_kind("fail", found)] == [
        True
    ] * bad


def test_a_network_in_a_file_beside_the_script_is_read_too(tmp_path):
    (tmp_path / "net.py").write_text(
        "from mindspore import nn\n\n\nclass Network(nn.Cell):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        self.pool = nn.MaxPool2d(2, strides=2)\n"
    )
    text = "from net import Network\n\nnetwork = Network()\nnetwork.set_trian(True)\n"
    fails = of_kind("fail", findings(text, tmp_path))
    assert fails[0].startswith("line 4: network.set_trian: ")
    assert fails[0].endswith("a Cell has no set_trian; use set_train")
    assert fails[1].startswith(
        "net.py line 7: nn.MaxPool2d: it takes no keyword strides"
    )


def test_what_is_not_known_is_counted(tmp_path):
    text = "import mindspore\n\n\ndef f(x):\n    return x.asnumpy()\n"
    assert of_kind("unknown", findings(text, tmp_path)) == [
        "line 5: x.asnumpy: not judged: what it is called on is not known"
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"def f(:\n", "script.py, line 1: invalid syntax."),
        (b"\xff\xfe", "invalid or missing encoding declaration"),
        (b"x = 1\0", "source code string cannot contain null bytes"),
        (b"x = " + b"(" * 300 + b"1" + b")" * 300, "too many nested parentheses"),
        (b"x = " + b"-" * 9000 + b"1", "it is nested too deep to be read"),
        (b"x = y" + b".z()" * 5000, "it is nested too deep to be read"),
    ],
    ids=["syntax", "encoding", "null", "nested", "deep", "long"],
)
def test_what_is_not_python_is_one_finding(tmp_path, text, said):
    script = tmp_path / "script.py"
    script.write_bytes(text)
    (finding,) = check_calls(script, "Ascend")
    assert said in str(finding) and finding.kind in ("fail", "unknown")


def test_a_script_that_is_not_there_is_one_finding(tmp_path):
    (finding,) = check_calls(tmp_path / "none.py", "Ascend")
    assert finding.kind == "fail" and "none.py does not exist." in finding.problem
    outcome = dry_run(tmp_path / "none.py")
    assert outcome.verdict is Verdict.UNCHECKABLE
