// Making, setting and destroying handles; texts.
#include "host_handle.hpp"
#include "report.hpp"
#include "wall.hpp"

#include <algorithm>
#include <climits>
#include <cstring>

namespace hg::fuzz {
namespace {

constexpr size_t guard_bytes = 64;
constexpr unsigned char guard_value = 0xa5;

bool is_guarded(const Live& live)
{
    return !live.user || std::all_of(live.user + live.user_bytes, live.user + live.user_bytes + guard_bytes,
                                     [](unsigned char c) { return c == guard_value; });
}

}  // namespace

Wall::Wall(Input& input) : input_(input)
{
    live_.emplace_back();
    live_.back().handle = host_handle();
    live_.back().own_least = live_.back().own_most = SIZE_MAX;
    live_.reserve(16);
}

Wall::~Wall()
{
    for (size_t i = 1; i < live_.size(); ++i)
        hgemm_destroy(live_[i].handle);
    hgemm_set_workspace(live_[0].handle, nullptr, 0);
    hgemm_set_sm_count(live_[0].handle, 0);
    hgemm_set_mode(live_[0].handle, HGEMM_MODE_DEFAULT);
}

Live& Wall::pick_live()
{
    const size_t which = input_.byte();
    return live_[which < 128 ? 0 : which % live_.size()];
}

void Wall::create()
{
    constexpr int devices[] = {
        HGEMM_DEVICE_HOST, HGEMM_DEVICE_HOST, HGEMM_DEVICE_HOST, -3, INT_MIN, INT_MAX, 4096, -1};
    constexpr size_t sizes[] = {0, 1, 255, 256, 4096, 65536, size_t{1} << 60, SIZE_MAX};
    if (live_.size() >= 8)
        return;
    const int device = input_.pick(devices);
    const bool sized = input_.one_in(2);
    const size_t bytes = input_.pick(sizes);
    const char* const function = sized ? "hgemm_create_sized" : "hgemm_create_on";
    note("%s(device %d, %zu bytes)", function, device, bytes);
    if (input_.one_in(16)) {
        expect_status(sized ? hgemm_create_sized(nullptr, device, bytes) : hgemm_create_on(nullptr, device),
                      HGEMM_STATUS_INVALID_ARGUMENT, function, 1);
        return;
    }
    auto handle = reinterpret_cast<hgemm_handle_t>(this);
    const hgemm_status_t status =
        sized ? hgemm_create_sized(&handle, device, bytes) : hgemm_create_on(&handle, device);
    if ((status == HGEMM_STATUS_SUCCESS) != (handle != nullptr))
        wrong("%s answered %s and left %p", function, hgemm_status_string(status),
              static_cast<void*>(handle));
    const bool is_huge = sized && bytes > size_t{1} << 46;
    if (is_huge && status == HGEMM_STATUS_INVALID_ARGUMENT && hgemm_last_error_argument() == 3)
        return;
    if (device < HGEMM_DEVICE_CURRENT)
        return expect_status(status, HGEMM_STATUS_INVALID_ARGUMENT, function, 2);
    if (device >= 0)
        return expect_status(status, HGEMM_STATUS_NO_DEVICE, function, 2);
    if (is_huge)
        return expect_status(status, HGEMM_STATUS_ALLOC_FAILED, function, 0);
    expect_status(status, HGEMM_STATUS_SUCCESS, function, 0);
    if (std::ranges::find(dead_, handle) != dead_.end())
        wrong("the new handle %p is one that was destroyed", static_cast<void*>(handle));
    live_.emplace_back();
    live_.back().handle = handle;
    // Rounded up at most to what workspaces are aligned to.
    live_.back().own_least = sized ? bytes : SIZE_MAX;
    live_.back().own_most = sized ? (bytes + 255) / 256 * 256 : SIZE_MAX;
}

void Wall::destroy()
{
    note("hgemm_destroy");
    if (input_.one_in(8))
        return expect_status(hgemm_destroy(nullptr), HGEMM_STATUS_SUCCESS, "hgemm_destroy", 0);
    if (live_.size() < 2)
        return;
    const auto which = live_.begin() + 1 + input_.below(static_cast<int>(live_.size()) - 1);
    if (!is_guarded(*which))
        wrong("the library wrote behind the caller's workspace");
    expect_status(hgemm_destroy(which->handle), HGEMM_STATUS_SUCCESS, "hgemm_destroy", 0);
    dead_.push_back(which->handle);
    live_.erase(which);
}

void Wall::set_workspace(Live& live)
{
    constexpr size_t sizes[] = {256, 1, 1024, 4096, 65536, 255, 20000, 1 << 20};
    const char* const function = "hgemm_set_workspace";
    if (!is_guarded(live))
        wrong("the library wrote behind the caller's workspace");
    const int kind = input_.below(8);
    if (kind == 0) {
        expect_status(hgemm_set_workspace(live.handle, nullptr, 0), HGEMM_STATUS_SUCCESS, function, 0);
        live.user = nullptr;
        return;
    }
    const size_t bytes = input_.pick(sizes);
    note("hgemm_set_workspace(%zu)", bytes);
    if (kind == 1)
        return expect_status(hgemm_set_workspace(live.handle, nullptr, bytes),
                             HGEMM_STATUS_INVALID_ARGUMENT, function, 2);
    auto memory = std::make_unique<unsigned char[]>(bytes + guard_bytes + 256);
    auto* const aligned =
        reinterpret_cast<unsigned char*>((reinterpret_cast<uintptr_t>(memory.get()) + 255) / 256 * 256);
    if (kind == 2)
        return expect_status(hgemm_set_workspace(live.handle, aligned + 1 + input_.below(200), bytes),
                             HGEMM_STATUS_INVALID_ARGUMENT, function, 2);
    std::fill_n(aligned, bytes + guard_bytes, guard_value);
    expect_status(hgemm_set_workspace(live.handle, aligned, bytes), HGEMM_STATUS_SUCCESS, function, 0);
    live.memory = std::move(memory);
    live.user = aligned;
    live.user_bytes = bytes;
}

// What was set, and where nothing was what hgemm.h says.
void Wall::get()
{
    Live& live = pick_live();
    auto mode = static_cast<hgemm_mode_t>(-1);
    int count = -1, device = 0;
    void* workspace = nullptr;
    size_t bytes = 0;
    note("getters");
    const hgemm_status_t refused = HGEMM_STATUS_INVALID_ARGUMENT, served = HGEMM_STATUS_SUCCESS;
    if (input_.one_in(8)) {
        expect_status(hgemm_get_mode(live.handle, nullptr), refused, "hgemm_get_mode", 2);
        expect_status(hgemm_get_sm_count(live.handle, nullptr), refused, "hgemm_get_sm_count", 2);
        expect_status(hgemm_get_device(live.handle, nullptr), refused, "hgemm_get_device", 2);
        expect_status(hgemm_get_workspace(live.handle, nullptr, &bytes), refused, "hgemm_get_workspace", 2);
        expect_status(hgemm_get_workspace(live.handle, &workspace, nullptr), refused, "hgemm_get_workspace",
                      3);
    }
    expect_status(hgemm_get_mode(live.handle, &mode), served, "hgemm_get_mode", 0);
    expect_status(hgemm_get_sm_count(live.handle, &count), served, "hgemm_get_sm_count", 0);
    expect_status(hgemm_get_device(live.handle, &device), served, "hgemm_get_device", 0);
    expect_status(hgemm_get_workspace(live.handle, &workspace, &bytes), served, "hgemm_get_workspace", 0);
    if (mode != live.mode || count != live.sm_count || device != HGEMM_DEVICE_HOST)
        wrong("mode %d, %d SMs, set to %d, device %d", mode, count, live.sm_count, device);
    if (live.user ? workspace != live.user || bytes != live.user_bytes
                  : live.own_least != SIZE_MAX && (bytes < live.own_least || bytes > live.own_most))
        wrong("workspace %p of %zu bytes, set to %p of %zu", workspace, bytes,
              static_cast<void*>(live.user), live.least());
    if (!live.user && (bytes == 0) != (workspace == nullptr))
        wrong("workspace %p of %zu bytes", workspace, bytes);
    constexpr int levels[] = {-1, 4, 1000, INT_MIN};
    expect_status(hgemm_set_logger(static_cast<hgemm_log_level_t>(input_.pick(levels)), nullptr, nullptr),
                  refused, "hgemm_set_logger", 1);
}

void Wall::set()
{
    constexpr int numbers[] = {0, 1, 2, 3, -1, INT_MIN, INT_MAX, 100};
    Live& live = pick_live();
    const int kind = input_.below(5), number = input_.pick(numbers);
    note("setting %d to %d", kind, number);
    switch (kind) {
    case 0: return set_workspace(live);
    case 1:
        live.sm_count = number < 0 ? live.sm_count : number;
        return expect_status(hgemm_set_sm_count(live.handle, number),
                             number < 0 ? HGEMM_STATUS_INVALID_ARGUMENT : HGEMM_STATUS_SUCCESS,
                             "hgemm_set_sm_count", 2);
    case 2: {
        const bool is_mode = number >= HGEMM_MODE_DEFAULT && number <= HGEMM_MODE_TREE;
        live.mode = is_mode ? static_cast<hgemm_mode_t>(number) : live.mode;
        return expect_status(hgemm_set_mode(live.handle, static_cast<hgemm_mode_t>(number)),
                             is_mode ? HGEMM_STATUS_SUCCESS : HGEMM_STATUS_INVALID_ARGUMENT,
                             "hgemm_set_mode", is_mode ? 0 : 2);
    }
    case 3: {
        const auto stream = reinterpret_cast<hgemm_stream_t>(static_cast<intptr_t>(number));
        return expect_status(hgemm_set_stream(live.handle, stream),
                             stream ? HGEMM_STATUS_INVALID_ARGUMENT : HGEMM_STATUS_SUCCESS,
                             "hgemm_set_stream", 2);
    }
    default:
        auto stream = reinterpret_cast<hgemm_stream_t>(this);
        if (number == 1)
            return expect_status(hgemm_get_stream(live.handle, nullptr), HGEMM_STATUS_INVALID_ARGUMENT,
                                 "hgemm_get_stream", 2);
        expect_status(hgemm_get_stream(live.handle, &stream), HGEMM_STATUS_SUCCESS, "hgemm_get_stream", 0);
        if (stream)
            wrong("the stream of a host handle is %p", static_cast<void*>(stream));
    }
}

// Whatever else is wrong: the handle is named.
void Wall::use_dead()
{
    hgemm_handle_t handle =
        dead_.empty() || input_.one_in(4) ? nullptr : dead_[input_.byte() % dead_.size()];
    if (input_.one_in(4)) {
        handle = reinterpret_cast<hgemm_handle_t>(input_.bits(8));
        if (std::ranges::any_of(live_, [&](const Live& live) { return live.handle == handle; }))
            return;
    }
    const hgemm_status_t none = HGEMM_STATUS_NOT_INITIALIZED;
    size_t bytes = 0;
    char text[8];
    const int kind = input_.below(10);
    note("call %d of a handle that is none: %p", kind, static_cast<void*>(handle));
    switch (kind) {
    case 0: return expect_status(hgemm_set_stream(handle, nullptr), none, "hgemm_set_stream", 1);
    case 1: return expect_status(hgemm_set_workspace(handle, nullptr, 0), none, "hgemm_set_workspace", 1);
    case 2: return expect_status(hgemm_set_mode(handle, HGEMM_MODE_DEFAULT), none, "hgemm_set_mode", 1);
    case 3: return expect_status(hgemm_set_sm_count(handle, 0), none, "hgemm_set_sm_count", 1);
    case 4:
        return expect_status(hgemm_workspace_size(handle, nullptr, &bytes), none, "hgemm_workspace_size",
                             1);
    case 5:
        return expect_status(hgemm_explain(handle, nullptr, text, sizeof text), none, "hgemm_explain", 1);
    case 6: return expect_status(hgemm_grouped_ex(handle, nullptr), none, "hgemm_grouped_ex", 1);
    case 7:
        if (std::strcmp(hgemm_backend(handle), "") != 0)
            wrong("hgemm_backend of a handle that is none: %s", hgemm_backend(handle));
        return;
    case 8:
        if (handle)
            expect_status(hgemm_destroy(handle), none, "hgemm_destroy", 1);
        return;
    default:
        return expect_status(hgemv_n(handle, 0, 0, 1, nullptr, 1, nullptr, 1, 0, nullptr, 1), none,
                             "hgemv_n", 1);
    }
}

void Wall::read_texts()
{
    const auto status = static_cast<int>(input_.bits(input_.one_in(4) ? 4 : 1));
    const char* const name = hgemm_status_string(static_cast<hgemm_status_t>(status));
    if (!name || !*name || !is_one_line(name))
        wrong("hgemm_status_string(%d) is \"%s\"", status, name ? name : "NULL");
    if (!is_one_line(hgemm_build_info()) || hgemm_version() != HGEMM_VERSION ||
        !is_one_line(hgemm_last_error()))
        wrong("a text is not one line: %s, %s", hgemm_build_info(), hgemm_last_error());
    if (std::strcmp(hgemm_backend(pick_live().handle), "host") != 0)
        wrong("the backend of a host handle");
}

// So many bytes and no more are filled.
void Wall::init_structs()
{
    const size_t size = input_.bits(2) % 600;
    note("init of %zu bytes", size);
    const auto memory = std::make_unique<unsigned char[]>(size + 1);
    std::memset(memory.get(), guard_value, size + 1);
    const bool grouped = input_.one_in(2);
    if (grouped)
        hgemm_grouped_args_init(reinterpret_cast<hgemm_grouped_args_t*>(memory.get()), size);
    else
        hgemm_args_init(reinterpret_cast<hgemm_args_t*>(memory.get()), size);
    if (memory[size] != guard_value)
        wrong("a byte behind the struct was written");
    size_t there = 0;
    if (size >= sizeof there)
        std::memcpy(&there, memory.get(), sizeof there);
    if (size >= sizeof there && there != size)
        wrong("the struct's size is %zu, must be %zu", there, size);
    hgemm_args_init(nullptr, size);
    hgemm_grouped_args_init(nullptr, size);
}

}  // namespace hg::fuzz
