"""Every fact that a script is made from, derived once; templates decide nothing."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath

from generator import __version__, rules, source
from generator.catalog import DATASETS, MODELS, OPTIMIZERS, STYLES, ImageShape
from generator.catalog.amp import (
    DYNAMIC_SCALE_FACTOR,
    DYNAMIC_SCALE_VALUE,
    DYNAMIC_SCALE_WINDOW,
    FIXED_SCALE_VALUE,
)
from generator.catalog.options import format_value
from generator.catalog.versions import MINDSPORE_VERSIONS
from generator.command import command_parts, wrap
from generator.imports import Import, sections
from generator.spec import SourceRef, TrainingSpec

LINE_LENGTH = 88  # Black's and ruff's own

# Pixels of an image whose size neither the data set nor the network settles.
DEFAULT_SHAPE = ImageShape(1, 32)


@dataclass(frozen=True, kw_only=True)
class ScriptPlan:
    """What the templates print and which of their parts they show.

    Texts that are Python source (``lr_now``, ``optimizer_call``, …) stand in a script
    as they are; flags are named for what the script then does.
    """

    # the docstring and the imports
    version: str
    tested: str
    script_name: str
    model_title: str
    dataset_title: str
    description: str
    command: str
    raw: str
    standard_imports: str
    other_imports: str
    # the fragments between the constants and the end, in reading order
    fragments: list[str]
    # what the script does
    accumulates: bool
    scales: bool
    fixed: bool
    dynamic: bool
    clips: bool
    schedules: bool
    warms_up: bool
    recycles: bool
    spins: bool
    keeps_statistics: bool
    batch_norm: bool
    jit: bool
    needs_ascend: bool
    plain_model: bool
    # the values chosen
    accum: int
    warmup: int
    epochs: int
    batch_size: int
    seed: int
    device: str
    amp: str
    amp_dtype: str
    lr: str
    clip_norm: str
    loss_scale_value: str
    data_dir_help: str
    # the images
    channels: int
    size: int
    features: int
    classes: int
    enlarge: int
    border: int
    # source text that several fragments share
    context_mode: str
    amp_comment: list[str]
    logits: str
    cell_logits: str
    has_aux: str
    loss_and_grads: str
    final_grads: str
    step_parts: str
    step_outputs: str
    train_step_lines: list[str]
    optimizer_call: str
    loss_scaler_call: str
    micro_batches_now: str
    items_now: str
    lr_now: str
    rates_argument: str
    scaler_argument: str
    scaling_arguments: str
    scaling_record: str
    scaling_place: str
    updates_made: str
    accum_setting: str
    setting_names: str
    remedy: str


def plan(spec: TrainingSpec) -> ScriptPlan:
    """Derive the plan of a script from a request that has no problems.

    A user's own files are read, by their syntax tree; nothing is run.
    """
    accumulates = spec.accum > 1
    scaling = spec.scaling
    scales = scaling != "none"
    clips = spec.clip_norm is not None
    schedules = spec.lr_schedule != "constant" or spec.warmup > 0
    in_callback = spec.style == "model"
    # MindSpore's own train cell neither accumulates nor clips, tests for overflow only
    # on some devices, and takes the network's logits as they come.
    plain_model = in_callback and not (
        accumulates or scales or clips or spec.amp == "auto"
    )
    # At auto the logits come in the type of the last operator, at other levels in fp32.
    cast = ".astype(ms.float32)" if spec.amp == "auto" else ""
    outputs = ["loss", *(["finite"] * scales), *(["scale"] * (scaling == "dynamic"))]
    step_parts = ["network", "loss_fn", "optimizer", *(["loss_scaler"] * scales)]
    step_values = [*step_parts, *(["args.batch_size"] * accumulates)]
    step_parts += ["batch_size"] * accumulates
    owner = "self." if in_callback else ""
    rate = f"{owner}rates[{owner}recorder.updates]" if schedules else f"{owner}args.lr"
    index = f"({owner}index - 1) % ACCUM + 1"
    shape, native, classes = _images(spec)
    batch_norm = rules.has_batch_norm(spec)
    keeps_statistics = scales and batch_norm
    standard, others = sections(
        _imports(spec, scales=scales, keeps_statistics=keeps_statistics)
    )
    command_lines = wrap(command_parts(_beside_script(spec)), LINE_LENGTH - 4)
    value = spec.loss_scale_value
    if value is None:
        value = DYNAMIC_SCALE_VALUE if scaling == "dynamic" else FIXED_SCALE_VALUE
    return ScriptPlan(
        version=__version__,
        tested=f"{MINDSPORE_VERSIONS[0]} to {MINDSPORE_VERSIONS[-1]}",
        script_name=shlex.quote(PurePath(spec.script).name),
        model_title=_model_title(spec),
        dataset_title=_dataset_title(spec),
        description=textwrap.fill(_description(spec), LINE_LENGTH),
        command="\n    ".join(command_lines),
        raw="r" if len(command_lines) > 1 else "",
        standard_imports=standard,
        other_imports=others,
        fragments=list(_fragments(spec, plain_model=plain_model, schedules=schedules)),
        accumulates=accumulates,
        scales=scales,
        fixed=scaling == "fixed",
        dynamic=scaling == "dynamic",
        clips=clips,
        schedules=schedules,
        warms_up=spec.warmup > 0,
        # Outside a graph, unscale() is compiled once for every loss scale, and knows it
        # by its address in memory, where that of a later run can lie.
        recycles=scales and spec.mode == "pynative",
        # Cells are called by the script's own thread.
        spins=spec.style == "functional" and spec.mode == "graph",
        keeps_statistics=keeps_statistics,
        batch_norm=batch_norm,
        jit=spec.mode == "graph",
        needs_ascend=spec.amp != "O0" and spec.amp_dtype == "bfloat16",
        plain_model=plain_model,
        accum=spec.accum,
        warmup=spec.warmup,
        epochs=spec.epochs,
        batch_size=spec.batch_size,
        seed=spec.seed,
        device=spec.device,
        amp=spec.amp,
        amp_dtype=spec.amp_dtype,
        lr=repr(_rate(spec)),
        clip_norm=repr(float(spec.clip_norm or 0)),
        loss_scale_value=repr(float(value)),
        data_dir_help=_data_dir_help(spec),
        channels=shape.channels,
        size=shape.size,
        features=shape.features,
        classes=classes,
        enlarge=shape.size // native.size,
        border=(shape.size - native.size) // 2,
        context_mode="ms.GRAPH_MODE" if spec.mode == "graph" else "ms.PYNATIVE_MODE",
        amp_comment=_amp_comment(spec),
        logits=f"network(data){cast}",
        cell_logits=f"self.network(data){cast}",
        has_aux=", has_aux=True" if scales else "",
        loss_and_grads="(_, loss), grads" if scales else "loss, grads",
        final_grads="ops.clip_by_global_norm(grads, CLIP_NORM)" if clips else "grads",
        step_parts=", ".join(step_parts),
        step_outputs=", ".join(outputs),
        train_step_lines=_train_step(spec.style, plain_model, ", ".join(step_values)),
        optimizer_call=_optimizer(spec, "rates" if schedules else "args.lr"),
        loss_scaler_call=_loss_scaler(spec, value),
        micro_batches_now=index if accumulates else "1",
        items_now=f"{owner}items" if accumulates else "data.shape[0]",
        lr_now=rate,
        rates_argument=", rates" if schedules else "",
        scaling_arguments="loss_scale, skipped, " if scales else "",
        scaling_record=(
            '"loss_scale": loss_scale, "skipped": skipped'
            if scales
            else '"loss_scale": 1.0, "skipped": False'
        ),
        scaling_place="skipped_in_row " if scales else "",
        updates_made="not skipped" if scales else "1",
        scaler_argument=", loss_scaler" if scaling == "dynamic" else "",
        accum_setting=', "accum": ACCUM' if accumulates else "",
        setting_names=_names("seed", "batch_size", "lr", *(["epochs"] * schedules)),
        remedy=_remedy(spec),
    )


def _fragments(
    spec: TrainingSpec, *, plain_model: bool, schedules: bool
) -> Iterator[str]:
    """The fragments of the script, in the order in which it is read."""
    yield "support/arguments.py.jinja"
    if not isinstance(spec.dataset, SourceRef):
        yield "datasets/batches.py.jinja"
        yield f"datasets/{spec.dataset}.py.jinja"
    if not isinstance(spec.model, SourceRef):
        yield f"models/{spec.model}.py.jinja"
    if schedules:
        yield f"schedules/{spec.lr_schedule}.py.jinja"
    optimizer = OPTIMIZERS[spec.optimizer]
    if optimizer.template:
        yield optimizer.template
    if not plain_model:
        # Model style trains the very cell of Cell style.
        step_style = "functional" if spec.style == "functional" else "cell"
        step = "window" if spec.accum > 1 else "single"
        yield f"styles/{step_style}/{step}.py.jinja"
    yield "support/evaluate.py.jinja"
    yield "support/recorder.py.jinja"
    yield "support/checkpoints.py.jinja"
    if spec.style == "model":
        if spec.accum > 1:
            yield "styles/model/mark_windows.py.jinja"
        yield "styles/model/callback.py.jinja"
        yield "styles/model/main.py.jinja"
    else:
        yield "styles/loop.py.jinja"


def _imports(
    spec: TrainingSpec, *, scales: bool, keeps_statistics: bool
) -> Iterator[Import]:
    for module in (
        "argparse",
        "json",
        "math",
        "os",
        "shlex",
        "shutil",
        "signal",
        "sys",
        "time",
    ):
        yield Import(module)
    yield Import("pathlib", "Path")
    yield Import("mindspore", alias="ms")
    yield Import("mindspore", "nn")
    yield Import("mindspore.dataset", alias="ds")
    yield Import("numpy", alias="np")
    if spec.dataset == "mnist":
        yield Import("gzip")
        yield Import("zlib")
    if spec.amp != "O0" or scales:
        yield Import("mindspore", "amp")
    clips = spec.clip_norm is not None
    if spec.accum > 1 or clips or keeps_statistics or spec.optimizer == "adamw":
        yield Import("mindspore", "ops")
    if spec.style == "model":
        yield Import("mindspore.train", "Callback")
        yield Import("mindspore.train", "Model")
    for ref, name in ((spec.model, "Network"), (spec.dataset, "create_dataset")):
        if isinstance(ref, SourceRef):
            near = source.beside(ref, spec.script)
            # A file that no import can reach is looked for beside the script.
            module = source.module_name(near) or PurePath(near.path).stem
            yield Import(module, ref.name, name, own=True)


def _images(spec: TrainingSpec) -> tuple[ImageShape, ImageShape, int]:
    """The images that the network gets, as the data set has them, and the classes."""
    model = None if isinstance(spec.model, SourceRef) else MODELS[spec.model]
    dataset = None if isinstance(spec.dataset, SourceRef) else DATASETS[spec.dataset]
    native = model.synthetic_shape if model else DEFAULT_SHAPE
    if dataset and dataset.shape:
        native = dataset.shape
    size = model.input_size if model and model.input_size else native.size
    classes = dataset.classes if dataset else 10
    return ImageShape(native.channels, size), native, classes


def _beside_script(spec: TrainingSpec) -> TrainingSpec:
    """The request as it would be made in the script's own folder."""
    changes: dict[str, object] = {"script": PurePath(spec.script).name}
    for field in ("model", "dataset"):
        ref = getattr(spec, field)
        if isinstance(ref, SourceRef):
            changes[field] = source.beside(ref, spec.script)
    return replace(spec, **changes)  # type: ignore[arg-type]


