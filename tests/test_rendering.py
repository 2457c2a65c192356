"""Every combination of options gives a clean script; no MindSpore is needed here."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import black
import pytest
from black.mode import TargetVersion
from combinations import SCHEDULES, all_specs, name_of, other_specs

from generator import TrainingSpec, generate
from generator.command import command
from generator.formatting import BETWEEN, LINE_LENGTH
from generator.plan import plan
from generator.render import render

ALL = all_specs()
JINJA = ("{{", "}}", "{%", "%}", "{#", "jinja")


def ruff(folder: Path, rules: str) -> str:
    """What ruff, with no configuration but ours, has against the files of a folder."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache"),
            *("--output-format", "concise", "--select", rules, str(folder)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return "" if done.returncode == 0 else done.stdout


def test_there_are_as_many_combinations_as_the_catalogue_makes():
    # O0 has no bfloat16: 1 + 4 * 2 precisions; 6 schedules; the rest are pairs.
    assert len(ALL) == 3 * 9 * 3 * 2 * 2 * 2 * 6


def test_every_combination_parses_and_uses_what_it_imports(tmp_path):
    texts = {}
    for index, spec in enumerate(ALL):
        text = render(plan(spec))
        ast.parse(text)
        assert not any(trace in text for trace in JINJA), spec
        texts.setdefault(text, index)
    assert len(texts) == len(ALL)  # every option shows in the script
    for text, index in texts.items():
        (tmp_path / f"script{index}.py").write_text(text, encoding="utf-8")
    assert ruff(tmp_path, "F,I,B") == ""


# Linting takes most of the time, so that here every combination of the others comes
# with one of the six schedules in turn.
LINTED = [
    spec
    for index, spec in enumerate(ALL)
    if (spec.lr_schedule, spec.warmup) == SCHEDULES[index // 6 % 6]
]


def test_scripts_are_clean_as_they_are_written(tmp_path):
    for index, spec in enumerate(LINTED + other_specs()):
        text = generate(spec)
        assert text.endswith("\n") and not text.endswith("\n\n")
        (tmp_path / f"script{index}.py").write_text(text, encoding="utf-8")
    assert ruff(tmp_path, "F,E,I,B") == ""


@pytest.fixture(scope="module")
def texts():
    """Every combination's script; several hundred characters of each are its own."""
    return {name_of(spec): generate(spec) for spec in ALL + other_specs()}


def as_black_writes(text: str) -> str:
    mode = black.Mode(target_versions={TargetVersion.PY39}, line_length=LINE_LENGTH)
    return black.format_str(text, mode=mode)


def test_black_finds_nothing_to_do_in_any_definition(texts):
    # A definition that many scripts share is judged once.
    blocks = {
        block: name for name, text in texts.items() for block in text.split(BETWEEN)
    }
    for block, name in blocks.items():
        assert as_black_writes(block).rstrip("\n") == block.rstrip("\n"), name


def test_black_finds_nothing_to_do_between_definitions(texts):
    for text in list(texts.values())[::200]:
        assert as_black_writes(text) == text


@pytest.mark.parametrize(
    ("wider", "long"),
    [
        ({"dataset": "mnist"}, '        help="the four MNIST'),
        (
            {"optimizer": "momentum", "weight_decay": 0.01},
            "        network.trainable_params(), args.lr, momentum=0.9",
        ),
    ],
)
def test_black_breaks_what_values_made_too_long(wider, long):
    text = generate(TrainingSpec(**wider))
    assert long in text
    assert as_black_writes(text) == text


def test_only_what_was_asked_for_is_there():
    plain = generate(TrainingSpec())
    for absent in ("ACCUM", "window_end", "amp.", "scale(", "clip", "LOSS", "WARMUP"):
        assert absent not in plain
    assert "clip_by" not in generate(TrainingSpec(accum=4, amp="O2"))
    assert "window_end" not in generate(TrainingSpec(amp="O2", clip_norm=1.0))
    assert "loss_scaler" not in generate(TrainingSpec(accum=4, clip_norm=1.0))


def test_the_names_are_the_same_in_all_styles():
    for style in ("functional", "cell", "model"):
        names = {
            node.name
            for node in ast.parse(generate(TrainingSpec(style=style, accum=2))).body
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
        }
        assert {"parse_args", "create_dataset", "Network", "evaluate", "main"} <= names


def test_the_docstring_has_the_command_that_makes_the_script():
    spec = TrainingSpec(
        style="cell", amp="O2", accum=4, clip_norm=0.5, lr_schedule="cosine", warmup=10
    )
    text = generate(spec)
    docstring = ast.get_docstring(ast.parse(text)) or ""
    words = docstring.split("msgen --", 1)[1].replace("\\\n", " ").split()
    assert ["msgen", "--" + words[0], *words[1:]] == command(spec).split()


def test_a_default_script_can_be_read_in_one_sitting():
    assert len(generate(TrainingSpec()).splitlines()) <= 425
