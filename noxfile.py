"""The suites with every MindSpore that scripts are meant for: `make test-versions`."""

import nox

from generator.catalog.versions import MINDSPORE_VERSIONS

nox.options.reuse_existing_virtualenvs = True
SUITES = ("test_execution.py", "test_contract.py", "test_resume.py", "test_ascend.py")


@nox.session(python="3.11")
@nox.parametrize("mindspore", MINDSPORE_VERSIONS)
def versions(session: nox.Session, mindspore: str) -> None:
    """Execution, contract, resume and Ascend dry run with one MindSpore."""
    session.install(f"mindspore=={mindspore}", "numpy<2")
    session.install("--editable", ".[examples,dev]")
    tests = [f"tests/{suite}" for suite in SUITES]
    session.run("python", "-m", "pytest", "-q", "-n", "2", *tests, *session.posargs)
