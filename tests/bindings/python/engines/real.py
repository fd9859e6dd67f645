#!/usr/bin/env python3
"""The plug-ins with the engines' own Python files, without the engines' compiled code.

    real.py FOLDER [ENGINE-VERSION ...] [CHECK ...]     FOLDER: as fetch.py has filled it

Needs PyTorch, Triton, the package hgemm installed, and what the engines' modules import (requirements.txt beside this).
A module that cannot be imported here is named; the engine's module of batch-invariant products has to be. Where torch
has a CUDA device, such as the virtual driver's, products run as well. Fails if a check did.
"""

from __future__ import annotations

import ast
import importlib
import importlib.machinery
import importlib.metadata
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

CHECKS: dict[str, Callable[[Any], str]] = {}


def check(function: Callable[[Any], str]) -> Callable[[Any], str]:
    CHECKS[function.__name__] = function
    return function


def importers(folder: Path, engine: Any) -> dict[str, set[str]]:
    """Modules that import functions which the plug-in replaces, and which, from its module or that one's package."""
    sources = {engine.module, engine.module.rpartition(".")[0]}
    found: dict[str, set[str]] = {}
    for path in sorted((folder / engine.name).rglob("*.py")):
        text = path.read_text(errors="replace")
        if not any(name in text for name in engine.signatures):
            continue
        module = ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom):
                source = node.module or ""
                if node.level:
                    base = package.split(".")[:len(package.split(".")) - node.level + 1]
                    source = ".".join([*base, *filter(None, [source])])
                names = {alias.name for alias in node.names} & set(engine.signatures)
                if source in sources and names:
                    found.setdefault(module, set()).update(names)
    return found


class Edited(importlib.machinery.SourceFileLoader):
    """A module whose text is changed as it is imported."""
    edits: list[tuple[str, str]] = []

    def get_code(self, fullname: str) -> Any:
        text = Path(self.path).read_text()
        for before, after in self.edits:
            if before not in text:
                raise RuntimeError(f"{self.path} has no {before!r}")
            text = text.replace(before, after)
        return compile(text, self.path, "exec")

    @classmethod
    def at(cls, name: str, edits: list[tuple[str, str]]) -> None:
        cls.edits = edits

        class Finder:
            @staticmethod
            def find_spec(fullname: str, path: Any = None, target: Any = None) -> Any:
                if fullname != name:
                    return None
                spec = importlib.machinery.PathFinder.find_spec(fullname, path)
                spec.loader = cls(fullname, spec.origin)
                return spec
        sys.meta_path.insert(0, Finder)


class Child:
    """What a check has, in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.name = folder, folder.name.partition("-")[0]
        self.plugin = importlib.import_module(f"hgemm.engines.{self.name}")
        self.engine = self.plugin.ENGINE
        import torch
        if self.name == "vllm" and torch.cuda.is_available():
            # Where there is no NVML, vLLM finds no GPU. What it has compiled is not here, and nothing calls it.
            importlib.import_module("vllm")
            sys.modules["vllm._C_stable_libtorch"] = ModuleType("vllm._C_stable_libtorch")
            platforms = importlib.import_module("vllm.platforms")
            platforms._current_platform = importlib.import_module("vllm.platforms.cuda").NonNvmlCudaPlatform()

    @property
    def module(self) -> Any:
        return importlib.import_module(self.engine.module)

    def begin(self) -> None:
        """As when the engine starts its mode, also where there is no device."""
        import torch
        self.plugin.load()
        plugins = sys.modules["hgemm.engines._plugin"]
        if not torch.cuda.is_available():
            plugins.Plugin.device = lambda plugin: "no device"
        plugins._active[self.name].begin()

    def refusal(self, begin: bool = False) -> str:
        try:
            self.begin() if begin else self.plugin.load()
        except (RuntimeError, SystemExit) as error:
            return str(error)
        raise AssertionError("nothing was refused")

    def require_refusal(self, text: str, begin: bool = False) -> str:
        refusal = self.refusal(begin)
        if text not in refusal:
            raise AssertionError(f"{text!r} is not in: {refusal}")
        return refusal


@check
def replaced_in_all_modules(child: Child) -> str:
    """Some have imported the functions before the plug-in is loaded, some import them after."""
    names = importers(child.folder, child.engine)
    own = {name: getattr(child.module, name) for name in child.engine.signatures}
    imported, not_imported = [], []
    for i, module in enumerate(names):
        if i == len(names) // 2 or len(names) == 1:
            child.plugin.load()
        try:
            importlib.import_module(module)
            imported.append(module)
        except Exception as error:
            not_imported.append(f"{module} ({type(error).__name__}: {str(error).splitlines()[0][:80]})")
    child.plugin.load()
    for module in [child.engine.module, *imported]:
        for name in own:
            function = getattr(sys.modules[module], name, None)
            if function is own[name]:
                raise AssertionError(f"{module}.{name} is the engine's own")
            if function is not None and function is not getattr(child.module, name):
                raise AssertionError(f"{module}.{name} is neither the engine's nor the library's")
    return f"in {len(imported)} importing modules: {', '.join(imported)}; not imported here: " + \
        (", ".join(not_imported) or "none")


def layer_of(child: Child, torch: Any, device: str) -> Any:
    """The engine's own method of a linear layer, or what it comes to."""
    weight = torch.randn(48, 64, generator=torch.Generator().manual_seed(1)).to(torch.bfloat16).to(device)
    if child.name == "sglang":  # F.linear, of which torch makes aten::mm, whose kernel there is
        matmul = child.module.mm_batch_invariant
        return lambda x: matmul(x, weight.t())
    linear = importlib.import_module("vllm.model_executor.layers.linear")
    if device == "cpu":
        linear.current_platform.is_cuda_alike = lambda: True
    layer = torch.nn.Module()
    layer.weight = torch.nn.Parameter(weight, requires_grad=False)
    method = linear.UnquantizedLinearMethod()
    return lambda x: method.apply(layer, x)


