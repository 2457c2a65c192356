"""The versions of MindSpore that scripts are tested with, and how those differ.

What a script does about a difference stands in the templates, at the place that it is
about:

- 2.9 and newer: on a CPU with AVX-512 the library picks a reference convolution, which
  ``ONEDNN_MAX_CPU_ISA`` avoids (``script.py.jinja``; older versions ignore it).
- 2.7: ``set_seed`` leaves the default generator unseeded, so ``manual_seed`` is called
  too (``support/build.py.jinja``).
"""

from __future__ import annotations

MINDSPORE_VERSIONS = ("2.7.2", "2.8.0", "2.9.0", "2.10.0")
