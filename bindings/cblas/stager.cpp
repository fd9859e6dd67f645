#include "stager.hpp"

#include "host.hpp"
#include "route.hpp"

#include "src/plan/problem.hpp"

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

StoredRows to_rows(const void* data, hgemm_type_t type, int64_t count, int64_t length, int64_t ld)
{
    return {static_cast<char*>(const_cast<void*>(data)), count,
            static_cast<size_t>(length) * bytes_of(type), static_cast<size_t>(ld) * bytes_of(type)};
}

StoredRows rows_of_a(const hgemm_args_t& g)
{
    return g.transa == HGEMM_NO_TRANS ? to_rows(g.a, g.type_ab, g.m, g.k, g.lda)
                                      : to_rows(g.a, g.type_ab, g.k, g.m, g.lda);
}

StoredRows rows_of_b(const hgemm_args_t& g)
{
    return g.transb == HGEMM_NO_TRANS ? to_rows(g.b, g.type_ab, g.k, g.n, g.ldb)
                                      : to_rows(g.b, g.type_ab, g.n, g.k, g.ldb);
}

StoredRows rows_of_d(const hgemm_args_t& g) { return to_rows(g.d, g.type_d, g.m, g.n, g.ldd); }

int64_t packed_ld(const StoredRows& rows, hgemm_type_t type)
{
    return static_cast<int64_t>(rows.packed_pitch() / bytes_of(type));
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

StoredRows StoredRows::from(int64_t row, int64_t rows) const
{
    return {data + static_cast<size_t>(row) * pitch, std::min(rows, count - row), length, pitch};
}

void StoredRows::pack(char* packed) const
{
    for (int64_t i = 0; i < count; ++i)
        std::memcpy(packed + static_cast<size_t>(i) * packed_pitch(), data + static_cast<size_t>(i) * pitch,
                    length);
}

void StoredRows::unpack(const char* packed) const
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
    const StoredRows a = rows_of_a(panel), b = rows_of_b(g), d = rows_of_d(panel);
    const size_t in_bytes = a.packed_bytes() + (g.beta != 0.0f ? d.packed_bytes() : 0);
    bool done = b_.reserve(b.packed_bytes());
    for (Slot& slot : slots_)
        done = done && slot.pinned_in.reserve(std::max({in_bytes, panel_bytes, b.packed_pitch()})) &&
               slot.pinned_out.reserve(d.packed_bytes()) && slot.a.reserve(a.packed_bytes()) &&
               slot.d.reserve(d.packed_bytes());
    return done;
}

// Copies in pieces, through both slots in turn.
bool Stager::upload_b(const StoredRows& b)
{
    const auto step = static_cast<int64_t>(std::max<size_t>(panel_bytes / b.packed_pitch(), 1));
    int next = 0;
    for (int64_t row = 0; row < b.count; row += step, next ^= 1) {
        Slot& slot = slots_[next];
        const StoredRows piece = b.from(row, step);
        if (!cuda::wait(slot.uploaded))
            return false;
        piece.pack(slot.pinned_in.get());
        if (!cuda::upload(b_.get() + static_cast<size_t>(row) * b.packed_pitch(), slot.pinned_in.get(),
                          piece.packed_bytes(), in_) ||
            !cuda::record(slot.uploaded, in_))
            return false;
    }
    return true;
}

bool Stager::upload_panel(Slot& slot, const hgemm_args_t& panel)
{
    const StoredRows a = rows_of_a(panel);
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
    slot.result = rows_of_d(panel);
    if (!upload_panel(slot, panel))
        return false;
    hgemm_args_t g = panel;
    g.a = slot.a.get();
    g.lda = packed_ld(rows_of_a(panel), g.type_ab);
    g.b = b_.get();
    g.ldb = packed_ld(rows_of_b(panel), g.type_ab);
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
    if (!usable_ || !scope || !reserve(g, rows) || !upload_b(rows_of_b(g))) {
        give_up();
        return 0;
    }
    // Results are unpacked in the order of rows, so that after a failure the missing rows are the last
    // ones.
    int next = 0;
    bool healthy = true;
    for (int64_t row = 0; healthy && row < g.m; row += rows) {
        healthy = drain(slots_[next], done) &&
                  issue(slots_[next], part(g, row, std::min(rows, g.m - row), 0, g.n));
        if (healthy)
            next ^= 1;
    }
    if (!drain(slots_[next], done) || !drain(slots_[next ^ 1], done))
        healthy = false;
    if (!healthy)
        give_up();
    return done;
}

}  // namespace hg::cblas
