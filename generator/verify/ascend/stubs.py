"""Stand-ins for CANN's libraries, made from what the installed MindSpore asks for.

MindSpore's wheel carries its Ascend plugin, which does not load without CANN. The
plugin's own symbol tables name all that it needs; nearly all of it becomes a function
that returns 0. The few classes of CANN that MindSpore keeps values in (``ge::Shape``,
``ge::Tensor``, …) are written by hand in ``stub_manual.cc``. None of it computes
anything.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from generator.verify.ascend.interpreter import located

HERE = Path(__file__).resolve().parent
MANUAL = HERE / "stub_manual.cc"
WAIT = HERE / "stub_wait.cc"
PRELOADED = "libmsgen_wait.so"
TOOLS = ("g++", "nm", "readelf", "strings")

# What MindSpore loads of its plugin for Ascend, beside the library itself. Releases
# differ: what one lacks is left out.
PLUGIN = (
    "plugin/libmindspore_ops_ascend.so",
    "plugin/ascend/libmindspore_ascend_res_manager.so",
    "plugin/ascend/libmindspore_graph_ir.so",
    "plugin/ascend/libmindspore_internal_kernels.so",
    "plugin/ascend/libd_collective.so",
    "plugin/ascend/ms_kernels_internal/internal_kernel/lib/libms_kernels_internal.so",
    "plugin/ascend/ms_kernels_symmetric_memory/shmem/shmem/lib/libshmem.so",
    "plugin/ascend/ms_kernels_symmetric_memory/shmem/memfabric_hybrid/lib/libmf_smem.so",
    "plugin/ascend/ms_kernels_symmetric_memory/shmem/memfabric_hybrid/lib/libmf_hybm_core.so",
    "libmindspore_ge_backend.so",
)
# Libraries that it opens by name when it runs, so that no table lists them.
OPENED_AT_RUN_TIME = (
    "acl_op_compiler",
    "acl_tdt_channel",
    "acl_tdt_queue",
    "ascend_hal",
    "c_sec",
    "cust_opapi",
    "nnopbase",
    "opapi",
    "profapi",
    "runtime",
)
SYSTEM = ("libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libgomp.so.1")

# Symbols that the compiler and Python bring, not CANN.
FOREIGN = re.compile(r"_?Py|_ITM|__g|__tls|_ZTH")
# Methods for chaining return the object that they were called on.
RETURNS_SELF = re.compile(
    r"_ZN2ge8Operator(7SetAttr|8SetInput|15AddControlInput)"
    r"|_ZN2ge5Graph(9SetInputs|10SetOutputs)"
)
GETS_ATTRIBUTE = "_ZNK2ge8Operator7GetAttr"
# Functions that the plugin looks up by name.
LOOKED_UP = re.compile(
    r"^(?:acl|aclrt|aclop|aclprof|acltdt|aclmdl|aclnnInit|aclnnFinalize)(?:[A-Z]\w*)?$",
    re.MULTILINE,
)


class StubError(Exception):
    """No stand-ins can be had; the text says why and what would help."""


# Where the plugin expects libraries in CANN's folder; it reads its path off this.
LIBRARIES = Path("latest", "lib64")


@dataclass(frozen=True)
class MindSpore:
    """An installed MindSpore: whose it is, its package folder and its version."""

    python: str
    package: Path
    version: str

    @property
    def plugin(self) -> Path:
        """The library that MindSpore loads for Ascend."""
        return self.package / "lib" / "plugin" / "libmindspore_ascend.so.2"


def find_mindspore(python: str) -> MindSpore:
    """The MindSpore of a Python, found without importing it.

    Raises:
        StubError: if that Python cannot be started or has none.
    """
    python = located(python)
    code = "import importlib.util as u; print(u.find_spec('mindspore').origin)"
    try:
        done = subprocess.run(
            [python, "-c", code],
            cwd=tempfile.gettempdir(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StubError(f"{python} cannot be run: {error}") from error
    if done.returncode:
        raise StubError(f"{python} has no MindSpore")
    package = Path(done.stdout.strip()).parent
    text = (package / "version.py").read_text(encoding="utf-8")
    found = re.search(r"__version__ = ['\"](.+?)['\"]", text)
    return MindSpore(python, package, found.group(1) if found else "unknown")


def cache_folder() -> Path:
    """Where stand-ins are kept from one run to the next, by the XDG rules."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(base) if os.path.isabs(base) else Path.home() / ".cache"
    return root / "msgen" / "ascend-stubs"


def digest(paths: Iterable[Path], *more: object) -> str:
    """A short hash of the files' contents."""
    total = hashlib.sha256(json.dumps([str(item) for item in more]).encode())
    for path in sorted(paths):
        total.update(path.read_bytes())
    return total.hexdigest()[:12]


