// A program that calls the C API with host handles, as an input says.
#pragma once

#include "oracle.hpp"

#include <memory>
#include <vector>

namespace hg::fuzz {

// A live handle, and what was set on it.
struct Live {
    hgemm_handle_t handle = nullptr;
    size_t own_least = 0, own_most = 0;       // bytes of its own workspace, as far as the header tells
    std::unique_ptr<unsigned char[]> memory;  // of a workspace of the caller's, with a guard behind it
    unsigned char* user = nullptr;
    size_t user_bytes = 0;
    int sm_count = 0;
    hgemm_mode_t mode = HGEMM_MODE_DEFAULT;

    size_t least() const { return user ? user_bytes : own_least; }
    size_t most() const { return user ? user_bytes : own_most; }
};

class Wall {
public:
    explicit Wall(Input& input);
    ~Wall();
    Wall(const Wall&) = delete;
    Wall& operator=(const Wall&) = delete;
    void run();

private:
    // handles.cpp
    void create();
    void destroy();
    void get();
    void set();
    void set_workspace(Live& live);
    void use_dead();
    void read_texts();
    void init_structs();
    // wall.cpp
    Live& pick_live();
    void multiply();
    void accept(Live& live, Product& p, const Verdict& verdict);
    void run_again(Live& live, Product& p, const std::vector<double>& c);
    void ask();
    void ask_workspace(Live& live, const Product& p, const Verdict& verdict);
    void explain(Live& live, const Product& p, const Verdict& verdict);
    // vectors.cpp
    void multiply_vector();

    Input& input_;
    std::vector<Live> live_;
    std::vector<hgemm_handle_t> dead_;
};

// Its hgemm_args_t lies directly before what a sanitizer guards.
hgemm_status_t call_product(hgemm_handle_t handle, const Product& product);

}  // namespace hg::fuzz
