"""The command line: what it prints, how it refuses, and that nothing is ever lost."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from generator import TrainingSpec, generate

ROOT = Path(__file__).resolve().parent.parent


def msgen(*arguments: str, cwd: Path, **options):
    """Run ``python -m generator`` as a user without a terminal does."""
    return subprocess.run(
        [sys.executable, "-m", "generator", *arguments],
        cwd=cwd,
        text=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": "100"},
        check=False,
        **options,
    )


def refusal(*arguments: str, cwd: Path, status: int = 1) -> str:
    """The whole message of a refusal, during which no file appeared or changed."""
    before = {p: p.read_bytes() for p in cwd.rglob("*") if p.is_file()}
    done = msgen(*arguments, cwd=cwd)
    assert done.returncode == status, (done.stdout, done.stderr)
    assert done.stdout == ""
    assert {p: p.read_bytes() for p in cwd.rglob("*") if p.is_file()} == before
    assert "Traceback" not in done.stderr and "\x1b" not in done.stderr
    return done.stderr


def test_writes_a_script_and_says_what_was_chosen(tmp_path):
    done = msgen("--style", "functional", "--amp", "o2", "--accum", "4", cwd=tmp_path)
    text = (tmp_path / "train.py").read_text(encoding="utf-8")
    assert (done.returncode, done.stderr) == (0, "")
    assert text == generate(TrainingSpec(amp="O2", accum=4))
    assert done.stdout == f"""\
wrote train.py ({len(text.splitlines())} lines)
  functional style, graph mode, O2 float16, dynamic loss scale
  4 micro-batches of 32 per update; adam, lr 0.002 constant
  lenet5 on synthetic, 10 epochs, seed 1
run it: python train.py
"""
    assert [p.name for p in tmp_path.iterdir()] == ["train.py"]


def test_the_script_goes_to_standard_output(tmp_path):
    done = msgen("-o", "-", "--amp", "O3", cwd=tmp_path)
    assert done.stdout == generate(TrainingSpec(amp="O3"))
    assert "warning: --amp O3" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_everything_that_is_wrong_is_said_at_once(tmp_path):
    message = refusal(
        *("--amp-dtype", "bfloat16", "--device", "cpu", "--accum", "0"),
        *("--lr", "1e400", "--loss-scale-value", "8", "--clip-norm", "nan"),
        cwd=tmp_path,
    )
    assert message == """\
msgen: nothing was written: 6 problems

  --accum 0
      A window needs at least 1 micro-batch.

  --lr inf
      It must be a finite number above 0.

  --clip-norm nan
      It must be a finite number above 0; without the option nothing is clipped.

  --amp-dtype bfloat16 --amp O0
      At O0 everything stays in float32, so there is nothing in bfloat16.

  --amp-dtype bfloat16 --device CPU
      MindSpore's CPU kernels have no bfloat16; it needs an Ascend NPU.

  --loss-scale-value 8 --loss-scale none
      It sets loss scaling, but no scaling is on (--amp O0 alone turns none on).

This works:
  msgen --style functional --device CPU --amp O2 --loss-scale fixed --loss-scale-value 8
"""
    suggested = message.splitlines()[-1].split()[1:]
    assert msgen(*suggested, cwd=tmp_path).returncode == 0


def test_unknown_words_are_wrong_usage_with_a_way_out(tmp_path):
    message = refusal(
        *("--style", "funtional", "--accum", "four", "--epochs", "0"),
        cwd=tmp_path,
        status=2,
    )
    assert message == """\
msgen: nothing was written: 3 problems

  --style funtional
      'funtional' is none of functional, cell, model. Did you mean functional?

  --accum four
      'four' is not a valid integer.

  --epochs 0
      A run needs at least 1 epoch.

This works:
  msgen --style functional --epochs 1
"""
    assert "No such option" in refusal("--ampp", "O2", cwd=tmp_path, status=2)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--accum", "-1"),
        ("--batch-size", "0"),
        ("--epochs", "-3"),
        ("--warmup", "-1"),
        ("--seed", "-1"),
        ("--seed", "4294967296"),
        ("--lr", "0"),
        ("--lr", "-inf"),
        ("--weight-decay", "-0.1"),
        ("--clip-norm", "0"),
        ("--loss-scale-value", "0.5"),
        ("--loss-scale-factor", "1"),
        ("--loss-scale-window", "0"),
    ],
)
def test_numbers_that_make_no_sense_are_refused_with_a_command_that_works(
    tmp_path, option, value
):
    message = refusal("--amp", "O2", option, value, cwd=tmp_path)
    assert message.startswith("msgen: nothing was written: 1 problem\n\n  " + option)
    suggested = message.splitlines()[-1].split()[1:]
    assert msgen(*suggested, cwd=tmp_path).returncode == 0


def test_an_existing_file_is_kept_without_force(tmp_path):
    target = tmp_path / "train.py"
    target.write_text("mine\n")
    target.chmod(0o640)
    assert refusal(cwd=tmp_path) == """\
msgen: nothing was written: 1 problem

  -o train.py
      The file exists; --force overwrites it, --dry-run shows what would change.

This works:
  msgen --style functional --force