def stub_libraries(mindspore: MindSpore) -> Path:
    """The folder with the stand-ins for this MindSpore; built if it is not there.

    Any number of processes may ask at once: each builds in a folder of its own, and the
    first to finish gives its folder the name that all look for.

    Raises:
        StubError: if the plugin, the compiler or a place to write is missing.
    """
    if not mindspore.plugin.is_file():
        raise StubError(
            f"MindSpore {mindspore.version} comes without its Ascend plugin on "
            f"{platform.system()} {platform.machine()}"
        )
    # Two builds of one version differ in their plugin's size.
    key = digest(
        [Path(__file__), MANUAL, WAIT],
        mindspore.plugin.stat().st_size,
        platform.machine(),
    )
    folder = cache_folder() / f"{mindspore.version}-{key}"
    if folder.is_dir():
        return folder / LIBRARIES
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        raise StubError(
            f"{', '.join(missing)} not found; the stand-ins for CANN need g++ and "
            "binutils (Debian and Ubuntu: apt-get install g++ binutils)"
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=".building-", dir=folder.parent))
    except OSError as error:
        raise StubError(f"no place to build stand-ins for CANN: {error}") from error
    try:
        (building / LIBRARIES).mkdir(parents=True)
        _build(mindspore, building, building / LIBRARIES)
        building.chmod(0o755)
        building.rename(folder)
    except subprocess.CalledProcessError as error:
        said = (error.stderr or "").strip().splitlines() or [str(error)]
        raise StubError(
            f"no stand-ins for CANN could be built for MindSpore {mindspore.version}: "
            f"{said[-1][:200]}"
        ) from error
    except OSError as error:
        if not folder.is_dir():  # else another process was first
            raise StubError(f"stand-ins for CANN: {error}") from error
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return folder / LIBRARIES


def _build(mindspore: MindSpore, folder: Path, libraries: Path) -> None:
    """Build into ``libraries``; what is only needed on the way goes to ``folder``."""
    lib = mindspore.package / "lib"
    plugin = [mindspore.plugin, *(lib / name for name in PLUGIN)]
    plugin = [path for path in plugin if path.is_file()]
    around = [*lib.glob("*.so*"), *mindspore.package.glob("_c_expression*.so")]
    system = [Path(_run("g++", f"-print-file-name={name}").strip()) for name in SYSTEM]
    defined = _symbols("--defined-only", [*around, *plugin, *system])
    wanted = {
        name
        for name in _symbols("--undefined-only", plugin) - defined
        if not FOREIGN.match(name)
    }
    manager = lib / "plugin" / "ascend" / "libmindspore_ascend_res_manager.so"
    wanted |= set(LOOKED_UP.findall(_run("strings", "-a", manager)))
    wanted |= {"aclnnInit", "aclnnFinalize"}

    compiler = ["g++", "-fPIC", "-O1", "-D_GLIBCXX_USE_CXX11_ABI=0"]
    manual = folder / "manual.o"
    _run(*compiler, "-c", MANUAL, "-o", manual)
    by_hand = _run("nm", "--defined-only", manual).split()
    functions = enumerate(sorted(wanted - set(by_hand)))
    source = folder / "generated.cc"
    text = "".join(_function(index, symbol) for index, symbol in functions)
    source.write_text(text, encoding="utf-8")
    _shared(libraries, PRELOADED.removeprefix("lib").removesuffix(".so"), [WAIT])
    # One library has it all; every other is empty and leads to it.
    _shared(libraries, "ascendcl", [source, manual])
    empty = folder / "empty.cc"
    empty.touch()
    ours = {path.name.split(".so")[0] for path in mindspore.package.rglob("*.so*")}
    for name in _needed(plugin) | set(OPENED_AT_RUN_TIME):
        if name != "ascendcl" and f"lib{name}" not in ours:
            _shared(libraries, name, [empty, "-Wl,--no-as-needed", "-lascendcl"])


def _function(index: int, symbol: str) -> str:
    """One stand-in, in C++, that links under the name ``symbol``."""
    if RETURNS_SELF.match(symbol):
        head, body = f"void *f{index}(void *self)", "return self;"
    elif symbol.startswith(GETS_ATTRIBUTE):
        head, body = f"unsigned f{index}(void *)", "return ~0u;"  # it has no such one
    else:
        head, body = f"long f{index}()", "return 0;"
    return f'{head} __asm__("{symbol}");\n{head} {{ {body} }}\n'


def _shared(folder: Path, name: str, parts: list[str | Path]) -> None:
    """Link ``lib<name>.so``."""
    path = folder / f"lib{name}.so"
    flags = ["g++", "-fPIC", "-O1", "-shared", f"-Wl,-soname,{path.name}"]
    _run(*flags, f"-L{folder}", "-o", path, *parts)


def _symbols(which: str, libraries: list[Path]) -> set[str]:
    """Names in the libraries' dynamic symbol tables, without their versions."""
    lines = _run("nm", "-D", "--format=posix", which, *libraries).splitlines()
    return {line.split()[0].split("@")[0] for line in lines if len(line.split()) > 1}


def _needed(libraries: list[Path]) -> set[str]:
    """Names of the libraries that these are linked with, without lib and .so."""
    text = _run("readelf", "--dynamic", "--wide", *libraries)
    return set(re.findall(r"\(NEEDED\).*\[lib(.+?)\.so\]", text))


def _run(*command: str | Path) -> str:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "LC_ALL": "C"},  # readelf translates its words
    )
    return done.stdout
