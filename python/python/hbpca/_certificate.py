"""What is proved about a result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(Mapping):
    """Proof of eigenvalues and, where the gaps allow, of eigenvectors of C = (1/n)Σaaᵀ.

    `str()` gives one sentence; fields are attributes and keys alike.
    """

    sentence: str
    #: θᵢ, descending.
    eigenvalues: np.ndarray
    #: rᵢ ≥ ‖Cwᵢ − θᵢwᵢ‖, rounding included.
    residuals: np.ndarray
    #: rᵢ/θ₁, what is compared with `tol`.
    relative_residuals: np.ndarray
    #: [θᵢ − rᵢ, θᵢ + rᵢ] contains an eigenvalue of C.
    eigenvalue_intervals: np.ndarray
    #: Bounds on sin∠(wᵢ, uᵢ); NaN where neighbours are too close to tell single vectors apart.
    angle_bounds: np.ndarray
    #: Bound on ‖sin∠(W, U)‖_F for the whole subspace, or `None`.
    subspace_angle_bound: float | None
    #: Whether the angle bounds are theorems, or rest on an estimate of the next eigenvalue.
    gap_is_proved: bool
    #: ‖WᵀW − I‖_F.
    orthonormality_loss: float
    #: The part of every residual that bounds the rounding of its image.
    image_rounding: float

    @classmethod
    def from_numbers(cls, numbers: dict[str, Any]) -> Certificate:
        """From the compiled half's dict."""

        def field(value):
            if not isinstance(value, list):
                return value
            array = np.array(value, dtype=np.float64)
            array.flags.writeable = False
            return array

        return cls(**{name: field(value) for name, value in numbers.items()})

    @property
    def worst(self) -> float:
        """The largest relative residual."""
        return float(self.relative_residuals.max())

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