def _model_title(spec: TrainingSpec) -> str:
    if isinstance(spec.model, SourceRef):
        return spec.model.name
    return MODELS[spec.model].title


def _dataset_title(spec: TrainingSpec) -> str:
    if isinstance(spec.dataset, SourceRef):
        return f"the data of {spec.dataset.name}"
    return DATASETS[spec.dataset].title


def _description(spec: TrainingSpec) -> str:
    """What the script does, in a few sentences for its docstring."""
    mode = "compiled step" if spec.mode == "graph" else "PyNative mode"
    said = [f"{STYLES[spec.style].title}, {mode}.".capitalize().replace("cell", "Cell")]
    if spec.amp == "O0":
        precision = "Everything is computed in float32"
    else:
        precision = f"Mixed precision {spec.amp} in {spec.amp_dtype}"
    if spec.scaling == "none":
        said.append(f"{precision}.")
    else:
        said.append(f"{precision}, {spec.scaling} loss scaling.")
    if spec.accum > 1:
        said.append(
            f"An update for every window of {spec.accum} micro-batches, as if they "
            "were one batch."
        )
    return " ".join(said)


def summary(spec: TrainingSpec) -> list[str]:
    """What was chosen, in a few lines for a terminal."""
    precision = "O0 (float32)" if spec.amp == "O0" else f"{spec.amp} {spec.amp_dtype}"
    scale = f"{spec.scaling} loss scale" if spec.scaling != "none" else "no loss scale"
    micro = f"micro-batches of {spec.batch_size}"
    window = (
        f"{spec.accum} {micro} per update"
        if spec.accum > 1
        else f"{micro}, no accumulation"
    )
    clip = f", clipped to norm {format_value(spec.clip_norm)}" if spec.clip_norm else ""
    warm_up = f" after {spec.warmup} updates of warm-up" if spec.warmup else ""
    rate = f"lr {format_value(_rate(spec))} {spec.lr_schedule}{warm_up}"
    return [
        f"{spec.style} style, {spec.mode} mode, {precision}, {scale}",
        f"{window}{clip}; {spec.optimizer}, {rate}",
        f"{spec.model} on {spec.dataset}, {spec.epochs} epochs, seed {spec.seed}",
    ]