@check
def graph_keeps_the_operator(child: Child) -> str:
    import torch
    device = "cuda" if torch.cuda.is_available() else "cpu"
    layer, graphs, results = layer_of(child, torch, device), [], {}
    child.plugin.load()

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward
    compiled = torch.compile(layer, backend=backend, fullgraph=True, dynamic=True)
    rows = torch.randn(300, 64, generator=torch.Generator().manual_seed(2)).to(torch.bfloat16)
    ran = "run"
    for m in (8, 300, 3, 77):
        try:
            with torch.inference_mode():
                results[m] = compiled(rows[:m].to(device)).cpu()
        except RuntimeError as error:
            if "no batch-invariant mode" not in str(error) or device == "cuda":
                raise
            ran = f"refused when it runs: {error}"
    operators = [str(node.target) for graph in graphs for node in graph.graph.nodes if "hgemm" in str(node.target)]
    symbols = [node for node in graphs[0].graph.nodes if isinstance(node.meta.get("example_value"), torch.SymInt)]
    if len(graphs) != 1 or operators != ["hgemm.gemm.default"] or not symbols:
        raise AssertionError(f"{len(graphs)} graphs, operators {operators}, symbols {symbols}")
    for m, result in results.items():
        if not torch.equal(result, results[300][:m]):
            raise AssertionError(f"rows of {m} differ from those of 300")
    return f"one graph for M = 8, 300, 3, 77, with hgemm.gemm and a symbolic M; {ran}, on {device}"


@check
def starts(child: Child) -> str:
    """The engine's own start of its mode."""
    import torch
    child.plugin.load()
    if not torch.cuda.is_available():
        try:
            child.module.enable_batch_invariant_mode()
        except RuntimeError as error:
            if "there are no batch-invariant products" in str(error) or "No supported accelerator" in str(error):
                return f"refused: {error}"
            raise
        return "started on the CPU"
    child.module.get_max_shared_memory_bytes = lambda gpu=0: 232448  # asks vLLM's compiled code
    child.module.enable_batch_invariant_mode()
    a, b = (torch.randn(2, 5, 64).to(torch.float16).to("cuda") for _ in range(2))
    d = torch.bmm(a, b.mT)
    torch.testing.assert_close(d.cpu().float(), a.cpu().float() @ b.cpu().float().mT, rtol=2e-3, atol=2e-2)
    return f"torch.bmm on {torch.cuda.get_device_name()} by the engine's kernel of aten::bmm, now the library's"


@check
def layers(child: Child) -> str:
    """Of the engine's own class, as they are made once its mode has started."""
    import torch
    child.begin()
    linear = importlib.import_module(child.engine.layers)
    told = []
    for dtype in (torch.bfloat16, torch.float32):
        try:
            # SGLang's methods import what it has compiled.
            method = type("UnquantizedLinearMethod", (), {"apply": lambda *_: None})
            config = SimpleNamespace(get_quant_method=lambda layer, prefix: method())
            others = {"disable_tp": True} if child.name == "vllm" else {"quant_config": config}
            linear.LinearBase(64, 48, params_dtype=dtype, prefix="model.gate", **others)
            told.append("served")
        except RuntimeError as error:
            told.append(str(error))
    if told[0] != "served" or "layer model.gate" not in told[1] or "torch.float32" not in told[1]:
        raise AssertionError(told)
    return f"bfloat16: {told[0]}; float32: {told[1]}"


