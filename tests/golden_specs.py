"""The golden scripts and the README's table; ``make golden`` writes them anew."""

from __future__ import annotations

from pathlib import Path

from generator import TrainingSpec, generate
from generator.catalog.options import OPTIONS

ROOT = Path(__file__).resolve().parent.parent

# What a newcomer wants to read first; these stand in examples/.
EXAMPLES = {
    "functional_o2_accum4.py": TrainingSpec(amp="O2", accum=4, dataset="digits"),
    "cell_o2_accum4.py": TrainingSpec(
        style="cell", amp="O2", accum=4, dataset="digits"
    ),
    "model_o2_accum4.py": TrainingSpec(
        style="model", amp="O2", accum=4, dataset="digits"
    ),
    "plain_o0.py": TrainingSpec(dataset="digits"),
}

# What the examples do not show, at least once each.
GOLDENS = {
    "functional_single_dynamic.py": TrainingSpec(amp="O1"),
    "functional_window_plain_step.py": TrainingSpec(
        accum=2, optimizer="sgd", lr_schedule="step", clip_norm=1.0, mode="pynative"
    ),
    "functional_resnet18_fixed.py": TrainingSpec(
        amp="O2", loss_scale="fixed", model="resnet18", accum=8, batch_size=16
    ),
    "functional_bfloat16_warmup.py": TrainingSpec(
        amp="auto",
        amp_dtype="bfloat16",
        device="Ascend",
        lr_schedule="constant",
        warmup=100,
        weight_decay=0.0001,
        optimizer="momentum",
    ),
    "cell_single_fixed_clip.py": TrainingSpec(
        style="cell", amp="O3", loss_scale="fixed", loss_scale_value=512, clip_norm=0.5
    ),
    "cell_resnet18_adamw_cosine.py": TrainingSpec(
        style="cell",
        amp="O2",
        model="resnet18",
        optimizer="adamw",
        lr_schedule="cosine",
        warmup=20,
    ),
    "cell_mnist_pynative.py": TrainingSpec(
        style="cell", amp="O2", dataset="mnist", mode="pynative", accum=2
    ),
    "model_plain_mnist.py": TrainingSpec(
        style="model", dataset="mnist", amp="O2", loss_scale="none"
    ),
    "model_mlp_auto_step.py": TrainingSpec(
        style="model", model="mlp", amp="auto", lr_schedule="step", warmup=5
    ),
}


def paths() -> dict[Path, TrainingSpec]:
    """Every golden file with what it is made from; a file's name is its script's."""
    folders = {ROOT / "examples": EXAMPLES, ROOT / "tests" / "golden": GOLDENS}
    return {
        folder / name: _named(spec, name)
        for folder, specs in folders.items()
        for name, spec in specs.items()
    }


def _named(spec: TrainingSpec, name: str) -> TrainingSpec:
    from dataclasses import replace

    return replace(spec, script=name)


def main() -> None:
    for path, spec in paths().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(generate(spec), encoding="utf-8")
        print(path.relative_to(ROOT))
    readme = ROOT / "README.md"
    before, _, rest = readme.read_text(encoding="utf-8").partition(BEGIN)
    text = before + BEGIN + options_table() + END + rest.partition(END)[2]
    readme.write_text(text, encoding="utf-8")


BEGIN, END = "<!-- options -->\n", "<!-- /options -->"


def options_table() -> str:
    """The README's table of options, from the catalogue."""
    rows = ["| option | values | default | what it is for |", "|---|---|---|---|"]
    for option in OPTIONS:
        values = ", ".join(f"`{value}`" for value in option.values_text.split("|"))
        default, text = option.default_text, option.help
        rows.append(f"| `{option.flag}` | {values} | {default} | {text} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    main()
