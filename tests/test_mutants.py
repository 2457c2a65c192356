"""Every mutant is caught by the checks that it names.

That these checks pass the right scripts that mutants are made of, test_contract shows.
"""

from __future__ import annotations

import os

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


def chosen():
    """Every mutant in one style, the styles in turn; in all with MSGEN_ALL_MUTANTS=1.

    The styles of a mutant share the check that catches it; all of them take too long
    for every run of the suite.
    """
    if os.environ.get("MSGEN_ALL_MUTANTS"):
        return list(cases())
    found = {}
    for style, mutant in cases():
        found.setdefault(mutant.name, []).append((style, mutant))
    return [same[i % len(same)] for i, same in enumerate(found.values())]


@pytest.mark.parametrize(
    ("style", "mutant"), [pytest.param(*c, id=f"{c[1].name}-{c[0]}") for c in chosen()]
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
