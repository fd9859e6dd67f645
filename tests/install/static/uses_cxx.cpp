// A program that uses the same parts of the C++ library as libhgemm, whose templates are then in both, and
// an exception of its own. The product is that of example.c, small: 2 x 2, all ones.
#include <hgemm.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

std::shared_ptr<std::vector<std::string>> words(int count)
{
    auto result = std::make_shared<std::vector<std::string>>();
    for (int i = 0; i < count; ++i)
        result->push_back(std::to_string(i) + std::to_string(1u * count) + std::to_string(0.5 * i));
    std::stable_sort(result->begin(), result->end(), std::greater<std::string>());
    return result;
}

bool product_is_right()
{
    const std::vector<hgemm_half_t> ones(4, 0x3c00);
    std::vector<hgemm_half_t> d(4);
    hgemm_handle_t handle = nullptr;
    const bool computed = hgemm_create_on(&handle, HGEMM_DEVICE_HOST) == HGEMM_STATUS_SUCCESS &&
                          hgemm_tn(handle, 2, 2, 2, 1.0f, ones.data(), 2, ones.data(), 2, 0.0f, d.data(),
                                   2) == HGEMM_STATUS_SUCCESS;
    if (!computed)
        std::cerr << hgemm_last_error() << '\n';
    hgemm_destroy(handle);
    return computed && std::all_of(d.begin(), d.end(), [](hgemm_half_t value) { return value == 0x4000; });
}

bool throws()
{
    try {
        throw std::runtime_error(std::filesystem::temp_directory_path().string());
    } catch (const std::exception& error) {
        return *error.what() == '/';
    }
}

}  // namespace

int main()
{
    const auto shared = words(20);
    std::map<std::string, int> sizes;
    std::unordered_map<std::string, std::function<int()>> functions;
    for (const std::string& word : *shared) {
        sizes[word] = static_cast<int>(word.size());
        functions[word] = [&word] { return static_cast<int>(word.size()); };
    }
    char digits[16];
    const auto end = std::to_chars(digits, digits + sizeof digits, sizes.size()).ptr;
    std::ostringstream text;
    text << std::string(digits, end) << ' ' << functions.size();
    bool right = false;
    std::once_flag once;
    std::thread([&] { std::call_once(once, [&] { right = product_is_right(); }); }).join();
    const bool all = text.str() == "20 20" && throws() && right;
    std::cout << (all ? "right\n" : "wrong\n");
    return !all;
}
