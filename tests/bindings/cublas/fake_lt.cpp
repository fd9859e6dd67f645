// libcublasLt.so.13 as tests need it.
#include "fake.hpp"

#include "abi.hpp"
#include "src/tools/support/number.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

using namespace hg::test;

namespace {

constexpr int success = 0, invalid = 7;

std::mutex mutex;
std::string called;
bool nested = false, rounds_twice = false;
double factor = 1;

using Attributes = std::map<int, std::vector<unsigned char>>;

template <typename T>
std::vector<unsigned char> bytes_of_value(T value)
{
    std::vector<unsigned char> bytes(sizeof value);
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
}

int set(void* object, int which, const void* value, size_t bytes)
{
    auto& attributes = *static_cast<Attributes*>(object);
    const auto known = attributes.find(which);
    if (known == attributes.end() || known->second.size() != bytes)
        return invalid;
    std::memcpy(known->second.data(), value, bytes);
    return success;
}

int get(void* object, int which, void* value, size_t bytes)
{
    if (!object)
        return invalid;
    const auto& attributes = *static_cast<Attributes*>(object);
    const auto known = attributes.find(which);
    if (known == attributes.end() || known->second.size() != bytes)
        return invalid;
    std::memcpy(value, known->second.data(), bytes);
    return success;
}

template <typename T>
T value_of(void* object, int which)
{
    T value{};
    get(object, which, &value, sizeof value);
    return value;
}

template <typename Function>
Function driver(const char* name)
{
    void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    return library ? reinterpret_cast<Function>(dlsym(library, name)) : nullptr;
}

hgemm_type_t type_of(int type) { return type == 0 ? HGEMM_F32 : type == 2 ? HGEMM_F16 : HGEMM_BF16; }

// A column-major matrix copied from the device.
class Copied {
public:
    Copied(const void* device, int type, int64_t rows, int64_t columns, int64_t ld)
        : type_(type_of(type)), ld_(ld),
          bytes_(static_cast<size_t>(columns == 0 ? 0 : (columns - 1) * ld + rows) *
                 hg::test::bytes_of(type_)),
          device_(reinterpret_cast<unsigned long long>(device))
    {
        bytes_held_.resize(bytes_);
        driver<int (*)(void*, unsigned long long, size_t)>("cuMemcpyDtoH_v2")(bytes_held_.data(), device_,
                                                                              bytes_);
    }
    double at(int64_t row, int64_t column) const { return load(type_, place(row, column)); }
    void set(int64_t row, int64_t column, double value) { store(type_, place(row, column), value); }
    void write() const
    {
        driver<int (*)(unsigned long long, const void*, size_t)>("cuMemcpyHtoD_v2")(
            device_, bytes_held_.data(), bytes_);
    }

private:
    unsigned char* place(int64_t row, int64_t column) const
    {
        return const_cast<unsigned char*>(bytes_held_.data()) +
               static_cast<size_t>(row + column * ld_) * hg::test::bytes_of(type_);
    }

    hgemm_type_t type_;
    int64_t ld_;
    size_t bytes_;
    unsigned long long device_;
    std::vector<unsigned char> bytes_held_;
};

// Do the sizes of a product fit each other?
bool is_sound(void* desc, const std::array<void*, 4>& layouts)
{
    const auto rows = [&](int i) { return value_of<uint64_t>(layouts[i], 2); };
    const auto columns = [&](int i) { return value_of<uint64_t>(layouts[i], 3); };
    const bool ta = value_of<int>(desc, 3) != 0, tb = value_of<int>(desc, 4) != 0;
    for (int i = 0; i < 4; ++i) {
        const uint64_t line = value_of<int>(layouts[i], 1) == 1 ? columns(i) : rows(i);
        if (value_of<int64_t>(layouts[i], 4) < static_cast<int64_t>(line) ||
            value_of<int>(layouts[i], 5) != value_of<int>(layouts[3], 5))
            return false;
    }
    return value_of<int>(desc, 3) < 3 && value_of<int>(desc, 4) < 3 &&
           (ta ? columns(0) : rows(0)) == rows(3) && (tb ? rows(1) : columns(1)) == columns(3) &&
           (ta ? rows(0) : columns(0)) == (tb ? columns(1) : rows(1)) && rows(2) == rows(3) &&
           columns(2) == columns(3);
}

double scalar(const FakeProduct& p, const void* from)
{
    unsigned char held[4] = {};
    const size_t bytes = p.half_scalars ? 2 : 4;
    if (p.scalars_on_device)
        driver<int (*)(void*, unsigned long long, size_t)>("cuMemcpyDtoH_v2")(
            held, reinterpret_cast<unsigned long long>(from), bytes);
    else
        std::memcpy(held, from, bytes);
    return load(p.half_scalars ? HGEMM_F16 : HGEMM_F32, held);
}

}  // namespace

