"""How runs end: stopped and resumed, blind, or with others."""

from __future__ import annotations

import re
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np

from generator.verify.case import Case
from generator.verify.checks.common import INFINITY, hold_same_records, settled
from generator.verify.lab import LR, SCALE, Lab
from generator.verify.process import Run
from generator.verify.result import Failed, NotApplicable, NotJudged, Result
from generator.verify.trajectory import same_bits

# Windows of both epochs of a run of two epochs of four windows: inside an epoch by a
# signal, at its end by another, and killed where nothing can be saved.
STOPS = ((2, signal.SIGTERM), (4, signal.SIGINT), (7, signal.SIGKILL))


def resume(lab: Lab) -> Result:
    """A run that was stopped and resumed ends with the bits of one that was not."""
    if "resume" not in lab.loaded["flags"]:
        raise NotApplicable("the script has no option --resume")
    lab.needs_flag("checkpoint_every")
    return settled(lambda number: _resume(lab, 3 * number))


def _resume(lab: Lab, stirred: int) -> Result:
    case = Case(
        network="random",
        sizes=(4,) * (3 * lab.accum + 1),
        epochs=2,
        shuffle=True,
        lr=LR,
        scale=SCALE,
        scale_window=3,
        arguments=("--checkpoint-every", "1"),
        stir=stirred + 1,
    )
    whole = lab.run(case)
    _saved_the_end(whole)
    for window, number in STOPS:
        stopped = lab.attempt(
            replace(case, signals=(window, int(number)), stir=stirred + 2)
        )
        if stopped.status not in _ends(number):
            raise Failed(
                f"{number.name} in window {window}: the run ended with status "
                f"{stopped.status}, not {_ends(number)[0]} {stopped.message}".rstrip()
            )
        again = replace(
            case,
            arguments=(*case.arguments, "--resume"),
            output=str(stopped.output),
            stir=stirred + 3,
        )
        _same_end(whole, lab.run(again), f"resumed after {number.name}")
    _refuses_damage(lab, case, whole)
    return Result("pass", f"{len(STOPS)} stops, every bit", bound="same bits")


def _ends(number: signal.Signals) -> list[int]:
    """The exit statuses with which a run may end at a signal, the best first."""
    if number == signal.SIGKILL:
        return [-int(number)]
    # As a shell reports it. MindSpore answers SIGINT by sending itself SIGTERM.
    return [128 + int(number), 128 + int(signal.SIGTERM)]


def _saved_the_end(run: Run) -> None:
    """Demand that last.ckpt holds the weights that the run ended with."""
    saved = run.part("ckpt.")
    for name, value in run.part("end.net.").items():
        if name not in saved or not same_bits(value, saved[name]):
            raise Failed(f"last.ckpt does not hold {name} as it was at the end")


def _same_end(whole: Run, resumed: Run, when: str) -> None:
    """Demand that both ended with the same bits and recorded the same windows."""
    for prefix in ("end.net.", "end.opt.", "end.scaler."):
        found = resumed.part(prefix)
        for name, value in whole.part(prefix).items():
            if not same_bits(value, found[name]):
                raise Failed(f"{when}: {name} ends with other bits")
    counts = [len(whole.records), len(resumed.records)]
    if counts[0] != counts[1]:
        raise Failed(f"{when}: metrics.jsonl has {counts[1]} lines, not {counts[0]}")
    try:
        hold_same_records(whole, resumed)
    except Failed as failed:
        raise Failed(f"{when}: {failed}") from failed


