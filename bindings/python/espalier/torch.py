"""PyTorch: a communication hook for DistributedDataParallel, without a compiler; and a backend of torch.distributed.

    import torch.distributed as dist
    import espalier.torch

    dist.init_process_group("gloo")                       # as before; torchrun sets the variables
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    state = espalier.torch.State()                        # joins through the process group's store
    ddp.register_comm_hook(state, espalier.torch.allreduce_hook)

The hook starts an allreduce as soon as a bucket of gradients is ready, so communication overlaps with the rest of the backward
pass; nothing is copied. `bf16_hook` sends half as many bytes. A rank that dies raises an error that names it from backward() on
all others.

The backend is compiled once for the torch that is installed (bindings/torch/build.py), and replaces Gloo as a whole:

    import espalier.torch
    dist.init_process_group("espalier")                   # joins through the store; all collectives, any group

HubOptimizer is an optimizer that runs in a parameter hub (espalier/hub.py):

    optimizer = espalier.torch.HubOptimizer(model.parameters(), "sgd lr=0.1 momentum=0.9")

AsyncOptimizer trains by asynchronous updates through a hub, without waiting for other workers:

    optimizer = espalier.torch.AsyncOptimizer(model.parameters())
"""

from __future__ import annotations

import atexit
import collections
import ctypes
import datetime
import functools
import importlib.machinery
import importlib.util
import itertools
import pathlib
import queue
import sys
import threading
from typing import Any, Callable, Optional

import torch
import torch.distributed as dist

from . import _native, errors
from .group import Group
from .job import Job, init
from .torch_async import AsyncOptimizer as AsyncOptimizer
from .torch_hub import HubOptimizer as HubOptimizer
from .work import Work, end_before_python, join_at_exit

_stores = itertools.count()


def join(group: Any = None, **options: Any) -> Job:
    """Joins a job whose ranks are those of a process group of torch.distributed, through its store.

    group: None is the default group. Every rank of it calls this. options: as of espalier.init().
    """
    if not dist.is_initialized():
        raise errors.StateError("torch.distributed has no process group yet: call init_process_group() first")
    from torch.distributed import distributed_c10d as c10d

    if group is None:
        # The store of the default group is its own; any other group has one with its own prefix.
        group = c10d._get_default_group()
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    # Only while joining: the store's threads end with the last who holds it, which is to be before Python goes, and the job has the function for longer.
    stores = [dist.PrefixStore(f"espalier/{next(_stores)}", c10d._get_default_store())]
    members = [c10d.get_global_rank(group, one) if group is not c10d._get_default_group() else one for one in range(size)]
    rounds = itertools.count()

    def allgather(mine: bytes) -> list[bytes]:
        turn = next(rounds)
        stores[0].set(f"{turn}/{members[rank]}", mine)
        return [bytes(stores[0].get(f"{turn}/{member}")) for member in members]

    try:
        return init(rank, size, allgather=allgather, **options)
    finally:
        stores.clear()


# Memory that nobody has asked for in so many calls goes: more than a step has buckets, whose sizes change once DDP knows their order.
_KEEP_CALLS = 1000


