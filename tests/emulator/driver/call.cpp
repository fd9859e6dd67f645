#include "driver/call.hpp"

#include "driver/errors.hpp"
#include "driver/events.hpp"
#include "driver/user_object.hpp"

#include <new>
#include <stdexcept>

namespace emu::driver {
namespace {

void inject_fault(const char* name)
{
    const InjectedFault* fault = driver().faults.count(name);
    if (!fault)
        return;
    CUcontext context = current_context_or_null();
    if (fault->loses_context && context)
        context->lost = fault->result;
    throw Failure{fault->result, ""};
}

Driver* create_driver()
{
    auto* created = new Driver;
    if (const char* faults = std::getenv("EMU_FAULTS")) {
        try {
            created->faults.set(faults);
        } catch (const std::invalid_argument& error) {
            complain("EMU_FAULTS", error.what());
        }
    }
    return created;
}

}  // namespace

std::recursive_mutex& mutex()
{
    static std::recursive_mutex instance;
    return instance;
}

// Never destroyed: programs call the driver from destructors of static objects.
Driver& driver()
{
    static Driver* const instance = create_driver();
    return *instance;
}

void enter(const char* name, Needs needs)
{
    if (in_destructor())
        throw Failure{CUDA_ERROR_NOT_PERMITTED, "called by a user object's destructor"};
    inject_fault(name);
    require(needs == Needs::Nothing || driver().initialised, CUDA_ERROR_NOT_INITIALIZED);
    if (needs == Needs::Context)
        current_context();
}

CUresult answer(const char* name)
{
    try {
        throw;
    } catch (const Failure& failure) {
        if (!failure.text.empty())
            complain(name, failure.text);
        return failure.result;
    } catch (const ptx::Error& error) {
        complain(name, error.what());
        return CUDA_ERROR_INVALID_PTX;
    } catch (const std::bad_alloc&) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    } catch (const std::exception& error) {
        complain(name, error.what());
        return CUDA_ERROR_UNKNOWN;
    }
}

}  // namespace emu::driver
