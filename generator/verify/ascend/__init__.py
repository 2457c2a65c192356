"""Judging a script for Ascend on a machine without an NPU.

Two layers. :func:`check_calls` looks up every MindSpore call of the script's syntax
tree in the installed package: is it there, for this device, with these keywords, not
deprecated. :func:`dry_run` runs the script with MindSpore's own Ascend plugin, whose
hardware libraries (CANN) are replaced by stand-ins that compute nothing.

What a PASS of the dry run proves: MindSpore's Ascend front end and its graph passes
took every graph that the script compiled, each operator got an Ascend kernel entry and
none fell back to the CPU, and the operators that are dispatched through MindSpore's GE
and aclop tables got types that those tables take.

What it does not prove: that a given CANN release or chip has those kernels; the types
of operators that are dispatched to aclnn; limits on shapes and attributes; that the
script fits into memory, runs, converges or is fast. Every value that the script reads
from the device is made up. The words for a PASS are "Ascend dry-run checked (CANN
replaced by stubs)", never "tested on Ascend".
"""

from generator.verify.ascend.dryrun import check_controls, dry_run
from generator.verify.ascend.findings import Finding
from generator.verify.ascend.outcome import Outcome, Verdict
from generator.verify.ascend.static import check_calls

__all__ = [
    "Finding",
    "Outcome",
    "Verdict",
    "check_calls",
    "check_controls",
    "dry_run",
]
