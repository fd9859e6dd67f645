// A kernel that runs, alone or in turns with others.
#pragma once

#include "core/execution.hpp"
#include "driver/driver.hpp"

namespace emu::driver {

class KernelRun {
public:
    KernelRun(std::shared_ptr<Function> function, const Launch& launch, CUctx_st& context,
              std::shared_ptr<Multiprocessors> multiprocessors);

    // A fault, or a report that EMU_STRICT does not let pass, loses the context and throws Failure.
    Turn advance(uint64_t turns);
    void run_alone();  // to its end
    void encourage() { execution_->encourage(); }
    std::string stuck() const { return execution_->stuck(); }
    [[noreturn]] void fail(const std::string& kind, const std::string& text);

private:
    std::shared_ptr<Function> function_;  // whose program runs
    CUctx_st& context_;
    std::unique_ptr<Execution> execution_;
};

}  // namespace emu::driver
