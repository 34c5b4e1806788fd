"""PyTorch: training by asynchronous updates through a parameter hub. Reachable as `espalier.torch.AsyncOptimizer`."""

from __future__ import annotations

import collections
import concurrent.futures
import signal
import time
from typing import Any, Callable, Mapping, Optional

import torch

from . import _memory, errors, hub
from .torch_hub import _bump, _check_frozen, _check_parameter, _frozen, _groups


class AsyncOptimizer:
    """Trains a model by asynchronous updates: no worker waits for another, and the hub's optimizer runs with each update
    by itself.

        optimizer = espalier.torch.AsyncOptimizer(model.parameters())
        ...
        optimizer.zero_grad(); loss.backward(); optimizer.step()

    When it is made, all workers get worker 0's weights. step() gives the gradients to the hub as one update and reads the
    model as it is then. An update whose delay would be above the job's bound is not applied (`espalier hub create --mode
    async --delay-bound T`), see `last` and `counts`.

    params: as of any optimizer. Parameters are dense, contiguous, in the memory of the host, and of float32, float16 or
    bfloat16. Values of the optimizer (lr, momentum) are those that the job was created with; a gradient that is None counts
    as zeros.
    inner: an optimizer of torch.optim over the same parameters, for local SGD: step() is a step of it, and each `every`
    steps the change of the weights, with the opposite sign, is the update. With the hub's optimizer "sgd lr=0.7 momentum=0.9
    nesterov=yes" that is DiLoCo without a barrier.
    in_flight: 2: a step's update is given, and the model read, while the next step computes. step() then waits for the end of
    the former update, and its weights are those after it: more updates a second, with greater delays. `last`, `counts` and
    `version` are of the updates that have ended.
    notice: a worker that is told to end by SIGTERM has so many seconds: its next step() gives its update, which the scheduler
    decides before those of others, leaves the job and ends the process with status 0. Only in the main thread; leave() is the
    same without a signal.
    dropped: "discard", or "carry": an update that was not applied is added to the next one.
    ticket, worker, workers, settings: as of `espalier.hub.connect()`.

    Weights are not written by the program, but for an inner optimizer: load them into the model before this is made.
    """

    def __init__(
        self,
        params: Any,
        *,
        inner: Optional[torch.optim.Optimizer] = None,
        every: int = 1,
        in_flight: int = 1,
        dropped: str = "discard",
        notice: Optional[float] = None,
        ticket: Optional[str] = None,
        worker: Optional[int] = None,
        workers: Optional[int] = None,
        settings: Optional[Mapping[str, object]] = None,
    ) -> None:
        if every < 1 or (every > 1 and inner is None):
            raise errors.InvalidError(f"every is {every}: so many steps of the inner optimizer make one update")
        if in_flight not in (1, 2):
            raise errors.InvalidError(f"in_flight is {in_flight}: 1 or 2 updates of a worker are under way")
        if dropped not in ("discard", "carry"):
            raise errors.InvalidError(f'dropped is {dropped!r}: "discard" or "carry" is expected')
        groups = _groups(params)
        _check_groups(groups)
        self._frozen = _frozen(groups)
        self._params = [param for group in groups for param in group["params"] if getattr(param, "requires_grad", False)]
        if not self._params:
            raise errors.InvalidError("no parameter requires a gradient: there is nothing to train")
        for number, param in enumerate(self._params):
            _check_parameter(param, number)
        self._inner, self._every, self._carries = inner, every, dropped == "carry"
        self._steps = 0
        self._leaves_at: Optional[float] = None
        self._is_told = False
        self._thread = concurrent.futures.ThreadPoolExecutor(1) if in_flight > 1 else None
        self._under_way: Optional[concurrent.futures.Future[tuple[hub.Result, int]]] = None
        self._sent: list[torch.Tensor] = []
        self.has_left = False
        """leave() was called, and the last update has been given."""
        self._carried: Optional[list[torch.Tensor]] = None
        self._begun: list[torch.Tensor] = []
        self.last: Optional[hub.Result] = None
        """How the latest update has ended."""
        self.counts: collections.Counter[str] = collections.Counter()
        """Updates by how they have ended."""
        self.hub = hub.connect(ticket, worker=worker, workers=workers, settings=settings)
        """The connection: statistics, the number of this worker, delay_bound."""
        try:
            if notice is not None:
                signal.signal(signal.SIGTERM, lambda *_, seconds=notice: self._on_notice(seconds))
            if self.hub.delay_bound == 0:
                raise errors.UnsupportedError(
                    "the job trains in rounds: use HubOptimizer, or create it with --mode async --delay-bound T"
                )
            self._views = [_memory.view(param.detach(), True) for param in self._params]
            self.hub.init([hub.Tensor(f"{number}", view) for number, view in enumerate(self._views)])
            self._ahead = [torch.empty_like(param.detach()) for param in self._params] if self._thread else []
            self._ahead_views = [_memory.view(one, True) for one in self._ahead]
            self._read()
        except BaseException:
            self.hub.close()
            raise

    def zero_grad(self, set_to_none: bool = True) -> None:
        """As of any optimizer."""
        for param in self._params:
            if set_to_none or param.grad is None:
                param.grad = None
            else:
                param.grad.detach_().zero_()

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """Gives an update to the hub and reads the model; with an inner optimizer, each `every` steps."""
        _check_frozen(self._frozen)
        self._check_places()
        if self._inner is not None:
            loss = self._inner.step(closure) if closure is not None else self._inner.step()
            self._steps += 1
            if self._steps % self._every == 0 or self._leaves_at is not None:
                self._push([begun - param.detach() for begun, param in zip(self._begun, self._params)])
            return loss
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._push([self._gradient(param) for param in self._params])
        return loss

    def _check_places(self) -> None:
        """The hub's weights are written where the parameters were when this was made."""
        for number, (param, view) in enumerate(zip(self._params, self._views)):
            if param.numel() > 0 and param.data_ptr() != view.address:
                raise errors.StateError(
                    f"parameter {number} (shape {tuple(param.shape)}) has other memory than when AsyncOptimizer was made:"
                    " load weights into the model before"
                )

    def leave(self, within: float) -> None:
        """The next update is the last one of this worker: after it the worker has left the job. within: seconds, at most."""
        if not within > 0:
            raise errors.InvalidError(f"within is {within}: so many seconds are left for the last update")
        self._leaves_at = time.monotonic() + within

    def _on_notice(self, seconds: float) -> None:
        self._is_told = True
        self.leave(seconds)

    def _end(self) -> None:
        self.has_left = True
        self.close()
        if self._is_told:
            raise SystemExit(0)

    def _gradient(self, param: torch.Tensor) -> torch.Tensor:
        if param.grad is None:
            return torch.zeros_like(param, requires_grad=False)
        if param.grad.layout != torch.strided or param.grad.dtype != param.dtype:
            raise errors.UnsupportedError("a gradient is sparse, or of another type than its parameter")
        return param.grad.detach().contiguous()

    def _take_end(self, result: hub.Result, update: list[torch.Tensor]) -> None:
        self.last = result
        self.counts[result.fate] += 1
        self._carried = update if self._carries and not result.applied else None

    def _give(self, update: list[torch.Tensor], version: int, norm: float) -> tuple[hub.Result, int]:
        """The thread's."""
        return self.hub.update(update, version, norm), self.hub.model(self._ahead_views)

    def _await(self) -> Optional[int]:
        """The end of the update that is under way. Returns the version of the weights that were read after it."""
        if self._under_way is None:
            return None
        under_way, self._under_way = self._under_way, None
        result, version = under_way.result()
        self._take_end(result, self._sent)
        return version

    def _push_ahead(self, update: list[torch.Tensor], computed_from: int, norm: float) -> None:
        """It is given while the next step computes."""
        self._sent = [one.clone() for one in update]
        assert self._thread is not None
        self._under_way = self._thread.submit(self._give, self._sent, computed_from, norm)

    def _install(self, version: int) -> None:
        with torch.no_grad():
            for param, one in zip(self._params, self._ahead):
                param.copy_(one)
        self._take_model(version)

    def _push(self, update: list[torch.Tensor]) -> None:
        computed_from, newer = self.version, self._await()
        if newer is not None:
            self._install(newer)
        elif self._inner is not None:
            self._take_model(self.version)
        if self._carried is not None:
            update = [one + before for one, before in zip(update, self._carried)]
        norm = float(torch.stack([one.double().norm() for one in update]).norm())
        if norm != norm or norm == float("inf"):
            raise errors.InvalidError("the update has elements that are infinite or no numbers: it was not sent")
        leaves = None if self._leaves_at is None else max(0.001, self._leaves_at - time.monotonic())
        if self._thread is not None and leaves is None:
            self._push_ahead(update, computed_from, norm)
            return
        self._take_end(self.hub.update(update, computed_from, norm, leaves=leaves), update)
        if leaves is not None:
            self._end()
        else:
            self._read()

    def _read(self) -> None:
        self._check_places()
        self._take_model(self.hub.model(self._views))

    def _take_model(self, version: int) -> None:
        self.version: int = version
        """Of the weights: each has at least this one."""
        for param in self._params:
            _bump(param)
        if self._inner is not None:
            self._begun = [param.detach().clone() for param in self._params]

    def close(self) -> None:
        """Leaves the job, after the update that is under way; the other workers go on."""
        try:
            self._await()
        finally:
            if self._thread is not None:
                self._thread.shutdown()
            self._close()

    def _close(self) -> None:
        self.hub.close()


def _check_groups(groups: list[dict[str, Any]]) -> None:
    for group in groups:
        unknown = set(group) - {"params"}
        if unknown:
            raise errors.UnsupportedError(
                f"a parameter group has {', '.join(sorted(unknown))}: values of the optimizer are those that the job was"
                " created with, for all parameters"
            )
