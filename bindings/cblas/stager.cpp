#include "stager.hpp"

#include "host.hpp"
#include "route.hpp"

#include "src/problem.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace hg::cblas {
namespace {

// A panel fills one pinned buffer, but has at most a quarter of the rows, so that copies and GEMMs overlap,
// unless the GPU would get few rows at a time.
constexpr size_t panel_bytes = size_t{16} << 20;
constexpr int64_t fewest_rows = 256, row_step = 128;

size_t bytes_of(hgemm_type_t type) { return static_cast<size_t>(hg::bytes_of(static_cast<Type>(type))); }

Lines to_lines(const void* data, hgemm_type_t type, int64_t count, int64_t length, int64_t ld)
{
    return {static_cast<char*>(const_cast<void*>(data)), count,
            static_cast<size_t>(length) * bytes_of(type), static_cast<size_t>(ld) * bytes_of(type)};
}

Lines lines_of_a(const hgemm_args_t& g)
{
    return g.transa == HGEMM_NO_TRANS ? to_lines(g.a, g.type_ab, g.m, g.k, g.lda)
                                      : to_lines(g.a, g.type_ab, g.k, g.m, g.lda);
}

Lines lines_of_b(const hgemm_args_t& g)
{
    return g.transb == HGEMM_NO_TRANS ? to_lines(g.b, g.type_ab, g.k, g.n, g.ldb)
                                      : to_lines(g.b, g.type_ab, g.n, g.k, g.ldb);
}

Lines lines_of_d(const hgemm_args_t& g) { return to_lines(g.d, g.type_d, g.m, g.n, g.ldd); }

int64_t packed_ld(const Lines& lines, hgemm_type_t type)
{
    return static_cast<int64_t>(lines.packed_pitch() / bytes_of(type));
}

int64_t rows_of_panel(const hgemm_args_t& g)
{
    const size_t row_bytes = std::max(static_cast<size_t>(g.k) * bytes_of(g.type_ab),
                                      static_cast<size_t>(g.n) * bytes_of(g.type_d));
    const auto fitting = static_cast<int64_t>(std::max<size_t>(panel_bytes / row_bytes, 1));
    const int64_t quarter = (g.m / 4 + row_step - 1) / row_step * row_step;
    return std::min({g.m, fitting, std::max(quarter, fewest_rows)});
}

}  // namespace

Lines Lines::from(int64_t line, int64_t lines) const
{
    return {data + static_cast<size_t>(line) * pitch, std::min(lines, count - line), length, pitch};
}

void Lines::pack(char* packed) const
{
    for (int64_t i = 0; i < count; ++i)
        std::memcpy(packed + static_cast<size_t>(i) * packed_pitch(), data + static_cast<size_t>(i) * pitch,
                    length);
}

void Lines::unpack(const char* packed) const
{
    for (int64_t i = 0; i < count; ++i)
        std::memcpy(data + static_cast<size_t>(i) * pitch, packed + static_cast<size_t>(i) * packed_pitch(),
                    length);
}

// Never destroyed: when a program ends, the driver may be unloaded first.
Stager* Stager::get()
{
    static Stager* const stager = [] {
        auto* s = new Stager;
        s->usable_ = s->open();
        return s;
    }();
    return stager->usable_ && stager->process_ == getpid() ? stager : nullptr;
}

bool Stager::open()
{
    process_ = getpid();
    if (!cuda::open())
        return false;
    const cuda::Scope scope;
    bool done = scope && cuda::create(in_) && cuda::create(compute_) && cuda::create(out_);
    for (Slot& slot : slots_)
        done = done && cuda::create(slot.uploaded) && cuda::create(slot.computed) &&
               cuda::create(slot.downloaded);
    return done && hgemm_create_on(&handle_, 0) == ok && hgemm_set_stream(handle_, compute_) == ok;
}

bool Stager::reserve(const hgemm_args_t& g, int64_t rows)
{
    const hgemm_args_t panel = part(g, 0, rows, 0, g.n);
    const Lines a = lines_of_a(panel), b = lines_of_b(g), d = lines_of_d(panel);
    const size_t in_bytes = a.packed_bytes() + (g.beta != 0.0f ? d.packed_bytes() : 0);
    bool done = b_.reserve(b.packed_bytes());
    for (Slot& slot : slots_)
        done = done && slot.pinned_in.reserve(std::max({in_bytes, panel_bytes, b.packed_pitch()})) &&
               slot.pinned_out.reserve(d.packed_bytes()) && slot.a.reserve(a.packed_bytes()) &&
               slot.d.reserve(d.packed_bytes());
    return done;
}

