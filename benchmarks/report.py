"""From results.json to the tables of README.md and the picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.steps import OTHERS

Rows = list[list[str]]


def table(heads: list[str], rows: Rows) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def shown(ratio: dict[str, float] | None) -> str:
    """A ratio with the range of its rounds."""
    if ratio is None:
        return ""
    return f"{ratio['median']:.2f} ({ratio['least']:.2f} to {ratio['most']:.2f})"


def ms(seconds: float) -> str:
    """Seconds as milliseconds, in three figures."""
    value = seconds * 1000
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{digits}f}"


def of_machine(results: dict[str, Any]) -> str:
    """What was measured on."""
    about = results["machine"]
    versions = ", ".join(f"{k} {v}" for k, v in about["versions"].items())
    vectors = "with" if about["avx512"] else "without"
    return (
        f"Measured on {about['cores']} cores of {about['cpu']} {vectors} AVX-512, with "
        f"Python {about['python']}, {versions}. On no NPU."
    )


def of_steps(results: dict[str, Any]) -> str:
    """Every style's window against the others."""
    rows = []
    for record in results["steps"]:
        for style, ratios in record["ratios"].items():
            own = record["seconds"][style]
            rows.append(
                [
                    record["network"],
                    record["amp"],
                    str(record["N"]),
                    style,
                    ms(own["median"]),
                    f"{own['p90_to_median']:.2f}",
                    *(shown(ratios.get(other)) for other in OTHERS),
                ]
            )
    heads = ["network", "level", "N", "style", "ms", "p90 / median"]
    return table([*heads, *(f"/ {other}" for other in OTHERS)], rows)


def of_reader(results: dict[str, Any]) -> str:
    """The functional script against others, in the environment of a reader."""
    rows = []
    for record in results["reader"]:
        ratios = record["ratios"]["functional"]
        rows.append(
            [
                record["amp"],
                record["settings"],
                ms(record["seconds"]["functional"]["median"]),
                *(shown(ratios[name]) for name in OTHERS[:3]),
            ]
        )
    heads = ["level", "the others run with", "ms"]
    return table([*heads, *(f"/ {name}" for name in OTHERS[:3])], rows)


def of_isa(results: dict[str, Any]) -> str:
    """ResNet-18's step with oneDNN's own choice of instructions."""
    seconds = results["isa"]["seconds"]
    ours, default = seconds["functional"]["median"], seconds["one batch"]["median"]
    return table(
        ["instructions", "ms a step", "times as long"],
        [
            ["AVX2, as the script has it", ms(ours), "1"],
            ["oneDNN's own choice", ms(default), f"{default / ours:.0f}"],
        ],
    )


def of_compile(results: dict[str, Any]) -> str:
    """The first call by the window's length."""
    rows = []
    for length, seconds in results["compile"]["seconds"].items():
        ordered = sorted(seconds)
        middle = ordered[len(ordered) // 2]
        rows.append(
            [str(length), f"{middle:.2f}", f"{ordered[0]:.2f} to {ordered[-1]:.2f}"]
        )
    return table(["N", "s to compile", "range"], rows)


def of_memory(results: dict[str, Any]) -> str:
    """Peak memory."""
    peaks = results["memory"]["bytes"]
    most = peaks["one batch of 128"]
    return table(
        ["ResNet-18", "peak, MB", "of one batch of 128"],
        [
            [name, f"{peak / 1e6:,.0f}", f"{peak / most:.2f}"]
            for name, peak in peaks.items()
        ],
    )


def of_scripts(results: dict[str, Any]) -> str:
    """Whole scripts: the loop, its logging and its data."""
    rows = [
        [
            record["network"],
            record["amp"],
            str(record["N"]),
            record["style"],
            ms(record["median"]),
            f"{record['p90_to_median']:.2f}",
            f"{record['logging_share']:.1%}",
            f"{record['items_per_second']:,.0f}",
            f"{record['data_items_per_second']:,.0f}",
        ]
        for record in results["scripts"]
    ]
    heads = ["network", "level", "N", "style", "ms a window", "p90 / median"]
    return table([*heads, "logging", "items/s", "items/s of the data alone"], rows)


def of_command(results: dict[str, Any]) -> str:
    """The command beside others."""
    found = results["command"]
    rows = [[name, ms(seconds)] for name, seconds in found["seconds"].items()]
    ratios = [[name, shown(ratio)] for name, ratio in found["ratios"].items()]
    rates = [[name, f"{r:,.0f}"] for name, r in found["scripts_per_second"].items()]
    return "\n\n".join(
        [
            table(["process", "ms"], rows),
            table(["ratio", "median (range)"], ratios),
            table(["`generate(spec)` in one process", "scripts/s"], rates),
        ]
    )


def of_stages(results: dict[str, Any]) -> str:
    """Where the time of the command goes."""
    stages = results["command"]["stages"]
    return table(["stage", "ms"], [[name, ms(s)] for name, s in stages.items()])


TABLES = {
    "machine": of_machine,
    "steps": of_steps,
    "reader": of_reader,
    "isa": of_isa,
    "compile": of_compile,
    "memory": of_memory,
    "scripts": of_scripts,
    "command": of_command,
    "stages": of_stages,
}
NEEDS = {"stages": "command"}


def write(results: dict[str, Any], folder: Path) -> None:
    """Put the tables between their marks in README.md, and draw the picture."""
    path = folder / "README.md"
    text = path.read_text(encoding="utf-8")
    for name, make in TABLES.items():
        if NEEDS.get(name, name) not in results:
            continue
        start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, _, rest = text.partition(start)
        _, _, after = rest.partition(end)
        text = f"{before}{start}\n{make(results)}\n\n{end}{after}"
    path.write_text(text, encoding="utf-8")
    if {"steps", "reader", "isa"} <= results.keys():
        draw(results, folder / "speed.png")


def draw(results: dict[str, Any], path: Path) -> None:
    """What the others take, in multiples of the functional script's time."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    for axis, (title, bars) in zip(axes, panels(results).items(), strict=True):
        names, values = list(bars), list(bars.values())
        colors = ["#1a7f64", *["#9aa5b1"] * (len(names) - 1)]
        drawn = axis.barh(names, values, color=colors)
        labels = [f"{v:.1f}" if v < 10 else f"{v:.0f}" for v in values]
        axis.bar_label(drawn, labels, padding=3)
        axis.set(title=title, xscale="log", xlim=(0.5, max(values) * 3))
        axis.invert_yaxis()
        axis.set_xlabel("time, in multiples of the script's")
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def panels(results: dict[str, Any]) -> dict[str, dict[str, float]]:
    """The bars of the picture."""

    def others(ratios: dict[str, Any], name: str) -> float:
        return float(1 / ratios[name]["median"])

    reader = {
        (record["amp"], record["settings"]): record["ratios"]["functional"]
        for record in results["reader"]
    }
    window = {"the script": 1.0}
    for settings in ("cap only", "library defaults"):
        for name in ("accumulator", "lists"):
            bar = f"{name}, {settings}"
            window[bar] = others(reader["O0", settings], name)
    step = {"the script": 1.0}
    single = next(
        record["ratios"]["functional"]
        for record in results["steps"]
        if (record["network"], record["amp"], record["N"]) == ("resnet18", "O0", 1)
    )
    if single.get("PyTorch"):
        step["PyTorch"] = others(single, "PyTorch")
    step["oneDNN's own choice"] = others(
        results["isa"]["ratios"]["functional"], "one batch"
    )
    return {
        "LeNet-5, O0: a window of 4 micro-batches of 32": window,
        "ResNet-18, O0: a step of 16": step,
    }