extern "C" {

void fake_record(const char* name)
{
    const std::lock_guard lock(mutex);
    called += std::string(name) + " ";
}

size_t fake_calls(char* text, size_t length)
{
    const std::lock_guard lock(mutex);
    const size_t end = called.copy(text, length - 1);
    text[end] = '\0';
    called.clear();
    return end;
}

void fake_read(void* host, const void* device, size_t bytes, void* stream)
{
    driver<int (*)(void*)>("cuStreamSynchronize")(stream);
    driver<int (*)(void*, unsigned long long, size_t)>("cuMemcpyDtoH_v2")(
        host, reinterpret_cast<unsigned long long>(device), bytes);
}

void fake_set_nested(int value) { nested = value; }
void fake_set_error(double value) { factor = value; }
void fake_set_rounds_twice(int value) { rounds_twice = value; }
int fake_is_nested() { return nested; }

int fake_major()
{
    const char* major = std::getenv("FAKE_CUBLAS_MAJOR");
    return major ? std::atoi(major) : 13;
}

int fake_multiply(const FakeProduct& p, void* stream)
{
    if (p.m == 0 || p.n == 0)
        return success;
    driver<int (*)(void*)>("cuStreamSynchronize")(stream);
    const bool ta = p.transa != 0, tb = p.transb != 0;
    const Copied a(p.a, p.type_ab, ta ? p.k : p.m, ta ? p.m : p.k, p.lda);
    const Copied b(p.b, p.type_ab, tb ? p.n : p.k, tb ? p.k : p.n, p.ldb);
    const Copied c(p.c, p.type_d, p.m, p.n, p.ldc);
    Copied d(p.d, p.type_d, p.m, p.n, p.ldd);
    const double alpha = scalar(p, p.alpha), beta = scalar(p, p.beta);
    for (int64_t j = 0; j < p.n; ++j)
        for (int64_t i = 0; i < p.m; ++i) {
            double sum = 0;
            for (int64_t l = 0; l < p.k; ++l)
                sum += (ta ? a.at(l, i) : a.at(i, l)) * (tb ? b.at(j, l) : b.at(l, j));
            const double product = rounds_twice ? round_to(type_of(p.type_d), alpha * sum) : alpha * sum;
            d.set(i, j, factor * (product + (beta == 0 ? 0 : beta * c.at(i, j))));
        }
    d.write();
    return success;
}

int cublasLtGetProperty(int which, int* value)
{
    *value = which == 0 ? fake_major() : 0;
    return success;
}

int cublasLtCreate(void** handle)
{
    *handle = new FakeHandle;
    return success;
}

int cublasLtDestroy(void* handle)
{
    fake_record("cublasLtDestroy");
    delete static_cast<FakeHandle*>(handle);
    return success;
}

int cublasLtMatmulDescCreate(void** out, int compute, int scale)
{
    *out = new Attributes{
        {0, bytes_of_value(compute)},     {1, bytes_of_value(scale)}, {2, bytes_of_value(0)},
        {3, bytes_of_value(0)},           {4, bytes_of_value(0)},     {5, bytes_of_value(0)},
        {6, bytes_of_value(2)},           {7, bytes_of_value(1)},     {8, bytes_of_value<void*>(nullptr)},
        {10, bytes_of_value<int64_t>(0)}, {15, bytes_of_value(0)},    {17, bytes_of_value<void*>(nullptr)},
        {26, bytes_of_value(-1)}};
    if (fake_major() == 12)
        for (const int counters : {29, 30})
            (*static_cast<Attributes*>(*out))[counters] = bytes_of_value<void*>(nullptr);
    return success;
}

int cublasLtMatrixLayoutCreate(void** out, int type, uint64_t rows, uint64_t columns, int64_t ld)
{
    *out =
        new Attributes{{0, bytes_of_value(type)},       {1, bytes_of_value(0)},  {2, bytes_of_value(rows)},
                       {3, bytes_of_value(columns)},    {4, bytes_of_value(ld)}, {5, bytes_of_value(1)},
                       {6, bytes_of_value<int64_t>(0)}, {8, bytes_of_value(0)}};
    return success;
}

int cublasLtMatmulDescDestroy(void* object)
{
    delete static_cast<Attributes*>(object);
    return success;
}

int cublasLtMatrixLayoutDestroy(void* object) { return cublasLtMatmulDescDestroy(object); }

int cublasLtMatmulDescSetAttribute(void* object, int which, const void* value, size_t bytes)
{
    return set(object, which, value, bytes);
}

int cublasLtMatrixLayoutSetAttribute(void* object, int which, const void* value, size_t bytes)
{
    return set(object, which, value, bytes);
}

int cublasLtMatmulDescGetAttribute(void* object, int which, void* value, size_t bytes, size_t*)
{
    return get(object, which, value, bytes);
}

int cublasLtMatrixLayoutGetAttribute(void* object, int which, void* value, size_t bytes, size_t*)
{
    return get(object, which, value, bytes);
}

int cublasLtMatmulPreferenceCreate(void** out)
{
    *out = new Attributes{{3, bytes_of_value<uint32_t>(7)}};
    return success;
}

int cublasLtMatmulPreferenceDestroy(void* object) { return cublasLtMatmulDescDestroy(object); }

int cublasLtMatmulPreferenceSetAttribute(void* object, int which, const void* value, size_t bytes)
{
    return set(object, which, value, bytes);
}

int cublasLtMatmulPreferenceGetAttribute(void* object, int which, void* value, size_t bytes, size_t*)
{
    return get(object, which, value, bytes);
}

// An algorithm for each mask of reduction schemes.
int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void* preference, int,
                                   hg::shim::LtHeuristicResult* results, int* found)
{
    if (!preference)
        return invalid;
    results[0] = {{{66, value_of<uint32_t>(preference, 3)}}, 0, success, 1, {}};
    *found = 1;
    return success;
}

