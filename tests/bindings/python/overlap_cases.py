"""For test_torch_overlap.py: operands, the memory that its processes share, and the results that they must have."""

import contextlib
import time
import weakref
from types import SimpleNamespace
from typing import NamedTuple
from unittest import mock

import torch
from torch import distributed

import hgemm.torch  # noqa: F401  defines the operators
from hgemm.torch._exchange import Meeting, bytes_of_flags

SHARED = 1 << 20  # bytes that each process of a group shares
WIDTH = 4  # of which a multiple is the number of columns that a rank owns


class Case(NamedTuple):
    what: str  # gather, scatter, all
    dtype: torch.dtype
    rows: tuple = (12,)  # for each rank, if they are gathered
    n: int = 10
    k: int = 24  # in each rank
    bias: torch.dtype | None = None
    out_dtype: torch.dtype | None = None

    def operands(self, size):
        """Of each rank: x, mat2, bias, gradient of the result."""
        generator = torch.Generator().manual_seed(self.k + self.n + len(self.rows))
        def random(*shape):
            return torch.randn(*shape, generator=generator)
        first, *others = self.rows
        rows = {"gather": first * size, "scatter": first // size, "all": first}[self.what]
        whole_bias, same = random(self.n), random(rows, *others, self.n)
        of_ranks = []
        for _ in range(size):
            bias = random(self.n) if self.what == "gather" else whole_bias
            grad = same if self.what == "all" else random(rows, *others, self.n)
            of_ranks.append((random(*self.rows, self.k).to(self.dtype),
                             random(self.n, self.k).to(self.dtype).t(),  # of a layer's weight
                             bias.to(self.bias) if self.bias else None, grad.to(self.out_dtype or self.dtype)))
        return of_ranks


CASES = [case for dtype in (torch.float16, torch.bfloat16) for case in (
    Case("gather", dtype), Case("gather", dtype, (6, 2), bias=dtype),
    Case("gather", dtype, (3,), out_dtype=torch.float32),
    Case("gather", dtype, (1, 5), 7, 9, torch.float32, torch.float32), Case("gather", dtype, (0,)),
    Case("gather", dtype, k=0, bias=dtype),
    Case("scatter", dtype), Case("scatter", dtype, (12, 2), bias=dtype),
    Case("scatter", dtype, out_dtype=torch.float32),
    Case("scatter", dtype, (24,), 7, 9, torch.float32, torch.float32), Case("scatter", dtype, (0,)),
    Case("scatter", dtype, k=0, bias=dtype),
    Case("all", dtype), Case("all", dtype, (12, 2), bias=dtype), Case("all", dtype, (13,), out_dtype=torch.float32),
    Case("all", dtype, (5, 1), 7, 9, torch.float32, torch.float32), Case("all", dtype, (1,)), Case("all", dtype, (0,)),
    Case("all", dtype, k=0, bias=dtype))]


class SharedMemory(Meeting):
    """As Peers, on the CPU. Copies take place as late as they may."""

    def __init__(self, group, folder):
        self._group, self._pending = group, []
        ranks = distributed.get_process_group_ranks(group)
        self._memory = [torch.from_file(f"{folder}/{rank}", True, SHARED + bytes_of_flags(len(ranks)),
                                        dtype=torch.uint8) for rank in ranks]
        super().__init__([memory.data_ptr() + SHARED for memory in self._memory], distributed.get_rank(group))

    def views(self, shape, dtype, offset=0, by_rows=False):
        length = torch.Size(shape).numel() * dtype.itemsize
        found = [memory[offset:offset + length].view(dtype).view(shape) for memory in self._memory]
        return [row for view in found for row in view] if by_rows else found

    @contextlib.contextmanager
    def call(self):
        self.barrier()
        yield
        assert not self._pending, "nobody waited for copies"

    def barrier(self):
        distributed.barrier(self._group)

    def send(self, copies):
        self._pending += [(there, here) for there, here in copies]
        return [id(there) for there, _ in copies]

    def wait(self, sent):
        while sent in [id(there) for there, _ in self._pending]:
            there, here = self._pending.pop(0)
            there.copy_(here)


class SymmetricMemory:
    """As torch's, on the CPU, for _peers: ``room`` is the most that this rank can allocate at once for buffers, which
    have flags behind them. In the rendezvous each rank waits for all others by a file, as torch's do by a store."""

    def __init__(self, file, size, room, meets=True):
        self._store, self._size, self._room, self._meets = distributed.FileStore(file, size), size, room, meets
        self._made = []
        self.tried, self.met = [], 0  # bytes of each allocation; how many times all ranks came

    def empty(self, bytes, *, dtype, device):
        buffers = bytes - bytes_of_flags(self._size)
        self.tried.append(buffers)
        if buffers > self._room:
            raise torch.OutOfMemoryError(f"this rank has no {buffers} bytes")
        memory = torch.empty(bytes, dtype=dtype, device=device)
        self._made.append(weakref.ref(memory))
        return memory

    def rendezvous(self, memory, group):
        self.met += 1
        self._store.add("came", 1)
        until = time.monotonic() + 60
        while self._store.add("came", 0) < self.met * self._size:
            if time.monotonic() > until:
                raise RuntimeError("a rank does not come")
            time.sleep(0.001)
        if not self._meets:
            raise RuntimeError("this rank cannot reach the others")
        return SimpleNamespace(world_size=self._size, rank=0,
                               get_buffer=lambda rank, shape, dtype, start: memory[start:start + shape[0]])

    def alive(self):
        return sum(made().numel() for made in self._made if made() is not None)

    @contextlib.contextmanager
    def in_place(self, rank):
        """Of torch's, and of devices, of which each rank has its own."""
        from torch.distributed import _symmetric_memory as symmetric
        of_cuda = {"get_device_properties": lambda _: SimpleNamespace(uuid=rank), "device": mock.MagicMock(),
                   "Event": mock.Mock(), "Stream": mock.Mock(), "is_current_stream_capturing": lambda: False}
        with mock.patch.multiple(symmetric, empty=self.empty, rendezvous=self.rendezvous), \
                mock.patch.multiple(torch.cuda, **of_cuda):
            yield


def rows_of(x):
    return x.reshape(x.shape[:-1].numel(), x.shape[-1])


def product(x, mat2, bias, out_dtype, added=None):
    beta = 0.0 if added is None else 1.0
    return torch.ops.hgemm.gemm(x, mat2, added, bias, 1.0, beta, "none", out_dtype, False)


def of_parts(x, mat2, bias, out_dtype, parts):
    """Of so many parts of the rows: how many rows a product has may change bits."""
    return torch.cat([product(part, mat2, bias, out_dtype) for part in x.split(max(1, -(-len(x) // parts)))])


def of_columns(x, mat2, bias, size):
    """Of so many parts of the columns, in float32."""
    width = -(-mat2.shape[1] // (WIDTH * size)) * WIDTH
    biases = [None] * size if bias is None else bias.split(width)
    return torch.cat([product(x, part, bias, torch.float32) for part, bias in zip(mat2.split(width, 1), biases)], 1)


def gathered(case, size, way):
    operands = case.operands(size)
    whole = torch.cat([rows_of(x) for x, *_ in operands])
    parts = size if way in ("rows", "columns", "many") else 1
    return [of_parts(whole, mat2, bias, case.out_dtype, parts) for _, mat2, bias, _ in operands]


def add(parts):
    total, *others = parts
    for other in others:
        total = total + other
    return total


def sums(case, size, way):
    """All rows of the result. In float32, one rank after the other; with many rows their owner's sum is the last."""
    operands = [(rows_of(x), mat2, bias if rank == 0 else None) for rank, (x, mat2, bias, _) in
                enumerate(case.operands(size))]
    dtype = case.out_dtype or case.dtype
    if size == 1:
        return product(*operands[0], dtype)
    if way == "columns" and case.what == "all":
        return add([of_columns(*each, size) for each in operands]).to(dtype)
    if way != "many" or case.k == 0:
        parts = size if way in ("rows", "columns") and case.what == "scatter" else 1
        return add([of_parts(*each, torch.float32, parts) for each in operands]).to(dtype)
    rows, found = len(operands[0][0]), []
    block = -(-rows // size)
    for owner in range(size):
        first, end = owner * block, min(rows, (owner + 1) * block)
        middle = min(end, first + block // 2)
        for piece in (slice(first, middle), slice(middle, end)):
            if piece.start < piece.stop:
                x, mat2, bias = operands[owner]
                others = add([product(x[piece], mat2, bias, torch.float32) for rank, (x, mat2, bias)
                              in enumerate(operands) if rank != owner])
                found.append(product(x[piece], mat2, bias, dtype, others))
    return torch.cat(found) if found else torch.empty(0, case.n, dtype=dtype)


def expected_of(case, size, way):
    """For each rank."""
    if case.what == "gather":
        return gathered(case, size, way)
    total = sums(case, size, way)
    return total.chunk(size) if case.what == "scatter" else [total] * size