def _rate(spec: TrainingSpec) -> float:
    return float(OPTIMIZERS[spec.optimizer].lr if spec.lr is None else spec.lr)


def _names(*names: str) -> str:
    """Names as the tuple that Black would write."""
    return "(" + ", ".join(f'"{name}"' for name in names) + ")"


def _data_dir_help(spec: TrainingSpec) -> str:
    files = None
    if not isinstance(spec.dataset, SourceRef):
        files = DATASETS[spec.dataset].files
    return f"{files}; default: data" if files else "not used by this data"


def _amp_comment(spec: TrainingSpec) -> list[str]:
    low = spec.amp_dtype
    text = {
        "O0": "",
        "O1": f"Matmuls and convolutions run in {low}, the rest in float32.",
        "O2": f"All but normalization runs in {low}.",
        "O3": f"All of the network runs in {low}, normalization too.",
        "auto": f"Each operator runs in {low} or float32, by MindSpore's lists.",
    }[spec.amp]
    if spec.amp == "auto":
        text += " Weights stay in float32; the logits are cast to it for the loss."
    else:
        text += " Weights, logits and loss stay in float32."
    return textwrap.wrap(text, LINE_LENGTH - len("    # "))


def _remedy(spec: TrainingSpec) -> str:
    """What to try when a loss, a weight or too many windows are not finite."""
    if spec.amp != "O0" and spec.amp_dtype == "float16" and spec.scaling == "none":
        return "Try loss scaling or a smaller --lr, and look for NaN in the data."
    return "Try a smaller --lr, and look for NaN in the data."


