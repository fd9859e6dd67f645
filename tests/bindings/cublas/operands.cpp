#include "operands.hpp"

#include <cmath>

namespace hg::test {
namespace {

hgemm_type_t type_of(int type)
{
    return type == shim::r_32f ? HGEMM_F32 : type == shim::r_16f ? HGEMM_F16 : HGEMM_BF16;
}

}  // namespace

DeviceMatrix::DeviceMatrix(Memory& memory, hgemm_type_t type, int64_t rows, int64_t columns, int64_t batch,
                           uint64_t seed)
    : type_(type), rows_(rows), columns_(columns), batch_(batch),
      image_(static_cast<size_t>(stride() * batch) * bytes_of(type)), block_(memory, image_.size())
{
    Random random(seed);
    for (size_t i = 0; i < image_.size(); i += bytes_of(type))
        store(type, &image_[i], static_cast<double>(random.below(5) - 2));
    block_.copy_in(image_.data());
}

size_t DeviceMatrix::place(int64_t problem, int64_t row, int64_t column) const
{
    return static_cast<size_t>(problem * stride() + column * ld() + row) * bytes_of(type_);
}

void* DeviceMatrix::ptr(int64_t problem) const
{
    return block_.get<unsigned char>() + place(problem, 0, 0);
}

Block DeviceMatrix::pointers(Memory& memory) const
{
    std::vector<const void*> list;
    for (int64_t problem = batch_ - 1; problem >= 0; --problem)
        list.push_back(ptr(problem));
    Block block(memory, list.size() * sizeof list[0]);
    block.copy_in(list.data());
    return block;
}

double DeviceMatrix::at(int64_t problem, int64_t row, int64_t column) const
{
    return at(image_, problem, row, column);
}

double DeviceMatrix::at(const std::vector<unsigned char>& image, int64_t problem, int64_t row,
                        int64_t column) const
{
    return load(type_, &image[place(problem, row, column)]);
}

std::vector<unsigned char> DeviceMatrix::now() const
{
    Cuda::get()->wait();
    std::vector<unsigned char> image(image_.size());
    block_.copy_out(image.data());
    return image;
}

Operands::Operands(Memory& memory, const Sizes& sizes, int ta, int tb, int in, int out)
    : size(sizes), transa(ta), transb(tb), type_ab(in), type_d(out),
      a(memory, type_of(in), ta ? sizes.k : sizes.m, ta ? sizes.m : sizes.k, sizes.batch, 1),
      b(memory, type_of(in), tb ? sizes.n : sizes.k, tb ? sizes.k : sizes.n, sizes.batch, 2),
      c(memory, type_of(out), sizes.m, sizes.n, sizes.batch, 3)
{
}

double Operands::sum(int64_t problem, int64_t row, int64_t column) const
{
    double sum = 0;
    for (int64_t l = 0; l < size.k; ++l)
        sum += (transa ? a.at(problem, l, row) : a.at(problem, row, l)) *
               (transb ? b.at(problem, column, l) : b.at(problem, l, column));
    return sum;
}

int64_t Operands::wrong(double factor) const
{
    const std::vector<unsigned char> image = c.now();
    int64_t wrong = 0;
    for (int64_t z = 0; z < size.batch; ++z)
        for (int64_t j = 0; j < size.n; ++j)
            for (int64_t i = 0; i < size.m; ++i)
                wrong += c.at(image, z, i, j) != round_to(type_of(type_d), factor * expected(z, i, j));
    return wrong;
}

int64_t Operands::wrong(const DeviceMatrix& d, const std::function<double(int64_t, int64_t)>& value) const
{
    const std::vector<unsigned char> image = d.now();
    int64_t wrong = 0;
    for (int64_t j = 0; j < size.n; ++j)
        for (int64_t i = 0; i < size.m; ++i) {
            const double wanted = value(i, j);
            wrong += std::abs(d.at(image, 0, i, j) - wanted) > 2e-3 * std::abs(wanted) + 1e-3;
        }
    return wrong;
}

int Operands::gemm_ex(void* handle, int compute, int algorithm, shim::GemmEx<int>* gemm) const
{
    return gemm(handle, transa, transb, static_cast<int>(size.m), static_cast<int>(size.n),
                static_cast<int>(size.k), &alpha, a.ptr(), type_ab, static_cast<int>(a.ld()), b.ptr(),
                type_ab, static_cast<int>(b.ld()), &beta, c.ptr(), type_d, static_cast<int>(c.ld()),
                compute, algorithm);
}

}  // namespace hg::test
