"""Plug-ins for inference engines: the library computes the batch-invariant products of vLLM and SGLang.

    HGEMM_ENGINE=batch-invariant VLLM_BATCH_INVARIANT=1 vllm serve ...
    HGEMM_ENGINE=batch-invariant python3 -m sglang.launch_server --enable-deterministic-inference ...

Engines find the plug-ins by the package's entry points. They do nothing unless HGEMM_ENGINE is set; see ENGINES.md.
"""

from ._plugin import Refused, counts

__all__ = ["Refused", "counts"]
