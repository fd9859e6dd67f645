// A kernel that runs: what becomes of its faults and hazards.
#include "driver/kernel_run.hpp"

#include "driver/reports.hpp"

namespace emu::driver {
namespace {

CUresult error_of(const std::string& kind)
{
    const struct {
        const char* kind;
        CUresult error;
    } known[] = {
        {"out-of-bounds", CUDA_ERROR_ILLEGAL_ADDRESS},
        {"misaligned", CUDA_ERROR_MISALIGNED_ADDRESS},
        {"deadlock", CUDA_ERROR_LAUNCH_TIMEOUT},
        {"timeout", CUDA_ERROR_LAUNCH_TIMEOUT},
        {"assert", CUDA_ERROR_ASSERT},
        {"illegal-instruction", CUDA_ERROR_ILLEGAL_INSTRUCTION},
        {"wrong-space", CUDA_ERROR_INVALID_ADDRESS_SPACE},
        {"tmem-leak", static_cast<CUresult>(721)}};  // CUDA_ERROR_TENSOR_MEMORY_LEAK of newer drivers
    for (const auto& row : known)
        if (kind == row.kind)
            return row.error;
    return CUDA_ERROR_LAUNCH_FAILED;
}

}  // namespace

KernelRun::KernelRun(std::shared_ptr<Function> function, const Launch& launch, CUctx_st& context,
                     std::shared_ptr<Multiprocessors> multiprocessors)
    : function_(std::move(function)), context_(context)
{
    require(context.live && context.lost == CUDA_SUCCESS,
            context.lost ? context.lost : CUDA_ERROR_CONTEXT_IS_DESTROYED);
    try {
        execution_ = std::make_unique<Execution>(context.device->machine, function_->program(&context),
                                                 launch, std::move(multiprocessors));
    } catch (const Fault& fault) {
        throw Failure{CUDA_ERROR_INVALID_VALUE, fault.what()};
    }
    publish_kernel(function_->kernel->name);
}

Turn KernelRun::advance(uint64_t turns)
{
    Turn turn = Turn::Nothing;
    try {
        turn = execution_->advance(turns);
    } catch (const Fault& fault) {
        fail(fault.kind, fault.what());
    }
    if (turn == Turn::Ended && publish_reports(*context_.device)) {
        context_.lost = CUDA_ERROR_LAUNCH_FAILED;
        throw Failure{context_.lost, "EMU_STRICT does not let these reports pass"};
    }
    return turn;
}

void KernelRun::run_alone()
{
    constexpr uint64_t many = 4096;
    Turn turn = Turn::Nothing;
    while (turn != Turn::Ended) {
        turn = advance(many);
        if (turn == Turn::Stuck)
            fail("deadlock", stuck());
    }
}

void KernelRun::fail(const std::string& kind, const std::string& text)
{
    context_.lost = error_of(kind);
    publish_fault(kind, text);  // before what it may be a consequence of
    publish_reports(*context_.device);
    throw Failure{context_.lost, ""};
}

}  // namespace emu::driver
