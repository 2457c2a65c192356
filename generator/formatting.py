"""Black with a mode of ours, so that a script is the same on every machine."""

from __future__ import annotations

LINE_LENGTH = 88
BETWEEN = "\n\n\n"  # definitions, as Black has it


def format_source(text: str) -> str:
    """The text as Black writes it.

    Templates are written as Black writes, and a test holds them to it. Only where a
    value has made a line too long there is something to do, and Black, which takes
    longer than all the rest, is asked about the definitions with such lines.

    Raises:
        black.InvalidInput: if it is no Python, which would be a fault of a template.
    """
    blocks = [
        _format(block) if _has_long_line(block) else block
        for block in text.split(BETWEEN)
    ]
    return BETWEEN.join(blocks)


def _has_long_line(block: str) -> bool:
    # No character is wider than its bytes are many.
    return any(len(line.encode()) > LINE_LENGTH for line in block.splitlines())


def _format(block: str) -> str:
    """A definition, or what is before the first, as Black writes it."""
    import black
    from black.mode import TargetVersion

    # Given in full: a pyproject.toml where msgen is called has no say in it.
    mode = black.Mode(target_versions={TargetVersion.PY39}, line_length=LINE_LENGTH)
    end = "\n" if block.endswith("\n") else ""
    return black.format_str(block, mode=mode).rstrip("\n") + end
