"""Who is told of every certified iterate: the progress line, the user's callback, scikit-learn's callbacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Record = dict[str, Any]
Callback = Callable[[Record], Any]


def told_together(progress: Callback | None, callback: Callback | None, task: FitTask | None) -> Callable[..., bool] | None:
    """One callback for all; all are told, also after one wants to stop. The task also gets the model as it stands."""
    listeners = [listener for listener in (progress, callback) if listener is not None]
    if not listeners and task is None:
        return None

    def tell(record: Record, fitted: Any = None) -> bool:
        answers = [bool(listener(record)) for listener in listeners]
        if task is not None:
            # One who already wants to stop leaves no further iteration to begin.
            answers.append(task.looked(fitted, more=not any(answers)))
        return any(answers)

    return tell


class FitTask:
    """A fit as a task of scikit-learn's callback protocol (1.9), with one subtask for each certified iterate.

    As with scikit-learn's own iterative estimators, the next iteration begins where the last one ends; one that the fit then
    does not need ends empty.
    """

    def __init__(self, estimator, X, y, sample_weight, dtype):
        self.estimator = estimator
        self.dtype = dtype
        self.data = {"X": X, "y": y, "metadata": {} if sample_weight is None else {"sample_weight": sample_weight}}
        self.context = estimator._init_callback_context(task_name="fit", max_subtasks=None)
        self.context.call_on_fit_task_begin(estimator=estimator, **self.data)
        self.iteration = self._begin_iteration(None)

    @classmethod
    def begin(cls, estimator, X, y, sample_weight, dtype) -> FitTask | None:
        """The task, where the protocol exists and somebody listens."""
        listening = hasattr(estimator, "_skl_callbacks") or hasattr(estimator, "_parent_callback_ctx")
        return cls(estimator, X, y, sample_weight, dtype) if listening else None

    def _begin_iteration(self, attributes):
        iteration = self.context.subcontext(task_name="iteration")
        iteration.call_on_fit_task_begin(estimator=self.estimator, **self.data, reconstruction_attributes=attributes)
        return iteration

    def looked(self, fitted: Any, *, more: bool) -> bool:
        """An iterate is certified; whether a callback wants to stop there."""

        def attributes():
            return self.estimator._attributes(fitted, self.dtype)

        stop = bool(
            self.iteration.call_on_fit_task_end(estimator=self.estimator, **self.data, reconstruction_attributes=attributes)
        )
        self.iteration = self._begin_iteration(attributes) if more and not stop else None
        return stop

    def end(self) -> None:
        """The estimator is fitted."""
        if self.iteration is not None:
            self.iteration.call_on_fit_task_end(estimator=self.estimator)
        self.context.call_on_fit_task_end(estimator=self.estimator, **self.data, reconstruction_attributes={})