class _Spares:
    """Memory for tensors on the host that is used again: buckets come again in every step, and so does it."""

    def __init__(self, make: Callable[[int, torch.dtype], torch.Tensor]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._calls = 0
        # Each with the number of the call before which it was given back; the last is the first to be taken.
        self._free: dict[tuple[int, torch.dtype], list[tuple[int, torch.Tensor]]] = {}

    def take(self, elements: int, dtype: torch.dtype) -> torch.Tensor:
        old = None  # freed when the lock is not held
        with self._lock:
            self._calls += 1
            if self._calls % _KEEP_CALLS == 0:
                old, self._free = self._free, self._recent()
            spares = self._free.get((elements, dtype))
            if spares:
                return spares.pop()[1]
        del old  # what is needed now may be what it leaves
        return self._make(elements, dtype)

    def _recent(self) -> dict[tuple[int, torch.dtype], list[tuple[int, torch.Tensor]]]:
        recent = {key: [one for one in spares if one[0] > self._calls - _KEEP_CALLS] for key, spares in self._free.items()}
        return {key: spares for key, spares in recent.items() if spares}

    def give(self, tensor: torch.Tensor) -> None:
        with self._lock:
            self._free.setdefault((tensor.numel(), tensor.dtype), []).append((self._calls, tensor))


class _InUse:
    """Where the tensors lie that calls are using."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._places: collections.Counter[int] = collections.Counter()

    def enter(self, tensor: torch.Tensor) -> int:
        place = self._place(tensor)
        with self._lock:
            self._places[place] += 1
        return place

    def _place(self, tensor: torch.Tensor) -> int:
        return tensor.data_ptr() if tensor.layout == torch.strided else 0  # nobody can move it

    def leave(self, place: int) -> None:
        with self._lock:
            self._places[place] -= 1
            if self._places[place] == 0:
                del self._places[place]

    def has(self, tensor: torch.Tensor) -> bool:
        with self._lock:
            return self._place(tensor) in self._places


def _divide_first(tensor: torch.Tensor, ranks: int) -> bool:
    """A sum of numbers that float16 can hold may be one that it cannot, so these are divided before, as DDP does; others after, which costs less."""
    if tensor.dtype != torch.float16:
        return False
    tensor.div_(ranks)
    return True


class State:
    """What the hooks need: who takes part, and how.

    group: an espalier.Group, or None: joins through torch.distributed, and leaves with close() or with the process.
    average: divide by the number of ranks, as DistributedDataParallel expects.
    timeout: seconds until a bucket fails; None: the job's deadline.
    share: allreduce_hook() moves DDP's buckets to memory that the other ranks of this host read and store sums into where it lies, as share()
    does. Takes the compiled backend (bindings/torch/build.py); without it nothing is moved.
    """

    def __init__(
        self, group: Optional[Group] = None, *, average: bool = True, timeout: Optional[float] = None, share: bool = True
    ) -> None:
        self._own: Optional[Job] = None
        if group is None:
            self._own = join()
            group = self._own.world
        self.group = group
        self.op = "avg" if average else "sum"
        self.timeout = timeout
        self._lock = threading.Lock()
        self._closed = False
        self._stager: Optional[_Stager] = None
        self._mover = _find_mover() if share else None
        self._in_use = _InUse()
        # Memory of one job; `group` may be replaced by one of another.
        self._spares: Optional[tuple[Job, _Spares]] = None

    def close(self) -> None:
        """Leaves the job, if this joined one. Buckets that are under way fail."""
        with self._lock:
            self._closed = True
            stager, self._stager = self._stager, None
            own, self._own = self._own, None
            self._spares = None  # memory of the job
        if stager is not None:
            stager.close()
        if own is not None:
            own.close()

    # ---- one bucket ----

    def share(self, tensor: torch.Tensor) -> bool:
        """Moves a tensor, and all views of it, to memory that the other ranks of this host read where it lies; a call on it copies less then.

        True: it is there, perhaps since before. False: it stayed where it was: it is small, a part of something, on a GPU, in memory that is not
        torch's own, or a call of this State uses it; or the State does not share, as it was told not to, there is no compiled backend, or no
        memory; or the job has been left. Only for tensors whose memory nobody knows by its address: an array that tensor.numpy() has given
        does, and what it refers to is freed.
        """
        mover, job = self._mover, self.group.job
        if mover is None or self._in_use.has(tensor) or not job._enter():
            return False
        try:
            return mover(tensor, job._context)
        except RuntimeError:  # no memory; nor would there be for the next
            self._mover = None
            return False
        finally:
            job._leave()

    def allreduce(self, tensor: torch.Tensor) -> torch.futures.Future[torch.Tensor]:
        """Combines a tensor in place, in the background; a sparse one (torch.sparse_coo) before this returns."""
        if tensor.is_cuda:
            return self._allreduce_staged(tensor, None)
        if tensor.layout == torch.sparse_coo:
            return self._allreduce_sparse(tensor)
        ended: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        self._start(tensor, ended, lambda: tensor, self.group)
        return ended

    def allreduce_as(self, tensor: torch.Tensor, wire: torch.dtype) -> torch.futures.Future[torch.Tensor]:
        """As allreduce(), but with elements of another type on the wire; a sparse tensor keeps its own."""
        if tensor.is_cuda:
            return self._allreduce_staged(tensor, wire)
        if tensor.layout == torch.sparse_coo:
            return self._allreduce_sparse(tensor)
        ended: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        group = self.group
        held = group.job._enter()  # nobody leaves the job, whose memory is written here, before the call has started
        try:
            data, small = tensor.detach(), self._borrow(group.job, held, tensor.numel(), wire)
            small.view(data.shape).copy_(data)

            def finish() -> torch.Tensor:
                if not group.job._enter():
                    raise errors.StateError("the job has been left, and its work with it")
                try:
                    data.copy_(small.view(data.shape))
                finally:
                    group.job._leave()
                self._give_back(group.job, small)
                return tensor

            self._start(small, ended, finish, group)
        except Exception as failure:
            self._fail(ended, failure, group)
        finally:
            if held:
                group.job._leave()
        return ended

    def _allreduce_sparse(self, tensor: torch.Tensor) -> torch.futures.Future[torch.Tensor]:
        """All ranks gather indices and values, and each adds them in the order of ranks."""
        ended: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        group = self.group
        try:
            own = tensor.detach().coalesce()
            indices, values = own.indices().t().contiguous(), own.values().contiguous()
            # Rows differ in number from rank to rank, and must not differ in length.
            facts = torch.zeros(group.size, 3, dtype=torch.int64)
            facts[group.rank] = torch.tensor([own._nnz(), own.sparse_dim(), values[:1].numel() if own._nnz() else -1])
            group.allreduce(facts, facts, op="sum", timeout=self.timeout)
            if len(set(facts[:, 1].tolist())) > 1 or len(set(facts[:, 2].tolist()) - {-1}) > 1:
                raise errors.MismatchError(f"sparse tensors of different shapes: rows, dimensions, elements of a row by rank: {facts.tolist()}")
            counts = facts[:, 0].tolist()
            all_indices = self._gather_rows(indices, counts, group)
            all_values = self._gather_rows(values, counts, group)
            total = torch.sparse_coo_tensor(all_indices.t(), all_values, own.shape).coalesce()
            tensor.copy_(total / group.size if self.op == "avg" else total)
            ended.set_result(tensor)
        except Exception as failure:
            self._fail(ended, failure, group)
        return ended

    def _gather_rows(self, rows: torch.Tensor, counts: list[int], group: Group) -> torch.Tensor:
        width = rows[:1].numel() if len(rows) else int(torch.Size(rows.shape[1:]).numel())
        out = torch.empty((sum(counts), *rows.shape[1:]), dtype=rows.dtype)
        if out.numel() > 0:
            # Elements are only moved: types that the library does not know travel as bytes.
            size = rows.element_size() * width
            group.allgather(
                rows.reshape(-1).view(torch.uint8), out.reshape(-1).view(torch.uint8), counts=[count * size for count in counts],
                timeout=self.timeout,
            )  # fmt: skip
        return out

    def _borrow(self, job: Job, held: bool, elements: int, dtype: torch.dtype) -> torch.Tensor:
        """Memory that the other ranks of this host read where it lies; if the job has been left, any: whoever sends it will say so."""
        with self._lock:
            if self._spares is not None and not (held and self._spares[0] is job):
                self._spares = None
            if self._spares is None and held and not self._closed:
                self._spares = (job, _Spares(functools.partial(_shared, job)))
            spares = self._spares
        if not held or elements == 0:
            return torch.empty(elements, dtype=dtype)
        return spares[1].take(elements, dtype) if spares is not None else _shared(job, elements, dtype)

    def _give_back(self, job: Job, tensor: torch.Tensor) -> None:
        with self._lock:
            spares = self._spares
        if spares is not None and spares[0] is job:
            spares[1].give(tensor)

    def _start(
        self, tensor: torch.Tensor, ended: torch.futures.Future[torch.Tensor], finish: Callable[[], torch.Tensor], group: Group
    ) -> None:
        def called(work: Work[Any]) -> None:
            self._in_use.leave(place)
            failure: Optional[Exception] = work.exception()
            result = None
            if failure is None:
                try:
                    result = finish()
                except Exception as wrong:
                    failure = wrong
            if failure is not None:
                self._fail(ended, failure, group)
            else:
                ended.set_result(result)

        # The hook must return a future whatever happens; backward() raises what is in it.
        place = self._in_use.enter(tensor)
        try:
            work = group.start.allreduce(tensor, op=self._op(tensor, group), timeout=self.timeout)
        except Exception as failure:
            self._in_use.leave(place)
            self._fail(ended, failure, group)
        else:
            work.add_done_callback(called)

    def _op(self, tensor: torch.Tensor, group: Group) -> str:
        return "sum" if self.op == "avg" and _divide_first(tensor, group.size) else self.op

    def _fail(self, ended: torch.futures.Future[torch.Tensor], failure: Exception, group: Group) -> None:
        """Nobody waits for this bucket: neither whoever has the future, nor the other ranks, who may be at the same one."""
        if not isinstance(failure, errors.EspalierError):
            try:
                group.abort(f"rank {group.rank}: {type(failure).__name__}: {failure}"[:200])
            except errors.EspalierError:
                pass
        ended.set_exception(failure)

    def _allreduce_staged(self, tensor: torch.Tensor, wire: Optional[torch.dtype]) -> torch.futures.Future[torch.Tensor]:
        """Of a GPU. As everywhere, what goes wrong is in the future: the State may be closed, or the tensor on another device."""
        ended: torch.futures.Future[torch.Tensor] = torch.futures.Future(devices=[tensor.device])
        group = self.group
        try:
            self._staging(tensor.device).allreduce(tensor, wire, ended)
        except Exception as failure:
            self._fail(ended, failure, group)
        return ended

    def _staging(self, device: torch.device) -> _Stager:
        with self._lock:
            if self._closed:
                raise errors.StateError("the State has been closed")
            if self._stager is None:
                self._stager = _Stager(self, device)
            if self._stager.device != device:
                raise errors.UnsupportedError(f"a State is for one device; it has {self._stager.device} and was given {device}")
            return self._stager


def _shared(job: Job, elements: int, dtype: torch.dtype) -> torch.Tensor:
    try:
        return torch.frombuffer(job.alloc(elements * torch.empty(0, dtype=dtype).element_size()), dtype=dtype)
    except errors.EspalierError:  # there is none left
        return torch.empty(elements, dtype=dtype)


def _pinned(elements: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.empty(elements, dtype=dtype, pin_memory=True)


_stagers: set[_Stager] = set()


@atexit.register
def _close_stagers() -> None:
    """Before Python goes, and before the jobs are left: the order is the reverse of that in which the modules were loaded."""
    for stager in list(_stagers):
        stager.close(at_exit=True)


class _Stager:
    """Tensors of a GPU: copied to pinned memory on a stream of their own, combined, and copied back, several at once.

    The caller's stream is never waited for by the host: a thread waits for the copy's event, then for the network.
    """

    def __init__(self, state: State, device: torch.device) -> None:
        self.device = device
        self._state = state
        self._down = torch.cuda.Stream(device)
        self._up = torch.cuda.Stream(device)
        self._spares = _Spares(_pinned)
        self._lock = threading.Lock()
        self._closed = False
        self._copied: queue.SimpleQueue[Optional[tuple[Any, ...]]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="espalier-stager", daemon=True)
        self._thread.start()
        _stagers.add(self)

    def allreduce(self, tensor: torch.Tensor, wire: Optional[torch.dtype], ended: torch.futures.Future[torch.Tensor]) -> None:
        """If it raises, the future is the caller's to end."""
        host = self._spares.take(tensor.numel(), wire or tensor.dtype)
        copied = torch.cuda.Event()
        # The copy reads what the caller's stream has written so far, and the tensor must not be given away before it has.
        self._down.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self._down):
            host.copy_(tensor.view(-1) if wire is None else tensor.view(-1).to(wire), non_blocking=True)
            copied.record(self._down)
        tensor.record_stream(self._down)
        with self._lock:
            if self._closed:  # nobody would take it out again
                raise errors.StateError("the State has been closed")
            self._copied.put((copied, host, tensor, ended))

    def _run(self) -> None:
        torch.cuda.set_device(self.device)
        while True:
            item = self._copied.get()
            if item is None:
                return
            copied, host, tensor, ended = item
            try:
                # The host reads this memory next: it has to wait itself, an event between streams would not do.
                copied.synchronize()
                self._combine(host, tensor, ended)
            except Exception as failure:  # the thread lives on for the others
                self._state._fail(ended, failure, self._state.group)

    def _combine(self, host: torch.Tensor, tensor: torch.Tensor, ended: torch.futures.Future[torch.Tensor]) -> None:
        def called(work: Work[Any]) -> None:
            failure: Optional[Exception] = work.exception()
            if failure is not None:
                self._state._fail(ended, failure, self._state.group)
                return
            try:
                with torch.cuda.stream(self._up):
                    tensor.view(-1).copy_(host, non_blocking=True)
                    event = torch.cuda.Event()
                    event.record(self._up)
            except Exception as wrong:
                self._state._fail(ended, wrong, self._state.group)
                return
            with torch.cuda.stream(self._up):
                # Consumers' streams wait for what is in this one now.
                ended.set_result(tensor)
            tensor.record_stream(self._up)
            event.synchronize()
            self._spares.give(host)

        group = self._state.group
        group.start.allreduce(host, op=self._state._op(host, group), timeout=self._state.timeout).add_done_callback(called)

    def close(self, at_exit: bool = False) -> None:
        with self._lock:
            self._closed = True
            self._copied.put(None)
        if threading.current_thread() is self._thread:
            end_before_python(self._thread)
        elif at_exit:
            join_at_exit(self._thread)
        else:
            self._thread.join()
        _stagers.discard(self)


