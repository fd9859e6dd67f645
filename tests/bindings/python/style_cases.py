"""For test_torch_styles.py: models, single layers with layouts, and what both have to compute."""

from typing import NamedTuple

import torch
from torch import nn
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor import parallel as torch_styles

import hgemm.torch.distributed as htd

HEAD, WIDTH, HIDDEN = 8, 32, 48


class Attention(nn.Module):
    def __init__(self, sequence):
        super().__init__()
        self.sequence = sequence
        self.wq, self.wk, self.wv = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))
        self.wo = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = (w(x).unflatten(-1, (-1, HEAD)).movedim(self.sequence, 2) for w in (self.wq, self.wk, self.wv))
        return self.wo(nn.functional.scaled_dot_product_attention(q, k, v).movedim(2, self.sequence).flatten(2))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w3, self.w2 = nn.Linear(WIDTH, HIDDEN), nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)

    def forward(self, x):
        return self.w2(nn.functional.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    """Of activations whose dimension ``sequence`` is that of tokens, 0 or 1."""

    def __init__(self, sequence):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(WIDTH), Attention(sequence)
        self.norm2, self.feed_forward = nn.LayerNorm(WIDTH), FeedForward()

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


#: The dimension of tokens that ranks divide, if they do, and whether a module gathers the input of its layers once.
PLANS = ((0, False), (1, False), (1, True), (None, False))


def plan_of(styles, sequence, gathered):
    plan, first, second = {}, styles.ColwiseParallel(), styles.RowwiseParallel()
    if sequence is not None:
        layout = Shard(sequence)
        plan = {f"norm{i}": torch_styles.SequenceParallel(sequence_dim=sequence) for i in (1, 2)}
        second = styles.RowwiseParallel(output_layouts=layout)
        if gathered:
            plan |= {name: torch_styles.PrepareModuleInput(input_layouts=layout, desired_input_layouts=Replicate())
                     for name in ("attention", "feed_forward")}
        else:
            first = styles.ColwiseParallel(input_layouts=layout)
    return {**plan, "attention.w[qkv]": first, "attention.wo": second,
            "feed_forward.w[13]": first, "feed_forward.w2": second}


class Case(NamedTuple):
    """A layer of a style, by its keyword arguments. ``given``: as which DTensor the input comes; None: as none."""
    style: str
    layouts: dict
    given: object = None
    rows: tuple = (8, 4)
    bias: bool = True
    dtype: torch.dtype = torch.bfloat16

    def linear(self):
        torch.manual_seed(3)
        return nn.Linear(16, 24, bias=self.bias, dtype=self.dtype)

    def operands(self):
        """The whole input and gradient of the result."""
        generator = torch.Generator().manual_seed(len(self.rows))
        return tuple(torch.randn(*self.rows, k, generator=generator).to(self.dtype) for k in (16, 24))

    def layout(self, which):
        defaults = {"Colwise": (Replicate(), Shard(-1)), "Rowwise": (Shard(-1), Replicate())}[self.style]
        return self.layouts.get(f"{which}_layouts", defaults[which == "output"])


def _cases():
    for style, which in (("Colwise", "input"), ("Rowwise", "output")):
        for dim, rows in ((0, (8,)), (0, (4, 3)), (1, (3, 8)), (-2, (3, 8)), (1, (2, 4, 3))):
            yield Case(style, {f"{which}_layouts": Shard(dim)}, rows=rows)
        yield Case(style, {f"{which}_layouts": Shard(0)}, bias=False, dtype=torch.float16)
        yield Case(style, {f"{which}_layouts": Shard(1), "use_local_output": False})
        yield Case(style, {})
        yield Case(style, {"use_local_output": False}, rows=(5,), bias=False)
        for layout in (Replicate(), Shard(0), Shard(-1)):
            yield Case(style, {"input_layouts": layout}, given=layout, dtype=torch.float16)
            yield Case(style, {"input_layouts": layout})
    for layout in (Replicate(), Shard(0)):
        yield Case("Colwise", {"input_layouts": Shard(0), "output_layouts": layout})
        yield Case("Colwise", {"output_layouts": layout, "use_local_output": False})
    yield Case("Colwise", {"input_layouts": Shard(1)}, given=Replicate())  # layouts are those of local inputs
    yield Case("Rowwise", {"input_layouts": Replicate(), "output_layouts": Shard(1)}, rows=(3, 8))


CASES = {repr(case): case for case in _cases()}
OF = {"ours": htd, "torch's": torch_styles}


def part_of(whole, layout, mesh):
    """This rank's."""
    if not isinstance(layout, Shard):
        return whole.clone()
    return whole.chunk(mesh.size(), layout.dim)[mesh.get_local_rank()].clone()


def run(case, styles, mesh):
    """The result as it comes, and this rank's part of the input's gradient, the parameters and their gradients."""
    style = getattr(styles, f"{case.style}Parallel")(**case.layouts)
    linear = torch_styles.parallelize_module(case.linear(), mesh, style)
    x, grad = case.operands()
    leaf = part_of(x, case.given or case.layout("input"), mesh).requires_grad_()
    y = linear(leaf if case.given is None else DTensor.from_local(leaf, mesh, [case.given], run_check=False))
    layout = case.layout("output")
    grad = part_of(grad, layout, mesh)
    y.backward(grad if case.layouts.get("use_local_output", True) else
               DTensor.from_local(grad, mesh, [layout], run_check=False))
    local = y if not isinstance(y, DTensor) else y.to_local()
    parameters = {name: (str(each.placements), each.to_local().detach(), str(each.grad.placements),
                         each.grad.full_tensor()) for name, each in linear.named_parameters()}
    how = (str(y.placements) if isinstance(y, DTensor) else "local", y.is_contiguous(), y.dtype)
    return how, local.detach(), leaf.grad, parameters


def exact(case):
    """In float64: result, and gradients of the input and of the parameters."""
    linear = case.linear().double()
    x, grad = (each.double() for each in case.operands())
    y = linear(x.requires_grad_())
    y.backward(grad)
    return y.detach(), x.grad, {name: each.grad for name, each in linear.named_parameters()}
