"""One run of a script on a probe: what is asked of the driver."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Case:
    """What the driver does with a script; all of it can be written as JSON.

    Attributes:
        network: a name in ``probes.NETWORKS``, or ``own`` for the script's own network
            and data.
        sizes: items of each micro-batch of an epoch.
        epochs: passes over the data.
        plants: (micro-batch of the run, value put into its data), counted from 0.
        data_seed: seed of the probe's data.
        gain: by what the data are multiplied.
        shuffle: whether the micro-batches come in an order drawn anew every epoch.
        lr: ``--lr``, or the script's own.
        max_updates: ``--max-updates``.
        arguments: further words of the script's command line.
        mode: ``graph`` or ``pynative``, whatever the script chooses.
        full_precision: leave the network in float32, whatever the AMP level.
        scale: the value a dynamic scale starts with, in place of the script's.
        scale_window: the windows after which it grows, in place of the script's.
        fixed_scale: the value of a fixed scale, in place of the script's; a script may
            show another.
        constants: module constants to replace, as (name, value).
        census: also note the type of every Parameter that the run makes.
        stir: draw random numbers before the run, so that only a seed makes two alike.
        signals: (window, signal number): sent to the run when the window is recorded;
            SIGKILL when it is about to write the next thing after that.
        output: the folder to use in place of a new one, to resume a run.
    """

    network: str = "plain"
    sizes: tuple[int, ...] = ()
    epochs: int = 1
    plants: tuple[tuple[int, float], ...] = ()
    data_seed: int = 0
    gain: float = 1.0
    shuffle: bool = False
    lr: float | None = None
    max_updates: int | None = None
    arguments: tuple[str, ...] = ()
    mode: str | None = None
    full_precision: bool = False
    scale: float | None = None
    scale_window: int | None = None
    fixed_scale: float | None = None
    constants: tuple[tuple[str, float], ...] = ()
    census: bool = False
    stir: int = 0
    signals: tuple[int, int] | None = None
    output: str | None = None

    def line(self, **request: Any) -> str:
        """The case as one line for the driver, with what else the request says."""
        return json.dumps({**request, "case": asdict(self)}) + "\n"

    @classmethod
    def read(cls, fields: dict[str, Any]) -> Case:
        """The case of a line that the driver has read."""
        return cls(**{name: _tuples(value) for name, value in fields.items()})


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