def _check_state(state: object) -> None:
    if not isinstance(state, State):
        raise TypeError(f"the hook wants an espalier.torch.State, as in register_comm_hook(espalier.torch.State(), ...), not {type(state).__name__}")


def _raised(ended: torch.futures.Future[torch.Tensor]) -> torch.futures.Future[torch.Tensor]:
    """For DDP, which reads a future's value in C++: a failure that Python has set is a value there, not an error; one that a callback raises is an error."""
    return ended.then(lambda future: future.value())


def allreduce_hook(state: State, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """A communication hook: averages each bucket over all ranks, in place."""
    _check_state(state)
    tensor = bucket.buffer()
    state.share(tensor)
    return _raised(state.allreduce(tensor))


def bf16_hook(state: State, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """As allreduce_hook(), with bfloat16 on the wire: half the bytes, eight bits of precision."""
    _check_state(state)
    return _raised(state.allreduce_as(bucket.buffer(), torch.bfloat16))


class _Buckets:
    """Those of one DDP over the backend."""

    def __init__(self, group: Any, backend: Any) -> None:
        self.group = group
        self.in_use = _InUse()
        self._backend = backend
        self._moves = True

    def share(self, tensor: torch.Tensor) -> None:
        try:
            if self._moves and not self.in_use.has(tensor):
                self._backend.share(tensor)
        except RuntimeError:  # no memory; nor would there be for the next
            self._moves = False


def _backend_hook(state: _Buckets, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Averages a bucket, as DDP does without a hook, after it has been moved: see share_buckets()."""
    tensor = bucket.buffer()
    state.share(tensor)
    place = state.in_use.enter(tensor)

    def finish(future: torch.futures.Future[list[torch.Tensor]]) -> torch.Tensor:
        state.in_use.leave(place)
        return future.value()[0]

    op = dist.ReduceOp.SUM if _divide_first(tensor, dist.get_world_size(state.group)) else dist.ReduceOp.AVG
    ended: torch.futures.Future[torch.Tensor] = dist.all_reduce(tensor, op=op, group=state.group, async_op=True).get_future().then(finish)
    return ended


# With postponed annotations these are strings, which register_comm_hook() does not accept.
for _hook in (allreduce_hook, bf16_hook, _backend_hook):
    _hook.__annotations__.update(bucket=dist.GradBucket)
    _hook.__annotations__["return"] = torch.futures.Future[torch.Tensor]


# ---- the backend ----

_MODULE = "espalier_c10d"


def _load_backend() -> Any:
    """The compiled module: from Python's path, beside this package, or from a build folder of the checkout."""
    if _MODULE in sys.modules:
        return sys.modules[_MODULE]
    folders = [pathlib.Path(__file__).resolve().parent, *(tree / "bindings" / "torch" for tree in _native.build_trees())]
    spec = importlib.util.find_spec(_MODULE) or importlib.machinery.PathFinder.find_spec(_MODULE, [str(folder) for folder in folders])
    if spec is None or spec.loader is None:
        raise errors.UnsupportedError(
            'the backend has not been compiled for this torch: run bindings/torch/build.py --build build, or use the "gloo" backend '
            "with espalier.torch.allreduce_hook, which needs no compiler"
        )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    # Debian's calls itself 1.13.0a0, and was made of 1.13.1.
    if module.torch_version.split(".")[:2] != torch.__version__.split(".")[:2]:
        raise errors.UnsupportedError(f"the backend was compiled for torch {module.torch_version}, and this is {torch.__version__}: build it again")
    sys.modules[_MODULE] = module
    return module


def _find_mover() -> Optional[Callable[[torch.Tensor, int], bool]]:
    """The compiled module's, if its library is the one that this package uses."""
    try:
        module = _load_backend()
    except (errors.UnsupportedError, ImportError):
        return None
    if getattr(module, "library", None) != ctypes.cast(_native.lib.esp_alloc, ctypes.c_void_p).value:
        return None
    mover: Callable[[torch.Tensor, int], bool] = module.share
    return mover


def share_buckets(ddp: torch.nn.parallel.DistributedDataParallel) -> None:
    """For DDP over the backend: its buckets move to memory that the other ranks of this host read and store sums into where it lies.

    Registers a communication hook that averages, as DDP does without one. For DDP over another backend, State moves its buckets. See State.share() for
    what may not refer to gradients by their address.
    """
    if not hasattr(_load_backend(), "library"):
        raise errors.UnsupportedError("the backend was compiled for an older version: run bindings/torch/build.py again")
    group = ddp.process_group
    backend = group._get_backend(torch.device("cpu")) if hasattr(group, "_get_backend") else group
    if not isinstance(backend, _load_backend().Backend):
        raise errors.InvalidError("share_buckets() is for DistributedDataParallel over the backend: init_process_group(\"espalier\")")
    ddp.register_comm_hook(_Buckets(group, backend), _backend_hook)


def _create(store: Any, rank: int, size: int, timeout: datetime.timedelta) -> Any:
    return _load_backend().create(store, rank, size, timeout)


def _register() -> None:
    if "ESPALIER" in dir(dist.Backend):
        return
    if int(torch.__version__.partition(".")[0]) >= 2:
        dist.Backend.register_backend("espalier", _create, devices=["cpu", "cuda"])
    else:
        dist.Backend.register_backend("espalier", _create)


if dist.is_available():
    _register()
