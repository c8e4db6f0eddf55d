"""What is proved about a result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

#: How far rounding to float32 moves a unit vector, at most: half an ulp of each entry.
FLOAT32_ANGLE = 6e-8


def _of_rounded_copies(numbers: dict[str, Any]) -> dict[str, Any]:
    """The angles of components that are rounded to float32."""

    def wider(angle, n_vectors=1):
        sum_ = None if angle is None else angle + FLOAT32_ANGLE * np.sqrt(n_vectors)
        return None if sum_ is None or sum_ >= 1 else float(sum_)

    k = len(numbers["angle_bounds"])
    return numbers | {
        "sentence": numbers["sentence"] + f"; rounding to float32 adds {FLOAT32_ANGLE:g} to angles",
        "angle_bounds": [wider(angle) for angle in numbers["angle_bounds"]],
        "clusters": [(first, last, wider(angle, last - first + 1)) for first, last, angle in numbers["clusters"]],
        "subspace_angle_bound": wider(numbers["subspace_angle_bound"], k),
    }


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(Mapping):
    """Proof of eigenvalues and, where the gaps allow, of eigenvectors of C = (1/n)Σaaᵀ.

    `str()` gives one sentence; fields are attributes and keys alike.
    """

    sentence: str
    #: θᵢ, descending.
    eigenvalues: np.ndarray
    #: ρᵢ: the residual of wᵢ, with rounding and what earlier components left along it.
    residuals: np.ndarray
    #: ρᵢ/θᵢ, what is compared with `tol`; NaN where θᵢ cannot be told from 0.
    relative_residuals: np.ndarray
    #: "converged", "stagnated" (rounding allows no smaller residual), "no-variance" (to rounding) or "open" for each component.
    status: tuple[str, ...]
    #: [θᵢ − ρᵢ, θᵢ + ρᵢ] contains an eigenvalue of C.
    eigenvalue_intervals: np.ndarray
    #: Bounds on sin∠(wᵢ, uᵢ); NaN where neighbours are too close to tell single vectors apart.
    angle_bounds: np.ndarray
    #: Components that are determined only together: the first and the last, counted from 0, and a bound on the sine of the
    #: largest angle of the space they span, or `None`.
    clusters: tuple[tuple[int, int, float | None], ...]
    #: Bound on the sine of the largest angle of the whole subspace, or `None`.
    subspace_angle_bound: float | None
    #: Whether the angle bounds are theorems.
    gap_is_proved: bool
    #: "proved", "probability" (they fail with `failure_probability`) or "estimated" (they rest on an estimate of the next
    #: eigenvalue).
    certainty: str
    failure_probability: float | None
    #: What the probe read, and the seed it drew from the operating system.
    probe_passes: int
    probe_seed: int | None
    #: ‖WᵀW − I‖_F.
    orthonormality_loss: float
    #: The part of every residual that bounds the rounding of its image.
    image_rounding: float

    @classmethod
    def from_numbers(cls, numbers: dict[str, Any], dtype: Any = np.float64) -> Certificate:
        """From the compiled half's dict, for components that are handed out in the given type."""
        numbers = dict(numbers)
        if np.dtype(dtype) == np.float32:
            numbers = _of_rounded_copies(numbers)

        def field(name, value):
            if name in ("status", "clusters"):
                return tuple(value)
            if not isinstance(value, list):
                return value
            array = np.array(value, dtype=np.float64)
            array.flags.writeable = False
            return array

        return cls(**{name: field(name, value) for name, value in numbers.items()})

    def undetermined(self, within: float) -> list[int]:
        """Components with variance, counted from 0, whose own angle and whose cluster's angle are not known to `within`."""

        def is_known(i: int) -> bool:
            bounds = [self.angle_bounds[i]] + [angle for first, last, angle in self.clusters if first <= i <= last]
            return any(bound is not None and bound <= within for bound in bounds)

        return [i for i, status in enumerate(self.status) if status != "no-variance" and not is_known(i)]

    @property
    def worst(self) -> float:
        """The largest relative residual of a component with variance."""
        known = [x for x, status in zip(self.relative_residuals, self.status) if status != "no-variance"]
        return float(max(known, default=0.0))

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise KeyError(name)
        return getattr(self, name)

    def __contains__(self, name: object) -> bool:
        return any(field.name == name for field in fields(self))

    def __iter__(self) -> Iterator[str]:
        return (field.name for field in fields(self))

    def __len__(self) -> int:
        return len(fields(self))

    def __str__(self) -> str:
        return self.sentence

    def __repr__(self) -> str:
        return f"<Certificate: {self.sentence}>"
