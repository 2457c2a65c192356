"""An installed msgen finds its templates: from a wheel, in an empty environment."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from generator import TrainingSpec, generate
from generator.render import templates_dir

ROOT = Path(__file__).resolve().parent.parent


def run(*command: object, cwd: Path) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_wheel_in_an_empty_environment_writes_the_same_script(tmp_path):
    run(
        *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"),
        *("--wheel-dir", tmp_path, ROOT),
        cwd=tmp_path,
    )
    (wheel,) = tmp_path.glob("mindspore_msgen-*.whl")
    packed = {
        name
        for name in zipfile.ZipFile(wheel).namelist()
        if name.startswith("generator/")
    }
    there = {
        f"generator/templates/{path.relative_to(templates_dir()).as_posix()}"
        for path in templates_dir().rglob("*.jinja")
    }
    # Not modules only: the dry run has sources in C++ and controls.
    there |= {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "generator").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert packed == there
    run(sys.executable, "-m", "venv", tmp_path / "env", cwd=tmp_path)
    python = tmp_path / "env" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", wheel, cwd=tmp_path)
    run(tmp_path / "env" / "bin" / "msgen", "--amp", "O2", cwd=tmp_path)
    text = (tmp_path / "train.py").read_text(encoding="utf-8")
    assert text == generate(TrainingSpec(amp="O2"))
    installed = run(python, "-m", "pip", "list", cwd=tmp_path)
    assert "mindspore-msgen" in installed and "numpy" not in installed
