"""Every collective against what it means, on random sizes, types and kinds of memory."""

from __future__ import annotations

import array
import random

import pytest

import espalier

numpy = pytest.importorskip("numpy")

SIZES = [1, 2, 3, 5]
TYPES = ["float32", "float64", "float16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
OPS = {"sum": numpy.add, "prod": numpy.multiply, "min": numpy.minimum, "max": numpy.maximum}


def values(rank: int, count: int, dtype: str, salt: int = 0):
    """Small whole numbers, so that every order of addition gives the same bits in every type."""
    return numpy.random.default_rng(1000 * rank + salt).integers(1, 4, count).astype(dtype)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", TYPES)
def test_allreduce(ranks, size, dtype):
    pick = random.Random(f"{size}{dtype}")
    count, op = pick.choice([1, 7, 1000, 70_000]), pick.choice(list(OPS))

    def body(job):
        mine = values(job.rank, count, dtype)
        out = numpy.zeros_like(mine)
        assert job.world.allreduce(mine, out, op=op) is out
        assert job.world.allreduce(mine, op=op) is mine
        assert numpy.array_equal(mine, out)
        return out

    wanted = values(0, count, dtype)
    for rank in range(1, size):
        wanted = OPS[op](wanted, values(rank, count, dtype))
    for result in ranks.run(size, body):
        assert numpy.array_equal(result, wanted)


@pytest.mark.parametrize("size", SIZES)
def test_blocks(ranks, size):
    count = 100

    def body(job):
        world, rank = job.world, job.rank
        whole = values(rank, size * count, "int32")
        part = world.reduce_scatter(whole)
        everything = world.allgather(part)
        collected = world.gather(part, root=size - 1)
        back = world.scatter(everything if rank == 0 else None, numpy.zeros(count, "int32"))
        turned = world.alltoall(whole)
        summed = world.reduce(whole.copy(), root=0)
        assert (collected is None) == (rank != size - 1)
        assert (summed is None) == (rank != 0)
        return part, everything, collected, back, turned, summed

    results = ranks.run(size, body)
    whole = [values(rank, size * count, "int32") for rank in range(size)]
    total = sum(whole)
    for rank, (part, everything, _, back, turned, _) in enumerate(results):
        assert numpy.array_equal(part, total[rank * count : (rank + 1) * count])
        assert numpy.array_equal(everything, total)
        assert numpy.array_equal(back, part)
        assert numpy.array_equal(turned, numpy.concatenate([one[rank * count : (rank + 1) * count] for one in whole]))
    assert numpy.array_equal(results[size - 1][2], total)
    assert numpy.array_equal(results[0][5], total)


@pytest.mark.parametrize("size", [2, 4])
def test_blocks_of_different_sizes(ranks, size):
    counts = [3 * rank + 1 for rank in range(size)]
    matrix = [sender + 2 * receiver for sender in range(size) for receiver in range(size)]

    def body(job):
        world, rank = job.world, job.rank
        whole = values(rank, sum(counts), "float64")
        part = world.reduce_scatter(whole, counts=counts)
        everything = world.allgather(part, counts=counts)
        sent = numpy.concatenate([numpy.full(rank + 2 * to, 100 * rank + to, "int64") for to in range(size)])
        return part, everything, world.alltoall(sent, counts=matrix)

    total = sum(values(rank, sum(counts), "float64") for rank in range(size))
    for rank, (part, everything, turned) in enumerate(ranks.run(size, body)):
        begin = sum(counts[:rank])
        assert numpy.array_equal(part, total[begin : begin + counts[rank]])
        assert numpy.array_equal(everything, total)
        wanted = numpy.concatenate([numpy.full(sender + 2 * rank, 100 * sender + rank, "int64") for sender in range(size)])
        assert numpy.array_equal(turned, wanted)


def test_memory_without_numpy(ranks):
    def body(job):
        numbers = array.array("f", [job.rank + 1.0] * 10)
        job.world.allreduce(numbers)
        text = bytearray(b"hello" if job.rank == 0 else b".....")
        job.world.broadcast(text)
        gathered = job.world.allgather(bytes([job.rank]) * 2)
        return list(numbers), bytes(text), bytes(gathered)

    for numbers, text, gathered in ranks.run(3, body):
        assert numbers == [6.0] * 10
        assert text == b"hello"
        assert gathered == b"\0\0\1\1\2\2"


def test_a_root_may_broadcast_what_it_cannot_write(ranks):
    def body(job):
        if job.rank == 1:
            return bytes(job.world.broadcast(b"constant", root=1))
        return bytes(job.world.broadcast(bytearray(8), root=1))

    assert ranks.run(3, body) == [b"constant"] * 3


def test_a_bucket_of_tensors(ranks):
    def body(job):
        bucket = [numpy.full(n, job.rank + 1, "float32") for n in (1, 1000, 0, 50_000)]
        assert job.world.allreduce(bucket, op="avg") is bucket
        return [set(one.tolist()) for one in bucket]

    for result in ranks.run(4, body):
        assert result == [{2.5}, {2.5}, set(), {2.5}]


def test_memory_of_the_job(ranks):
    def body(job):
        memory = job.alloc(100_000, "f32")
        numbers = numpy.frombuffer(memory, dtype="float32")
        numbers[:] = job.rank
        job.world.allreduce(numbers)
        result = set(numbers.tolist())
        shared = job.stats()["shared_bytes"]
        del memory, numbers
        return result, shared

    for result, shared in ranks.run(4, body):
        assert result == {6.0}
        assert shared > 0


def test_memory_that_is_shared(ranks):
    def body(job):
        numbers = numpy.full(100_000, job.rank, "float32")
        before = job.stats()["shared_bytes"]
        job.share(numbers)
        job.world.allreduce(numbers)
        shared = job.stats()["shared_bytes"] - before
        with pytest.raises(espalier.InvalidError):
            job.share(numbers[10:])
        job.unshare(numbers)
        with pytest.raises(espalier.InvalidError):
            job.unshare(numbers)
        with pytest.raises(espalier.InvalidError):
            job.share(b"read only")
        job.share(numbers[:0])
        left = numpy.full(100_000, job.rank, "float32")
        job.share(left)
        job.world.allreduce(left)
        job.close()
        return set(numbers.tolist()), set(left.tolist()), shared

    for one, other, shared in ranks.run(4, body):
        assert one == other == {6.0}
        assert shared > 0


def test_scaled_and_keyed(ranks):
    def body(job):
        numbers = numpy.ones(10, "float32")
        job.world.allreduce(numbers, op="scaled", factor=0.5)
        # In another order on each rank: keys say what belongs together.
        keys = [1, 2, 3] if job.rank == 0 else [3, 1, 2]
        data = {key: numpy.full(5, key, "int64") for key in keys}
        works = [job.world.start.allreduce(data[key], key=key) for key in keys]
        for work in works:
            work.wait()
        return numbers[0], [int(data[key][0]) for key in (1, 2, 3)]

    for result in ranks.run(2, body):
        assert result == (1.0, [2, 4, 6])


def test_groups(ranks):
    def body(job):
        odd = job.world.split(job.rank % 2)
        assert odd is not None
        numbers = numpy.array([job.rank])
        odd.allreduce(numbers)
        pair = job.world.create([2, 0])
        if job.rank in (0, 2):
            assert pair is not None and pair.rank == (0 if job.rank == 2 else 1) and pair.world_rank(0) == 2
            assert pair.host(0) == job.world.host(2)
            pair.free()
        else:
            assert pair is None
        nobody = job.world.split(None)
        assert nobody is None
        odd.free()
        with pytest.raises(espalier.StateError):
            odd.barrier()
        return int(numbers[0])

    assert ranks.run(4, body) == [2, 4, 2, 4]


def test_messages(ranks):
    def body(job):
        if job.rank == 0:
            room = bytearray(100)
            sizes = {}
            for _ in range(2):
                size, sender = job.world.recv(room, tag=7)
                sizes[sender] = bytes(room[:size])
            return sizes
        job.world.send(b"x" * job.rank, 0, tag=7)
        return None

    assert ranks.run(3, body)[0] == {1: b"x", 2: b"xx"}


@pytest.mark.parametrize("size", [1, 3])
def test_torch_tensors(ranks, size):
    torch = pytest.importorskip("torch")

    def body(job):
        plain = torch.full((3, 5), float(job.rank + 1))
        half = torch.full((1000,), 0.5, dtype=torch.bfloat16)
        learnt = torch.nn.Parameter(torch.full((4,), float(job.rank)))
        job.world.allreduce(plain)
        job.world.allreduce(half)
        job.world.allreduce(learnt)
        gathered = job.world.allgather(torch.tensor([job.rank]))
        with pytest.raises(espalier.InvalidError, match="contiguous"):
            job.world.allreduce(torch.zeros(4, 4).t()[:, 1:])
        return plain[2, 4].item(), half[999].item(), learnt[3].item(), gathered.tolist()

    for result in ranks.run(size, body):
        total = sum(range(size))
        assert result == (total + size, 0.5 * size, total, list(range(size)))


def test_truth_values_stay_truth_values(ranks):
    def body(job):
        flags = numpy.array([True, job.rank == 0, False])
        job.world.allreduce(flags)
        both = numpy.array([True, job.rank == 0])
        job.world.allreduce(both, op="min")
        with pytest.raises(espalier.InvalidError, match="avg"):
            job.world.allreduce(flags, op="avg")
        return flags.view("uint8").tolist(), both.view("uint8").tolist()

    assert ranks.run(2, body) == [([1, 1, 0], [1, 0])] * 2