"""
    shown = msgen("--dry-run", cwd=tmp_path)
    assert shown.returncode == 0 and shown.stdout.startswith("--- train.py\n+++ ")
    assert "\n-mine\n" in shown.stdout and "\x1b" not in shown.stdout
    assert target.read_text() == "mine\n"
    assert msgen("--force", cwd=tmp_path).returncode == 0
    assert target.read_text(encoding="utf-8") == generate(TrainingSpec())
    assert target.stat().st_mode & 0o777 == 0o640
    assert msgen("--dry-run", cwd=tmp_path).stdout == "train.py would stay as it is.\n"


def test_a_suggestion_keeps_what_was_not_wrong(tmp_path):
    (tmp_path / "train.py").write_text("mine\n")
    message = refusal("--force", "--dry-run", "--accum", "0", cwd=tmp_path)
    assert message.endswith("  msgen --style functional --force --dry-run\n")
    message = refusal("-o", "-", "--accum", "0", cwd=tmp_path)
    assert message.endswith("  msgen --style functional -o -\n")


def test_places_that_cannot_be_written_are_refused(tmp_path):
    (tmp_path / "folder").mkdir()
    message = refusal("-o", "folder", cwd=tmp_path)
    assert "It is a folder." in message
    assert "msgen --style functional -o folder/train.py" in message
    message = refusal("-o", "absent/train.py", cwd=tmp_path)
    assert "The folder absent does not exist." in message
    assert "control characters" in refusal("-o", 'a"b.py', cwd=tmp_path)
    assert refusal("-o", "/proc/train.py", cwd=tmp_path) != ""


def test_a_link_is_written_through(tmp_path):
    (tmp_path / "real.py").write_text("old")
    (tmp_path / "train.py").symlink_to("real.py")
    assert msgen("--force", cwd=tmp_path).returncode == 0
    assert (tmp_path / "train.py").is_symlink()
    assert (tmp_path / "real.py").read_text() == generate(TrainingSpec())


def test_a_full_disk_leaves_the_old_file_whole(tmp_path):
    target = tmp_path / "train.py"
    target.write_text("mine\n")

    def no_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    done = msgen("--force", cwd=tmp_path, preexec_fn=no_room)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "File too large; what was there is unchanged." in done.stderr
    assert target.read_text() == "mine\n"
    assert [p.name for p in tmp_path.iterdir()] == ["train.py"]
    done = msgen("-o", "/dev/full", cwd=tmp_path)
    assert done.returncode == 1 and "No space left on device" in done.stderr


def test_list_shows_the_catalogue_and_gives_it_as_json(tmp_path):
    from generator.listing import CATALOGUES

    text = msgen("list", cwd=tmp_path).stdout
    data = json.loads(msgen("list", "--json", cwd=tmp_path).stdout)
    for name, catalogue in CATALOGUES.items():
        assert f"{name}:\n" in text
        assert [entry["name"] for entry in data[name]] == list(catalogue)
        assert all(entry.summary in text for entry in catalogue.values())
    one = json.loads(msgen("list", "MODELS", "--json", cwd=tmp_path).stdout)
    assert [entry["name"] for entry in one] == ["mlp", "lenet5", "resnet18"]
    done = msgen("--amp", "O2", "list", cwd=tmp_path)
    assert done.returncode == 2 and "--amp is for writing a script" in done.stderr


def test_help_and_readme_name_every_option(tmp_path):
    from golden_specs import options_table

    from generator.catalog.options import OPTIONS

    text = msgen("-h", cwd=tmp_path).stdout
    assert all(f"  {option.flag} " in text for option in OPTIONS)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert options_table() in readme, "run `make golden`"
    assert msgen("-V", cwd=tmp_path).stdout == "msgen, version 0.1.0\n"


def test_what_the_readme_shows_is_what_comes_out(tmp_path):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    excerpt = readme.split("```python\n")[1].split("```")[0]
    command = "--style functional --amp O2 --accum 4 --model lenet5 --dataset digits"
    done = msgen(*command.split(), cwd=tmp_path)
    assert excerpt in (tmp_path / "train.py").read_text(encoding="utf-8")
    assert textwrap.indent(done.stdout, "    ") in readme
    arguments = "--amp-dtype bfloat16 --device CPU"
    (tmp_path / "empty").mkdir()
    message = refusal(*arguments.split(), cwd=tmp_path / "empty")
    assert f"    $ msgen {arguments}\n" + textwrap.indent(message, "    ") in readme


def test_completion_offers_the_choices(tmp_path):
    environment = {
        "_MSGEN_COMPLETE": "bash_complete",
        "COMP_WORDS": "msgen --optimizer ad",
        "COMP_CWORD": "2",
    }
    done = subprocess.run(
        [sys.executable, "-m", "generator"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["plain,adam", "plain,adamw"]


# What a command must do without: the time of the command is that of its imports.
HEAVY = {"mindspore", "numpy", "sklearn", "torch"}
FORMATTING = {"black", "blib2to3"}
WRITING = {"generator.plan", "generator.render", "generator.rules", "jinja2"}


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (["--amp", "O2", "--accum", "4"], HEAVY | FORMATTING),
        (["--model", "net.py:Net"], HEAVY | FORMATTING),
        (["--dataset", "mnist"], HEAVY),  # Black breaks a line in this one
        (["list"], HEAVY | FORMATTING | WRITING),
        (["--help"], HEAVY | FORMATTING | WRITING | {"difflib", "pathlib", "tempfile"}),
    ],
)
def test_a_command_imports_nothing_that_it_does_not_need(tmp_path, arguments, absent):
    (tmp_path / "net.py").write_text("class Net(object):\n    pass\n")
    code = """
import sys
before = set(sys.modules)
from generator.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print(*(set(sys.modules) - before), file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    imported = set(done.stderr.splitlines()[-1].split())
    assert "generator.cli" in imported
    assert imported & absent == set()


def test_the_users_own_black_settings_have_no_say(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.black]\nline-length = 40\n")
    msgen(cwd=tmp_path)
    assert (tmp_path / "train.py").read_text() == generate(TrainingSpec())
