"""Who is told of every certified iterate: the progress line, the user's callback, scikit-learn's callbacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Record = dict[str, Any]
Callback = Callable[[Record], Any]


def told_together(callbacks: list[Callback]) -> Callback | None:
    """One callback for all; all are told, also after one wants to stop."""
    if not callbacks:
        return None

    def tell(record: Record) -> bool:
        return any([bool(callback(record)) for callback in callbacks])

    return tell


class FitTask:
    """A fit as a task of scikit-learn's callback protocol (1.9), with one subtask for each certified iterate."""

    def __init__(self, estimator, X, y, sample_weight):
        self.estimator = estimator
        self.data = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        self.context = estimator._init_callback_context(task_name="fit", max_subtasks=None)
        self.context.call_on_fit_task_begin(estimator=estimator, **self.data)

    @classmethod
    def begin(cls, estimator, X, y, sample_weight) -> FitTask | None:
        """The task, where the protocol exists and somebody listens."""
        listening = hasattr(estimator, "_skl_callbacks") or hasattr(estimator, "_parent_callback_ctx")
        return cls(estimator, X, y, sample_weight) if listening else None

    def __call__(self, record: Record) -> bool:
        context = self.context.subcontext(task_name="iteration")
        context.call_on_fit_task_begin(estimator=self.estimator, **self.data)
        return bool(context.call_on_fit_task_end(estimator=self.estimator, **self.data))

    def end(self) -> None:
        """The estimator is fitted."""
        self.context.call_on_fit_task_end(estimator=self.estimator, **self.data, reconstruction_attributes={})
