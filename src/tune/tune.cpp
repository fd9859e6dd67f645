// The C API of tuning: options and report, and where a result goes.
#include "src/api/general_form.hpp"
#include "src/api/grouped.hpp"
#include "src/base/decimal.hpp"
#include "src/check/canonical.hpp"
#include "src/check/request.hpp"
#include "src/driver/driver.hpp"
#include "src/plan/problem.hpp"
#include "src/run/handle.hpp"
#include "src/tune/measure.hpp"
#include "src/tune/store.hpp"
#include "src/tuning/file.hpp"
#include "src/tuning/key.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string>

namespace hg {
namespace {

constexpr StructNames options_names{3, "options", "options->size"},
    report_names{4, "report", "report->size"};
constexpr int most = 1000;  // candidates, rounds

Status check_range(const char* name, int value, int low, int high)
{
    if (value == 0 || (value >= low && value <= high))
        return ok;
    return fail_argument(3, name, "is %d, must be 0 or from %d to %d", value, low, high);
}

// The caller's options; without any, the defaults.
Status read_options(const hgemm_tune_options_t* from, hgemm_tune_options_t& o)
{
    o = {};
    Status status = from ? copy_struct(from, "hgemm_tune_options", o, options_names) : ok;
    if (status == ok)
        status = check_range("options->max_candidates", o.max_candidates, 1, most);
    if (status == ok)
        status = check_range("options->max_rounds", o.max_rounds, duel_rounds, most);
    if (status != ok)
        return status;
    if (!(o.max_seconds >= 0))
        return fail_argument(3, "options->max_seconds", "is %s, must be at least 0",
                             general(o.max_seconds).text());
    if (o.write != 0 && o.write != 1)
        return fail_argument(3, "options->write", "is %d, must be 0 or 1", o.write);
    if (o.write == 0 && o.path)
        return fail_argument(3, "options->path", "is '%.256s', must be NULL while options->write is 0",
                             o.path);
    if (o.path && !*o.path)
        return fail_argument(3, "options->path", "is '', must name a file or be NULL");
    return ok;
}

TuneSettings settings_of(const hgemm_tune_options_t& o)
{
    TuneSettings settings;
    if (o.max_candidates > 0)
        settings.candidates = o.max_candidates;
    if (o.max_rounds > 0)
        settings.rules.max_rounds = o.max_rounds;
    settings.seconds = o.max_seconds;
    return settings;
}

Status check_report(const hgemm_tune_report_t* report)
{
    if (!report)
        return ok;
    const Status status = check_struct(report_names.argument, report, report_names.position);
    return status == ok ? check_size(report, "hgemm_tune_report", report_names) : status;
}

// Does the handle use what is measured on all SMs?
Status check_handle(const Handle& handle, const hgemm_tune_options_t& o)
{
    bool capturing = false;
    if (const Status status = driver::is_capturing(handle.stream, capturing); status != ok)
        return status;
    if (capturing)
        return fail(HGEMM_STATUS_NOT_SUPPORTED,
                    "the handle's stream is being captured, tuning must come before or behind that");
    if (handle.options.is_forced())
        return fail(HGEMM_STATUS_NOT_SUPPORTED, "HGEMM_KERNEL chooses the handle's kernels");
    if (handle.options.mode == Mode::Tree)
        return fail(HGEMM_STATUS_NOT_SUPPORTED,
                    "the handle is in tree mode, whose products are tuned in batch-invariant mode");
    if (handle.sm_count() < handle.all_sm_count)
        return fail(HGEMM_STATUS_NOT_SUPPORTED,
                    "the handle may use %d of %d SMs, and tuned kernels are used on all of them",
                    handle.sm_count(), handle.all_sm_count);
    if (o.write && *handle.options.backend)
        return fail(HGEMM_STATUS_NOT_SUPPORTED,
                    "HGEMM_BACKEND chooses the handle's backend, and a tuning file is for all handles: "
                    "options->write must be 0");
    return ok;
}

Status fail_path(const std::string& path, const char* why)
{
    return fail_argument(3, "options->path", "is '%.1024s', must name a file that can be written: %s",
                         path.c_str(), why);
}

// Opens the file to be written, before anything is measured.
Status open_store(const Handle& handle, const hgemm_tune_options_t& o, std::unique_ptr<Store>& store)
{
    if (!o.write)
        return ok;
    const std::string path = o.path ? o.path : handle.tuning_path;
    if (path.empty())
        return fail_argument(3, "options->path",
                             "is NULL, must name a file: HGEMM_TUNING is off, or there is no home folder");
    try {
        const double seconds = o.max_seconds > 0 ? std::min(o.max_seconds, Store::most_lock_seconds)
                                                 : Store::most_lock_seconds;
        store = std::make_unique<Store>(path, TuningOrigin(handle.device, handle.all_sm_count), seconds);
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::exception& error) {
        return fail_path(path, error.what());
    }
    for (const std::string& remark : store->remarks())
        if (handle.log.wants(LogLevel::Plan))
            handle.log.line("%s", remark.c_str());
    return ok;
}

// What was found decides from now on.
Status adopt(Handle& handle, const Problem& problem, const Tuned& tuned, Store* store)
{
    const std::string key = tuning_key(problem, handle.options.mode);
    if (!handle.tuning)
        handle.tuning = std::make_unique<Tuning>();
    handle.tuning->choose(key, tuned.is_built_in() ? "" : tuned.now);
    handle.cache->clear();
    if (handle.log.wants(LogLevel::Plan))
        handle.log.line("tuned %s: %s, %s us instead of %s us", key.c_str(), tuned.now.c_str(),
                        fixed(tuned.now_us, 2).text(), fixed(tuned.built_in_us, 2).text());
    if (!store)
        return ok;
    std::optional<std::string> line;
    if (!tuned.is_built_in())
        line = entry_line(key, tuned.now, tuned.now_us, tuned.built_in_us, tuned.spread);
    try {
        store->write({{key, line}});
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::exception& error) {
        return fail_path(store->path(), error.what());
    }
    handle.tune_texts.path = store->path();
    return ok;
}

Status tune_on_device(Handle& handle, const Problem& problem, const hgemm_tune_options_t& o, Tuned& tuned)
{
    const driver::Scope scope(handle.context);
    const driver::BesideCaptures beside;
    std::unique_ptr<Store> store;
    Status status = scope.status();
    if (status == ok)
        status = check_handle(handle, o);
    if (status == ok && problem.triangle != Triangle::Whole)
        status = fail(HGEMM_STATUS_NOT_SUPPORTED,
                      "args->uplo asks for a triangle, whose products are tuned each by itself");
    if (status == ok && problem.is_gated())
        status = fail(HGEMM_STATUS_NOT_SUPPORTED, "args->gate.block asks for gates, which are not tuned");
    if (status == ok)
        status = open_store(handle, o, store);
    if (status == ok)
        status = measure(handle, problem, settings_of(o), tuned);
    return status == ok && tuned.complete ? adopt(handle, problem, tuned, store.get()) : status;
}

void fill_report(Handle& handle, const Tuned& tuned, hgemm_tune_report_t* report)
{
    TuneTexts& texts = handle.tune_texts;
    texts = {tuned.built_in, tuned.before, tuned.now, tuned.wrong_kernels, texts.path};
    if (!report)
        return;
    hgemm_tune_report_t r{};
    r.size = report->size;
    r.candidates = tuned.candidates;
    r.wrong = tuned.wrong;
    r.failed = tuned.failed;
    r.rounds = tuned.rounds;
    r.complete = tuned.complete;
    r.built_in_us = tuned.built_in_us;
    r.before_us = tuned.before_us;
    r.now_us = tuned.now_us;
    r.gain = tuned.gain;
    r.spread = tuned.spread;
    r.built_in = texts.built_in.c_str();
    r.before = texts.before.c_str();
    r.now = texts.now.c_str();
    r.wrong_kernels = texts.wrong_kernels.c_str();
    r.path = texts.path.empty() ? nullptr : texts.path.c_str();
    std::memcpy(report, &r, sizeof r);
}

// What both functions do behind the check of their arguments.
Status tune(Handle& handle, const std::optional<Problem>& problem, const hgemm_tune_options_t* options,
            hgemm_tune_report_t* report)
{
    hgemm_tune_options_t o;
    Status status = read_options(options, o);
    if (status == ok)
        status = check_report(report);
    if (status != ok)
        return status;
    Tuned tuned;
    handle.tune_texts = {};
    const bool computes = problem && !problem->changes_nothing();
    if (computes && handle.context)
        status = tune_on_device(handle, *problem, o, tuned);
    else
        tuned.candidates = computes;
    // Also where all but the file was done.
    if (status == ok || (tuned.complete && tuned.rounds > 0))
        fill_report(handle, tuned, report);
    return status;
}

}  // namespace
}  // namespace hg

