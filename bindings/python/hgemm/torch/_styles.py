"""Styles for torch's parallelize_module(), by which a linear layer computes with the products that overlap."""

from __future__ import annotations

from types import MethodType
from typing import Any, Optional

from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import (DTensor, Partial, Placement, Replicate, Shard, distribute_module,
                                      distribute_tensor)
from torch.distributed.tensor.parallel import ParallelStyle

from . import _ops, linear
from ._ops import Names, require_tensors
from ._parallel import all_gather_matmul, matmul_all_reduce, matmul_reduce_scatter

_OF = Names("input", "weight")


class _Style(ParallelStyle):
    """What both have in common. Parameters become DTensors as torch's own style of this name makes them.

    The module keeps its class and its parameters, and gets a forward() of its own."""

    _layouts: tuple[Placement, Placement]  # of the input and of the output, where none are given
    _parameters: dict[str, Placement]
    _divided: str  # which features of a module each rank has a part of

    def __init__(self, *, input_layouts: Optional[Placement] = None, output_layouts: Optional[Placement] = None,
                 use_local_output: bool = True) -> None:
        super().__init__()
        for name, layout in (("input_layouts", input_layouts), ("output_layouts", output_layouts)):
            _ops._require(layout is None or isinstance(layout, Placement), TypeError,
                          f"{name}: is {layout!r}, must be a torch.distributed.tensor.Placement")
        self.input_layouts = (input_layouts or self._layouts[0],)
        self.output_layouts = (output_layouts or self._layouts[1],)
        self.use_local_output = use_local_output

    def __repr__(self) -> str:
        return (f"{type(self).__name__}(input_layouts={self.input_layouts}, output_layouts={self.output_layouts}, "
                f"use_local_output={self.use_local_output})")

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        """Of parallelize_module(). All ranks refuse, or none, before they send anything."""
        _check_module(module)
        _ops._require(device_mesh.ndim == 1, ValueError,
                      f"device_mesh: has {device_mesh.ndim} dimensions, must have 1; take a part such as mesh['tp']")
        features, size = getattr(module, self._divided), device_mesh.size()
        _ops._require(features % size == 0, ValueError,
                      f"module: {self._divided} of {module} is {features}, must be a multiple of the {size} ranks")
        distribute_module(module, device_mesh, self._distribute)

        def forward(module: nn.Module, input: Tensor) -> Tensor:
            return self._forward(module, input)

        module.forward = MethodType(forward, module)  # type: ignore[method-assign]
        return module

    def _distribute(self, _: str, module: nn.Module, device_mesh: DeviceMesh) -> None:
        for name, parameter in [*module.named_parameters(recurse=False)]:
            distributed = distribute_tensor(parameter, device_mesh, [self._parameters[name]],
                                            src_data_rank=self.src_data_rank)
            module.register_parameter(name, nn.Parameter(distributed, requires_grad=parameter.requires_grad))

    def _forward(self, module: Any, input: Tensor) -> Tensor:
        raise NotImplementedError

    def _annotated(self, module: Any, input: Tensor) -> DTensor:
        """A local tensor is the part that ``input_layouts`` says. All parts are taken to be alike."""
        require_tensors(input=input)
        mesh = module.weight.device_mesh
        _ops._require(input.dim() > 0, ValueError, "input: 0 dimensions, must be 1 or more")
        if not isinstance(input, DTensor):
            layout = _positive("input_layouts", self.input_layouts[0], input)
            input = DTensor.from_local(input, mesh, [layout], run_check=False)
        _ops._require(input.device_mesh == mesh, ValueError,
                      f"input: is a DTensor of {input.device_mesh}, must be of {mesh}")
        _ops._require(input.shape[-1] == module.in_features, ValueError,
                      f"input: its last dimension is {input.shape[-1]} in all ranks together, must be "
                      f"{module.in_features} as in_features of {module}")
        return input

    def _result(self, y: Tensor, mesh: DeviceMesh, layout: Placement) -> Tensor:
        """``layout``: of y, this rank's part. torch brings it to another."""
        wanted = _positive("output_layouts", self.output_layouts[0], y)
        if self.use_local_output and wanted == layout:
            return y
        y = y.view(y.shape)  # DTensor infers strides of the whole, also of dimensions that are 1 here
        result = DTensor.from_local(y, mesh, [layout], run_check=False)
        if wanted != layout:
            result = result.redistribute(placements=[wanted])
        return result.to_local() if self.use_local_output else result


def _check_module(module: nn.Module) -> None:
    _ops._require(isinstance(module, nn.Linear), TypeError, f"module: is {module}, must be a torch.nn.Linear")
    _ops._require(type(module).forward is nn.Linear.forward and "forward" not in vars(module), TypeError,
                  f"module: {module} has a forward() of its own, must have that of torch.nn.Linear")
    own = {name for name, _ in module.named_parameters(recurse=False)}
    _ops._require(own == {"weight"} or own == {"weight", "bias"}, TypeError,
                  f"module: {type(module).__name__} has the parameters {', '.join(sorted(own))}, must have weight and "
                  "bias, or weight alone")


