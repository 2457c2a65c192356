"""Every mutant is caught by the checks that it names.

That these checks pass the right scripts that mutants are made of, test_contract shows.
"""

from __future__ import annotations

import pytest
from combinations import STYLES
from mutants import MUTANTS, cases

from generator.verify.checks import check
from generator.verify.lab import Drivers, Lab


@pytest.fixture(scope="module")
def drivers(tmp_path_factory):
    """One process for all scripts: importing MindSpore takes seconds."""
    found = Drivers(tmp_path_factory.mktemp("drivers"))
    yield found
    found.stop()


@pytest.mark.parametrize(
    ("style", "mutant"), [pytest.param(*c, id=f"{c[1].name}-{c[0]}") for c in cases()]
)
def test_mutant_is_caught(tmp_path, drivers, style, mutant):
    script = tmp_path / "train.py"
    script.write_text(mutant.text(style), encoding="utf-8")
    lab = Lab(script, drivers)
    run = lab.attempt(lab.base)
    assert run.status == 0, f"it has to run, not to fall over: {run.message}"
    for name in mutant.caught_by:
        result = check(name, lab)
        assert result.verdict == "fail", (name, result)


def test_mutants_are_many_and_of_different_names():
    names = [mutant.name for mutant in MUTANTS]
    assert len(set(names)) == len(names)
    for style in STYLES:
        assert sum(s == style for s, _ in cases()) >= 20