def _refuses_damage(lab: Lab, case: Case, whole: Run) -> None:
    """Demand that a truncated checkpoint is refused by name and left as it is."""
    folder = whole.output.with_name(f"{whole.output.name}-damaged")
    folder.mkdir(exist_ok=True)
    damaged = folder / "last.ckpt"
    content = (whole.output / "last.ckpt").read_bytes()
    damaged.write_bytes(content[: len(content) // 2])
    before = damaged.read_bytes()
    again = replace(case, arguments=(*case.arguments, "--resume"), output=str(folder))
    run = lab.attempt(again)
    if run.status != 1 or "exception" in run.answer or damaged.name not in run.message:
        raise Failed(
            f"a truncated last.ckpt is not refused by name: status {run.status} "
            f"{run.message}".rstrip()
        )
    if damaged.read_bytes() != before:
        raise Failed("a truncated last.ckpt is overwritten")


# What the data of a window may hold when its numbers are lost.
LOST = (float("nan"), INFINITY, 1e30)


def never_blind(lab: Lab) -> Result:
    """A run whose numbers are lost ends with an error and its last good weights."""
    facts = lab.facts
    if facts.scaler is None:
        return _no_lost_loss(lab)
    return _no_endless_overflow(lab)


def _no_lost_loss(lab: Lab) -> Result:
    """Without loss scaling: the second window's numbers are lost."""
    ended = []
    for value in LOST:
        case = replace(_saving(lab), plants=((lab.accum, value),))
        run = lab.attempt(case)
        _not_blind(run)
        if value != LOST[-1] and run.status == 0:
            raise Failed(f"the run goes on after a loss of {value} in window 2")
        if run.status:
            ended.append(_clear_error(run, ""))
            _kept_good_weights(run, good=len(run.windows) - 1)
    return Result("pass", f"{len(ended)} of {len(LOST)} runs ended at the loss")


def _no_endless_overflow(lab: Lab) -> Result:
    """With loss scaling: from the second window on, all of them overflow."""
    limit = lab.loaded["constants"].get("MAX_SKIPPED")
    base = _saving(lab)
    epochs = 1 + (3 if limit else 60) * lab.accum // len(base.sizes) + 2
    count = len(base.sizes) * epochs
    case = replace(
        base,
        epochs=epochs,
        plants=tuple((index, INFINITY) for index in range(lab.accum, count)),
        constants=(("MAX_SKIPPED", 2),) if limit else (),
    )
    run = lab.attempt(case)
    _not_blind(run)
    if run.status == 0:
        skipped = sum(bool(w["skipped"]) for w in run.windows)
        raise Failed(f"the run goes on through {skipped} dropped windows in a row")
    _clear_error(run, "scale")
    _kept_good_weights(run, good=1)
    return Result("pass", f"ended at {len(run.windows) - 1} overflows in a row")


def _saving(lab: Lab) -> Case:
    """A run that saves after every update, if the script can."""
    save = "checkpoint_every" in lab.loaded["flags"]
    return Case(
        sizes=(4,) * (3 * lab.accum),
        epochs=2,
        lr=LR,
        scale=SCALE,
        arguments=("--checkpoint-every", "1") if save else (),
    )


def _not_blind(run: Run) -> None:
    for place in ("end.net.", "ckpt."):
        for name, value in run.part(place).items():
            if run.status == 0 and not np.isfinite(value).all():
                raise Failed(f"exit status 0, and {name} is not finite")


def _clear_error(run: Run, word: str) -> str:
    """Demand one line that names the window, and a word; returns it."""
    if run.status != 1 or "exception" in run.answer:
        raise Failed(f"no clear error: status {run.status} {run.message}".rstrip())
    number = str(run.windows[-1]["window"]) if run.windows else ""
    lines = run.message.strip().splitlines()
    named = re.search(rf"\b{number}\b", run.message) and word in run.message
    if len(lines) != 1 or not named:
        what = " and ".join(filter(None, [f"window {number}", word]))
        raise Failed(f"the error does not name {what}: {lines[0]}")
    return run.message


def _kept_good_weights(run: Run, good: int) -> None:
    """Demand that last.ckpt is of the last good window, counted from 1."""
    if not run.case.arguments:
        return  # it saves at an epoch's end, and there was none
    saved = run.part("ckpt.")
    if not saved:
        raise Failed("there is no last.ckpt of before")
    for name, value in run.part("window.net.", good - 1).items():
        if not same_bits(saved[name], value):
            raise Failed(f"last.ckpt is not of window {good}, the last good one")


def workers_agree(lab: Lab) -> Result:
    """Several workers make the update of one."""
    text = Path(lab.script).read_text(encoding="utf-8")
    if "get_rank" in text or "init(" in text.replace("__init__(", ""):
        raise NotJudged("runs of several workers are not compared here")
    raise NotApplicable("the script runs in one process")