@check
def experts(child: Child) -> str:
    """vLLM's own layer, from its class RoutedExperts down to the method that is replaced."""
    if child.engine.experts is None:
        return "remain the engine's"
    import torch
    import vllm_layer
    vllm_layer.use_cpu()
    child.plugin.load()
    early = vllm_layer.imported()
    child.begin()
    layer, operands, graphs = vllm_layer.layer(), vllm_layer.tokens(), []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward
    try:
        whole = layer.forward_modular(*operands)
    except RuntimeError as error:
        if "no batch-invariant mode" not in str(error):
            raise
        return f"refused: {error}"
    right = vllm_layer.exact(layer, *operands)
    error = float((whole.double() - right).norm() / right.norm())
    compiled = torch.compile(layer.forward_modular, backend=backend, fullgraph=True, dynamic=True)
    for run in (layer.forward_modular, compiled):
        for part in (slice(0, 8), slice(0, 40), slice(5, 8), slice(33, 40)):
            if not torch.equal(run(*(operand[part] for operand in operands)), whole[part]):
                raise AssertionError(f"tokens {part} differ from those of all")
    operators = [str(node.target) for graph in graphs for node in graph.graph.nodes if "hgemm" in str(node.target)]
    if error > 5e-3 or len(graphs) != 1 or len(operators) != 5 or early:
        raise AssertionError(f"error {error}, {len(graphs)} graphs, operators {operators}, imported early: {early}")
    refused = {}
    for name, form in (("swigluoai", {"activation": "swigluoai"}), ("swiglustep", {"activation": "swiglustep"}),
                       ("LoRA", {"is_lora_enabled": True}),
                       ("expert_map", {"expert_map": torch.arange(vllm_layer.EXPERTS)}),
                       ("router weights", {"on_input": True}), ("float32", {"dtype": torch.float32})):
        try:
            vllm_layer.layer(**form)
        except RuntimeError as refusal:
            if f"layer {vllm_layer.NAME} of vllm is not served" not in str(refusal) or name not in str(refusal):
                raise
            refused[name] = str(refusal)
    if len(refused) != 5 or "swigluoai" in refused:
        raise AssertionError(refused)
    return f"error {error:.1e}, one graph with {', '.join(operators)}; refused: {', '.join(refused)}"


@check
def experts_with_other_arguments(child: Child) -> str:
    if child.engine.experts is None:
        return "remain the engine's"
    Edited.at(child.engine.experts.module, [("apply_router_weight_on_input: bool,\n    ):",
                                             "apply_router_weight_on_input: bool,\n        scale=1,\n    ):")])
    return child.require_refusal("TritonExperts.apply has the arguments (self, output", begin=True)


@check
def other_version(child: Child) -> str:
    version = importlib.metadata.version
    importlib.metadata.version = lambda name: "99.0" if name == child.name else version(name)
    return child.require_refusal(f"{child.name} 99.0 is not known")


@check
def other_arguments(child: Child) -> str:
    Edited.at(child.engine.module, [("bmm_batch_invariant(a, b, *, out=None)", "bmm_batch_invariant(a, b, out=None)")])
    return child.require_refusal("bmm_batch_invariant has the arguments (a, b, out=None), not (a, b, *, out=None)")


@check
def function_gone(child: Child) -> str:
    Edited.at(child.engine.module, [("def matmul_persistent(", "def matmul_moved(")])
    return child.require_refusal("matmul_persistent")


def run_child(folder: Path, name: str) -> int:
    sys.path.insert(0, str(folder))
    try:
        print(json.dumps(CHECKS[name](Child(folder))))
        return 0
    except BaseException:
        traceback.print_exc()
        return 1


def main() -> int:
    if sys.argv[1] == "--child":
        return run_child(Path(sys.argv[2]), sys.argv[3])
    top = Path(sys.argv[1])
    failed = 0
    environment = {"HGEMM_ENGINE": "batch-invariant", "VLLM_BATCH_INVARIANT": "1", "VLLM_LOGGING_LEVEL": "ERROR",
                   "PYTHONPYCACHEPREFIX": str(top.absolute() / "pycache"), **os.environ}
    chosen = [name for name in sys.argv[2:] if name in CHECKS] or CHECKS
    folders = [name for name in sys.argv[2:] if name not in CHECKS]
    for name in folders or ("vllm-0.33.0", "vllm-0.32.0", "sglang-0.5.23"):
        for one in chosen:
            command = [sys.executable, __file__, "--child", str((top / name).absolute()), one]
            process = subprocess.run(command, env=environment, capture_output=True, text=True)
            lines = process.stdout.splitlines()
            if process.returncode:
                failed += 1
                print(f"{name} {one}: FAILED\n{process.stderr[-1500:]}", flush=True)
            else:
                print(f"{name} {one}: {json.loads(lines[-1])}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
