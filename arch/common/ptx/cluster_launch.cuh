// Cluster launch control: taking over the work of a cluster that has not started. PTX ISA 9.7.13.17 and
// 9.7.13.18.
#pragma once

#include <cstdint>

namespace hg::ptx {

// clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [response], [bar];
// sm_100
__device__ inline void cancel_cluster(uint32_t response, uint32_t bar)
{
    asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 "
                 "[%0], [%1];" ::"r"(response),
                 "r"(bar)
                 : "memory");
}

// clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128
//     [response], [bar];   sm_100f. All CTAs of the cluster get the response.
__device__ inline void cancel_cluster_multicast(uint32_t response, uint32_t bar)
{
    asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
                 ".multicast::cluster::all.b128 [%0], [%1];" ::"r"(response),
                 "r"(bar)
                 : "memory");
}

// clusterlaunchcontrol.query_cancel.is_canceled and .get_first_ctaid::x;   sm_100. The x index of the first
// CTA of the cluster that was cancelled and whose work this cluster takes over; -1 if there was none.
__device__ inline int32_t cancelled_cluster(uint32_t response)
{
    int32_t first;
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 ".reg .b128 r;\n"
                 "ld.shared.b128 r, [%1];\n"
                 "mov.b32 %0, -1;\n"
                 "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, r;\n"
                 "@p clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %0, r;\n"
                 "}"
                 : "=r"(first)
                 : "r"(response)
                 : "memory");
    return first;
}

}  // namespace hg::ptx