// Copies in pieces, through both slots in turn.
bool Stager::upload_b(const Lines& b)
{
    const auto step = static_cast<int64_t>(std::max<size_t>(panel_bytes / b.packed_pitch(), 1));
    int turn = 0;
    for (int64_t line = 0; line < b.count; line += step, turn ^= 1) {
        Slot& slot = slots_[turn];
        const Lines piece = b.from(line, step);
        if (!cuda::wait(slot.uploaded))
            return false;
        piece.pack(slot.pinned_in.get());
        if (!cuda::upload(b_.get() + static_cast<size_t>(line) * b.packed_pitch(), slot.pinned_in.get(),
                          piece.packed_bytes(), in_) ||
            !cuda::record(slot.uploaded, in_))
            return false;
    }
    return true;
}

bool Stager::upload_panel(Slot& slot, const hgemm_args_t& panel)
{
    const Lines a = lines_of_a(panel);
    if (!cuda::wait(slot.uploaded))
        return false;
    a.pack(slot.pinned_in.get());
    if (!cuda::upload(slot.a.get(), slot.pinned_in.get(), a.packed_bytes(), in_))
        return false;
    if (panel.beta != 0.0f) {
        char* const c = slot.pinned_in.get() + a.packed_bytes();
        slot.result.pack(c);
        if (!cuda::upload(slot.d.get(), c, slot.result.packed_bytes(), in_))
            return false;
    }
    return cuda::record(slot.uploaded, in_) && cuda::make_wait(compute_, slot.uploaded);
}

// The slot is drained, so nothing that runs uses its memory.
bool Stager::issue(Slot& slot, const hgemm_args_t& panel)
{
    slot.result = lines_of_d(panel);
    if (!upload_panel(slot, panel))
        return false;
    hgemm_args_t g = panel;
    g.a = slot.a.get();
    g.lda = packed_ld(lines_of_a(panel), g.type_ab);
    g.b = b_.get();
    g.ldb = packed_ld(lines_of_b(panel), g.type_ab);
    g.c = g.d = slot.d.get();
    g.ldc = g.ldd = packed_ld(slot.result, g.type_d);
    if (gemm_ex(handle_, g) != ok || !cuda::record(slot.computed, compute_) ||
        !cuda::make_wait(out_, slot.computed) ||
        !cuda::download(slot.pinned_out.get(), slot.d.get(), slot.result.packed_bytes(), out_) ||
        !cuda::record(slot.downloaded, out_))
        return false;
    slot.rows = panel.m;
    return true;
}

bool Stager::drain(Slot& slot, int64_t& done)
{
    if (slot.rows == 0)
        return true;
    if (!cuda::wait(slot.downloaded))
        return false;
    slot.result.unpack(slot.pinned_out.get());
    done += slot.rows;
    slot.rows = 0;
    return true;
}

void Stager::give_up()
{
    usable_ = false;
    for (const cuda::Stream stream : {in_, compute_, out_})
        cuda::wait(stream);
}

int64_t Stager::run(const hgemm_args_t& g)
{
    const std::lock_guard lock(mutex_);
    const cuda::Scope scope;
    const int64_t rows = rows_of_panel(g);
    int64_t done = 0;
    if (!usable_ || !scope || !reserve(g, rows) || !upload_b(lines_of_b(g))) {
        give_up();
        return 0;
    }
    // Results are unpacked in the order of rows, so that after a failure the missing rows are the last
    // ones.
    int turn = 0;
    bool healthy = true;
    for (int64_t row = 0; healthy && row < g.m; row += rows) {
        healthy = drain(slots_[turn], done) &&
                  issue(slots_[turn], part(g, row, std::min(rows, g.m - row), 0, g.n));
        if (healthy)
            turn ^= 1;
    }
    if (!drain(slots_[turn], done) || !drain(slots_[turn ^ 1], done))
        healthy = false;
    if (!healthy)
        give_up();
    return done;
}

}  // namespace hg::cblas
