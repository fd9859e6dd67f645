// What hgemm.h says of a call: is it right, which arguments are wrong, and what is the result? Written from
// that header, without a look at the library.
#pragma once

#include "product.hpp"

#include <string>
#include <vector>

namespace hg::fuzz {

struct Verdict {
    // Arguments that must be refused, and those that may be: of operands that are not read, of sizes whose
    // memory cannot exist, of overlaps that the library need not see.
    std::vector<Field> wrong, doubtful;
    bool is_right() const { return wrong.empty(); }
};

// With `pointers` false only what hgemm_explain() and hgemm_workspace_size() look at.
Verdict judge(const Product& product, bool pointers);

// Do so many steps, in elements, lead further than there is memory on any machine? hgemm.h
// says of them neither that they are right nor that they are refused.
bool is_far(int64_t step, int64_t count, hgemm_type_t type);

// What an error may say of a call so judged: the arguments' names, in hgemm_args_t behind a prefix such as
// "args->problems[2].", wrong ones first. With a position those that have it alone.
std::vector<std::string> names_of(const Product& product, const Verdict& verdict, const std::string& prefix,
                                  int position = 0);

// Was an answer right? It was refused, by the name and position of an argument that is wrong, or accepted.
// Returns whether it was accepted.
bool check_answer(const Product& product, const Verdict& verdict, hgemm_status_t status,
                  const std::string& function);

// The text of a refusal, which has one of the names unless there are none, and its argument, whatever the
// function.
void check_error(const std::string& function, int argument, const std::vector<std::string>& names);

// The status must be this, and where that is not success the error one about the argument, or about none:
// 0.
void expect_status(hgemm_status_t status, hgemm_status_t wanted, const std::string& function, int argument);

// C before the call, row by row; and D and aux after one that was accepted, and everything else as it was.
std::vector<double> c_before(const Product& product);
void check_results(Product& product, const std::vector<double>& c);
// Not where outputs lie over each other, nor of a record of arrays.
bool promises_results(const Product& product);
void check_untouched(const Product& product);

}  // namespace hg::fuzz
