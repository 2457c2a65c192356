"""msgen: writes standalone MindSpore training scripts and keeps their numerics right.

Data flows one way: command line → :class:`TrainingSpec` → rules → plan → text → file.
"""

from generator.spec import SourceRef, TrainingSpec

__version__ = "0.1.0"

__all__ = ["SourceRef", "TrainingSpec", "__version__", "generate"]


def generate(spec: TrainingSpec) -> str:
    """Return the training script that ``spec`` describes.

    Raises:
        generator.errors.Refused: if the options cannot go together; it carries every
            reason and the nearest options that work.
    """
    # Jinja2 and Black are imported here, where they are used, so that reading the
    # catalogue or a version number stays instant.
    from generator.generate import generate as generate_script

    return generate_script(spec)
