"""Random cases of every operator that the importer has a row for."""

from . import composite, contraction, elementwise, index, reduction, view  # noqa: F401
from .base import REGISTRY, Case, Entry, Tensor  # noqa: F401
