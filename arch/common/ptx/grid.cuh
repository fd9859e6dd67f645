// Programmatic dependent launch: PTX ISA 9.7.13.13. Without that launch attribute both do nothing.
#pragma once

namespace hg::ptx {

// griddepcontrol.launch_dependents;   sm_90. The next grid may start once all CTAs have called this.
__device__ inline void launch_dependents()
{
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

// griddepcontrol.wait;   sm_90. Waits until earlier grids have ended and their writes are visible.
__device__ inline void wait_for_earlier_grids() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

}  // namespace hg::ptx