def _train_step(style: str, plain_model: bool, parts: str) -> list[str]:
    if plain_model:
        return ["model = Model(network, loss_fn, optimizer)"]
    make = "make_train_step" if style == "functional" else "TrainStep"
    line = f"train_step = {make}({parts})"
    lines = [line]
    if len(line) > LINE_LENGTH - 4:
        lines = [f"train_step = {make}(", f"    {parts}", ")"]
    return [*lines, *(["model = Model(train_step)"] * (style == "model"))]


def _optimizer(spec: TrainingSpec, rate: str) -> str:
    entry = OPTIMIZERS[spec.optimizer]
    decay = entry.weight_decay if spec.weight_decay is None else spec.weight_decay
    arguments = ["network.trainable_params()", rate]
    if entry.arguments:
        arguments.append(entry.arguments)
    if decay or entry.template:
        arguments.append(f"weight_decay={float(decay)!r}")
    return f"{entry.constructor}({', '.join(arguments)})"


def _loss_scaler(spec: TrainingSpec, value: float) -> str:
    if spec.scaling == "none":
        return ""
    if spec.scaling == "fixed":
        return "amp.StaticLossScaler(LOSS_SCALE)"
    factor = spec.loss_scale_factor or DYNAMIC_SCALE_FACTOR
    window = spec.loss_scale_window or DYNAMIC_SCALE_WINDOW
    return (
        f"amp.DynamicLossScaler({format_value(value)}, "
        f"scale_factor={factor}, scale_window={window})"
    )
