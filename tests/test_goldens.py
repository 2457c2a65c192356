"""Scripts for chosen commands, to the byte; their diff is how a template is judged."""

from __future__ import annotations

import ast

import golden_specs
import pytest

from generator import generate

PATHS = golden_specs.paths()


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_golden_is_what_msgen_writes(path):
    assert path.read_text(encoding="utf-8") == generate(
        PATHS[path]
    ), "the script differs: run `make golden`, then read the diff"


def test_no_golden_is_left_over():
    for folder in {path.parent for path in PATHS}:
        assert {p for p in folder.iterdir() if p.suffix == ".py"} <= set(PATHS)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_the_command_in_the_docstring_gives_the_same_file(path, tmp_path, monkeypatch):
    from generator.cli import main

    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    command = docstring[docstring.index("msgen --") :].replace("\\\n", " ").split()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(command[1:])
    assert stop.value.code == 0
    assert (tmp_path / path.name).read_bytes() == path.read_bytes()
