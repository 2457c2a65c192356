"""Runs a script for the dry run and writes down how it ended.

    python runner.py report.json truth seconds script.py [arguments]

Started by ``dryrun.py``, in a process and an environment of its own. Two things differ
from a plain run of the script. No kernel computes, so every number that is read from
the device is 0; every yes or no that is read is ``truth``, so that a window counts as
finite. And after ``seconds``, every pass over a data set ends with its next
micro-batch, so that what comes after the passes, an evaluation or a checkpoint, is
checked too.
"""

from __future__ import annotations

import dis
import importlib
import json
import os
import runpy
import sys
import time
import traceback
from pathlib import Path
from types import FrameType
from typing import Any


def main() -> None:
    """Run the script; the report is there whatever the script does."""
    report, truth, seconds, script, *arguments = sys.argv[1:]
    path = Path(report)
    # Python itself puts the script's folder here, and gives it these arguments.
    sys.path[0] = os.path.dirname(script)
    sys.argv = [script, *arguments]
    try:
        answer_tests(truth == "true")
        hurry(time.monotonic() + float(seconds))
        runpy.run_path(script, run_name="__main__")
        importlib.import_module("mindspore").runtime.synchronize()
        end: dict[str, Any] = {"end": "finished"}
    except SystemExit as stop:
        end = exited(stop)
    except BaseException as error:
        traceback.print_exc()
        end = raised(error, script)
    path.write_text(json.dumps(end), encoding="utf-8")


def answer_tests(truth: bool) -> None:
    """Let each yes or no that is read from the device be ``truth``."""
    tensor = importlib.import_module("mindspore").Tensor
    bool_ = importlib.import_module("mindspore").bool_
    item, asnumpy = tensor._item, tensor.asnumpy

    def made_up(self: Any) -> bool:
        return bool(self.dtype == bool_ and str(self.device).startswith("Ascend"))

    def read_item(self: Any) -> Any:
        return truth if made_up(self) and self.size == 1 else item(self)

    def read_array(self: Any) -> Any:
        array = asnumpy(self)
        return array.__class__(array.shape, bool, bytes([truth]) * array.size)

    def read(self: Any) -> Any:
        return read_array(self) if made_up(self) else asnumpy(self)

    tensor._item, tensor.asnumpy = read_item, read


def hurry(deadline: float) -> None:
    """From ``deadline`` on, end each pass over a data set with its next item."""
    engine = importlib.import_module("mindspore.dataset.engine.iterators")
    iterator = engine.Iterator
    advance, start = iterator.__next__, iterator.__iter__

    def first(self: Any) -> Any:
        self.hurried = False
        return start(self)

    def after(self: Any) -> Any:
        if time.monotonic() > deadline:
            if getattr(self, "hurried", False):
                raise StopIteration
            self.hurried = True
        return advance(self)

    iterator.__iter__, iterator.__next__ = first, after


def exited(stop: SystemExit) -> dict[str, Any]:
    """The report on a script that ended itself."""
    if stop.code is None or stop.code == 0:
        return {"end": "finished"}
    if not isinstance(stop.code, int):
        print(stop.code, file=sys.stderr)
    return {"end": "exited", "message": str(stop.code)}


def raised(error: BaseException, script: str) -> dict[str, Any]:
    """The report on an error: what, at which line of the script, and who raised it."""
    frames = list(traceback.walk_tb(error.__traceback__))
    lines = [line for frame, line in frames if frame.f_code.co_filename == script]
    if isinstance(error, SyntaxError) and error.filename == script:
        lines.append(error.lineno or 0)
    place, instruction = frames[-1][0], last_instruction(error)
    return {
        "end": "raised",
        "type": type(error).__name__,
        "kinds": [kind.__name__ for kind in type(error).__mro__],
        "message": str(error),
        "module": getattr(error, "name", None) or "",
        "line": lines[-1] if lines else None,
        "file": place.f_code.co_filename,
        # By a raise statement or an assert of the script's, not by what it called.
        "own": instruction == "RAISE_VARARGS" and not of_mindspore(place),
    }


def last_instruction(error: BaseException) -> str:
    """The instruction at which the error came up."""
    link = error.__traceback__
    while link is not None and link.tb_next is not None:
        link = link.tb_next
    if link is None:
        return ""
    return dis.opname[link.tb_frame.f_code.co_code[link.tb_lasti]]


def of_mindspore(frame: FrameType) -> bool:
    """Whether the code of this frame is MindSpore's."""
    return str(frame.f_globals.get("__name__", "")).split(".")[0] == "mindspore"


if __name__ == "__main__":
    main()