int cublasLtMatmulAlgoInit(void*, int, int, int, int, int, int, int id, uint64_t* algorithm)
{
    std::memset(algorithm, 0, 64);
    algorithm[0] = static_cast<uint64_t>(id);
    return success;
}

int cublasLtMatmulAlgoConfigSetAttribute(uint64_t* algorithm, int attribute, const void* value, size_t)
{
    algorithm[1 + attribute % 7] = *static_cast<const uint32_t*>(value);
    return success;
}

int cublasLtMatmul(void* handle, void* desc, const void* alpha, const void* a, void* layout_a,
                   const void* b, void* layout_b, const void* beta, const void* c, void* layout_c, void* d,
                   void* layout_d, const uint64_t* algorithm, void* workspace, size_t, void* stream)
{
    fake_record("cublasLtMatmul");
    if (!handle || !desc || !layout_a || !layout_b || !layout_d)
        return handle ? invalid : 1;
    layout_c = layout_c ? layout_c : layout_d;
    if (algorithm && std::count(algorithm, algorithm + 8, 0) == 8)
        return invalid;
    if (reinterpret_cast<uintptr_t>(workspace) % 8 != 0)
        return invalid;
    if (!is_sound(desc, {layout_a, layout_b, layout_c, layout_d}) || !alpha || !beta || !a || !b || !d)
        return invalid;
    if (!c && (value_of<int>(desc, 2) != 0 || *static_cast<const float*>(beta) != 0))
        return invalid;
    FakeProduct p{};
    p.transa = value_of<int>(desc, 3);
    p.transb = value_of<int>(desc, 4);
    p.m = value_of<int64_t>(layout_d, 2);
    p.n = value_of<int64_t>(layout_d, 3);
    p.k = value_of<int64_t>(layout_a, p.transa == 0 ? 3 : 2);
    p.scalars_on_device = value_of<int>(desc, 2) == 1;
    p.alpha = alpha;
    p.beta = beta;
    p.a = a;
    p.b = b;
    p.c = c ? c : d;
    p.d = d;
    p.lda = value_of<int64_t>(layout_a, 4);
    p.ldb = value_of<int64_t>(layout_b, 4);
    p.ldc = value_of<int64_t>(layout_c, 4);
    p.ldd = value_of<int64_t>(layout_d, 4);
    p.type_ab = value_of<int>(layout_a, 0);
    p.type_d = value_of<int>(layout_d, 0);
    // Every other epilogue is one that a test only wants to see called.
    return value_of<int>(desc, 7) == 1 && value_of<int>(layout_a, 5) == 1 ? fake_multiply(p, stream)
                                                                          : success;
}

}  // extern "C"
