"""What msgen knows: one entry per style, AMP level, model, data set and optimizer.

Flags, help, ``msgen list``, the README's table and the tests are derived from here.
To add a model or a data set, add one entry and one template.
"""

from generator.catalog.amp import AMP_DTYPES, AMP_LEVELS, LOSS_SCALES
from generator.catalog.datasets import DATASETS, Dataset, ImageShape
from generator.catalog.entry import Entry
from generator.catalog.models import MODELS, Model
from generator.catalog.optimizers import LR_SCHEDULES, OPTIMIZERS, Optimizer
from generator.catalog.runs import DEVICES, MODES
from generator.catalog.styles import STYLES

__all__ = [
    "AMP_DTYPES",
    "AMP_LEVELS",
    "DATASETS",
    "DEVICES",
    "LOSS_SCALES",
    "LR_SCHEDULES",
    "MODELS",
    "MODES",
    "OPTIMIZERS",
    "STYLES",
    "Dataset",
    "Entry",
    "ImageShape",
    "Model",
    "Optimizer",
]
