// Where handles that are created later write their logs.
#include "src/base/environment.hpp"
#include "src/base/log.hpp"
#include "src/base/status.hpp"

#include <atomic>
#include <new>

namespace hg {
namespace {

// What one call set. Never freed, since other threads may be reading it; equal settings share one object.
struct Setting {
    LogLevel level;
    hgemm_logger_t logger;
    void* data;
    const Setting* older;
};

// Lock-free: a forked child would wait forever for a lock that another thread of the parent held.
std::atomic<const Setting*> settings = nullptr;  // all of them, as a list
std::atomic<const Setting*> current = nullptr;   // null: the environment decides

const Setting* find_setting(const Setting& wanted)
{
    for (const Setting* s = settings; s; s = s->older)
        if (s->level == wanted.level && s->logger == wanted.logger && s->data == wanted.data)
            return s;
    return nullptr;
}

const Setting* keep_setting(const Setting& wanted)
{
    if (const Setting* const known = find_setting(wanted))
        return known;
    auto* const setting = new (std::nothrow) Setting(wanted);
    if (!setting)
        return nullptr;
    setting->older = settings;
    while (!settings.compare_exchange_weak(setting->older, setting)) {
    }
    return setting;
}

}  // namespace

Status set_logger(hgemm_log_level_t level, hgemm_logger_t logger, void* data)
{
    const int value = level;
    if (value < HGEMM_LOG_OFF || value > HGEMM_LOG_TRACE)
        return fail_argument(1, "level", "is %d, must be 0 (off), 1 (error), 2 (plan) or 3 (trace)", value);
    if (!logger) {
        current = nullptr;
        return ok;
    }
    const Setting* const setting = keep_setting({static_cast<LogLevel>(value), logger, data, nullptr});
    if (!setting)
        return fail(HGEMM_STATUS_ALLOC_FAILED, "no memory for a logger");
    current = setting;
    return ok;
}

Status open_log(Log& log) noexcept
{
    log = {};
    if (const Setting* const setting = current) {
        log.level = setting->level;
        log.logger = setting->logger;
        log.data = setting->data;
        return ok;
    }
    if (open_log_of_environment(log))
        return ok;
    return fail(HGEMM_STATUS_NOT_SUPPORTED,
                "unknown level '%.40s' (HGEMM_LOG), known: off error plan trace", environment("HGEMM_LOG"));
}

}  // namespace hg
