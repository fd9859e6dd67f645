// sm90_repack: copies operands that TMA cannot address.
#pragma once

#include "arch/common/ptx/grid.cuh"
#include "arch/common/repack/copy.cuh"

namespace hg::sm90 {

__device__ inline void run_repack(const RepackParams& p)
{
    if (p.pdl_early)
        ptx::launch_dependents();
    // Earlier kernels may have written the operands, or may still read the copies for the GEMM before.
    ptx::wait_for_earlier_grids();
    copy_operands(p);
    ptx::launch_dependents();
}

}  // namespace hg::sm90