def _positive(name: str, layout: Placement, x: Tensor) -> Placement:
    if not isinstance(layout, Shard):
        return layout
    _ops._require(-x.dim() <= layout.dim < x.dim(), ValueError,
                  f"{name}: is {layout!r}, must be of one of the tensor's {x.dim()} dimensions")
    return Shard(layout.dim % x.dim())


def _local(parameter: Optional[DTensor]) -> Optional[Tensor]:
    return None if parameter is None else parameter.to_local()


def _product(function: Any, x: Tensor, weight: Tensor, bias: Optional[Tensor], mesh: DeviceMesh, dim: int) -> Tensor:
    """Of all_gather_matmul() and the like, which gather or scatter the first dimension, along ``dim``.

    The result is contiguous as that of torch.nn.Linear, which programs view() in other shapes."""
    rows = x.movedim(dim, 0)
    try:
        y = function(rows, weight.t(), mesh.get_group(), bias=bias)
    except (TypeError, ValueError) as error:
        matrix = rows.reshape(rows.shape[:-1].numel(), rows.shape[-1])
        _ops.raise_named(error, matrix, weight.t(), None, bias, None, _OF)
    return y.movedim(0, dim).contiguous()


def _require_parts(x: Tensor, dim: int, size: int) -> None:
    _ops._require(x.shape[dim] % size == 0, ValueError,
                  f"input: its dimension {dim} is {x.shape[dim]}, must be a multiple of the {size} ranks")


class ColwiseParallel(_Style):
    """Each rank has a part of the outputs: as torch.distributed.tensor.parallel.ColwiseParallel, for torch.nn.Linear.

    weight, (N, K), and bias, (N,), become DTensors of Shard(0). An input of Shard(dim), other than its last dimension,
    is gathered while it is multiplied (``all_gather_matmul``). One of Replicate() is multiplied. torch first makes any
    other Replicate(). The product has Shard(-1), and torch makes it ``output_layouts`` if that is another.

    ``input_layouts``: of inputs that are no DTensors, Replicate() by default. ``output_layouts``: Shard(-1) by default.
    ``use_local_output``: the result is this rank's part, and no DTensor.
    """

    _layouts = (Replicate(), Shard(-1))
    _parameters = {"weight": Shard(0), "bias": Shard(0)}
    _divided = "out_features"

    def _forward(self, module: Any, input: Tensor) -> Tensor:
        x, mesh = self._annotated(module, input), module.weight.device_mesh
        weight, bias, layout = module.weight.to_local(), _local(module.bias), x.placements[0]
        if type(layout) is Shard and layout.dim != x.dim() - 1:
            _require_parts(x, layout.dim, mesh.size())
            y = _product(all_gather_matmul, x.to_local(), weight, bias, mesh, layout.dim)
        else:
            if not layout.is_replicate():
                x = x.redistribute(placements=[Replicate()])
            y = linear(x.to_local(grad_placements=[Partial()]), weight, bias)
        return self._result(y, mesh, Shard(y.dim() - 1))


class RowwiseParallel(_Style):
    """Each rank has a part of the inputs: as torch.distributed.tensor.parallel.RowwiseParallel, for torch.nn.Linear.

    weight, (N, K), becomes a DTensor of Shard(1), and bias, (N,), one of Replicate(). The result is added while parts
    of it are multiplied: of Shard(dim), other than its last dimension, by ``matmul_reduce_scatter``, and of Replicate()
    by ``matmul_all_reduce``. Sums are float32, and are rounded once. torch first makes an input Shard(-1).

    ``input_layouts``: of inputs that are no DTensors, Shard(-1) by default. ``output_layouts``: Replicate() by default.
    ``use_local_output``: the result is this rank's part, and no DTensor.
    """

    _layouts = (Shard(-1), Replicate())
    _parameters = {"weight": Shard(1), "bias": Replicate()}
    _divided = "in_features"

    def __init__(self, *, input_layouts: Optional[Placement] = None, output_layouts: Optional[Placement] = None,
                 use_local_output: bool = True) -> None:
        super().__init__(input_layouts=input_layouts, output_layouts=output_layouts, use_local_output=use_local_output)
        _require_sums(output_layouts is None or output_layouts.is_replicate() or
                      (type(output_layouts) is Shard and output_layouts.dim != -1), output_layouts)

    def _forward(self, module: Any, input: Tensor) -> Tensor:
        whole, mesh = self._annotated(module, input), module.weight.device_mesh
        last = Shard(whole.dim() - 1)
        x = (whole if whole.placements == (last,) else whole.redistribute(placements=[last])).to_local()
        weight, bias = module.weight.to_local(), _local(module.bias)
        layout = _positive("output_layouts", self.output_layouts[0], x)
        _require_sums(layout != last, layout)
        if isinstance(layout, Shard):
            _require_parts(x, layout.dim, mesh.size())
            y = _product(matmul_reduce_scatter, x, weight, bias, mesh, layout.dim)
        else:
            y = _product(matmul_all_reduce, x, weight, bias, mesh, 0)
        return self._result(y, mesh, layout)


def _require_sums(right: bool, layout: Optional[Placement]) -> None:
    _ops._require(right, ValueError,
                  f"output_layouts: is {layout!r}, must be Replicate() or Shard of a dimension before the last")