using namespace hg;

extern "C" void hgemm_tune_options_init(hgemm_tune_options_t* options, size_t size)
{
    fill_struct(options, size);
}

extern "C" void hgemm_tune_report_init(hgemm_tune_report_t* report, size_t size)
{
    fill_struct(report, size);
}

extern "C" hgemm_status_t hgemm_tune(hgemm_handle_t handle, const hgemm_args_t* args,
                                     const hgemm_tune_options_t* options, hgemm_tune_report_t* report)
{
    return with_handle("hgemm_tune", handle, [&](Handle& h) {
        hgemm_args_t g;
        if (const Status status = check_args(args, pointers_of(h), g); status != ok)
            return status;
        const std::optional<Problem> problem = is_empty(g) ? std::nullopt : std::optional(to_problem(g));
        return tune(h, problem, options, report);
    });
}

extern "C" hgemm_status_t hgemm_tune_grouped(hgemm_handle_t handle, const hgemm_grouped_args_t* args,
                                             const hgemm_tune_options_t* options,
                                             hgemm_tune_report_t* report)
{
    return with_handle("hgemm_tune_grouped", handle, [&](Handle& h) {
        std::optional<Problem> problem;
        const Status status = to_grouped_problem(h, args, problem);
        return status == ok ? tune(h, problem, options, report) : status;
    });
}
