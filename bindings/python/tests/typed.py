"""A program as users write it, which a type checker reads and nobody runs: the package says of each call what it gives (make check-python)."""

from typing import Any, Optional

from typing_extensions import assert_type

import espalier


async def program(job: espalier.Job) -> None:
    data, world = bytearray(16), job.world
    work = world.start.allreduce(data, op="max")
    assert_type(work, "espalier.Work[Any]")
    work.add_done_callback(lambda one: print(one.exception(), one.plan))
    await work
    await world.start.barrier()
    assert_type(world.start.send(data, 1), "espalier.Work[None]")
    assert_type(world.start.recv(data), espalier.Received)
    assert_type(await world.start.recv(data), "tuple[int, int]")
    assert_type(world.recv(data, 0, tag=1), "tuple[int, int]")
    prepared = world.prepare.broadcast(data, root=1)
    assert_type(prepared, "espalier.Prepared[Any]")
    prepared.restart()
    assert_type(world.split(1), Optional[espalier.Group])
    assert_type(world.error, Optional[espalier.EspalierError])
    assert_type(world.shrink().lost, "list[int]")
    assert_type(world.grow(), Optional[espalier.Job])
    assert_type(job.alloc(4, "f32"), memoryview)
    job.share(job.alloc(4, "f32"))
    assert_type(job.stats(), "dict[str, int]")


with espalier.hub.connect(worker=0, workers=2) as hub:
    hub.init([espalier.hub.Tensor("w", bytearray(8), group=1, type="f32")])
    assert_type(hub.start_pushpull("w", bytearray(8), bytearray(8), timeout=5), "espalier.Work[None]")
    assert_type(hub.set(1, "lr=0.5"), int)
    assert_type(hub.optimizer(), str)
    assert_type(hub.stats(), "dict[str, int]")

with espalier.init(settings={"lanes": 1}) as joined:
    try:
        joined.world.allreduce([bytearray(4), bytearray(8)], type="f32", timeout=5)
    except espalier.PeerError as error:
        assert_type(error.rank, Optional[int])
        assert_type(error.host, Optional[str])
