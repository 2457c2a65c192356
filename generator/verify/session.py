"""From a script to its results, over a few processes at once."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from generator.verify.checks import check
from generator.verify.contract import BY_NAME, PROPERTIES, Property
from generator.verify.lab import Drivers, Lab
from generator.verify.looking import CannotVerify
from generator.verify.result import Result, Stop

PROCESSES = 2


def verify(
    script: str,
    names: Sequence[str] = (),
    device: str | None = None,
    say: Callable[[Property, Result], None] = lambda property_, result: None,
) -> dict[Property, Result]:
    """Check the properties of the contract on a script that was looked at.

    Args:
        script: the file.
        names: of the properties; all of them if there are none.
        device: what the script gets as ``--device``.
        say: told of every result as it comes.

    Raises:
        CannotVerify: if the script cannot be run at all; the text says why.
    """
    chosen = [BY_NAME[name] for name in names] or list(PROPERTIES)
    with tempfile.TemporaryDirectory(prefix="msgen-verify-") as folder:
        drivers = Drivers(Path(folder), PROCESSES)
        try:
            lab = Lab(Path(script), drivers, device)
            try:
                # What every check needs; where this fails, all would say the same.
                _ = lab.facts
            except Stop as stop:
                raise CannotVerify(f"{script}: {stop}") from stop

            def judge(property_: Property) -> Result:
                result = check(property_.name, lab)
                say(property_, result)
                return result

            with ThreadPoolExecutor(PROCESSES) as pool:
                return dict(zip(chosen, pool.map(judge, chosen), strict=True))
        finally:
            drivers.stop()
