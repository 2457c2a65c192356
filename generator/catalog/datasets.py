"""Data sets: each entry has a template that defines ``create_dataset``."""

from __future__ import annotations

from dataclasses import dataclass

from generator.catalog.entry import Entry, by_key


@dataclass(frozen=True)
class ImageShape:
    """One image as the network gets it: channels, height and width in pixels."""

    channels: int
    size: int

    @property
    def features(self) -> int:
        """Number of values in one image."""
        return self.channels * self.size * self.size


@dataclass(frozen=True, kw_only=True)
class Dataset(Entry):
    """A data set of labelled images.

    Attributes:
        shape: the images as stored; None if they are made as the network wants them.
        classes: number of labels.
        needs: distribution to install beside MindSpore, or None.
        files: what has to be in ``--data-dir``, or None if nothing.
    """

    shape: ImageShape | None
    classes: int = 10
    needs: str | None = None
    files: str | None = None


DATASETS = by_key(
    [
        Dataset(
            key="synthetic",
            title="synthetic images",
            summary="ten noisy patterns made on the spot; needs nothing",
            shape=None,
        ),
        Dataset(
            key="digits",
            title="hand-written digits",
            summary="1,797 real 8x8 digits that scikit-learn ships",
            shape=ImageShape(1, 8),
            needs="scikit-learn",
        ),
        Dataset(
            key="mnist",
            title="MNIST",
            summary="70,000 digits of 28x28, read from the four IDX files",
            shape=ImageShape(1, 28),
            files="the four MNIST IDX files, plain or .gz",
        ),
    ]
)
