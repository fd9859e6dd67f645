// The kernels that are mutated, and how each is launched. A new one is a row in kernels.cpp.
#pragma once

#include "emulator.hpp"

#include <functional>
#include <string>
#include <vector>

namespace mutation {

// A launch and where its results go.
struct Setup {
    emu::Launch launch;
    struct Result {
        const uint8_t* bytes;
        size_t count;
    };
    std::vector<Result> results;
    std::function<bool()> is_correct;  // if set: are they right?
};

struct Kernel {
    const char* name;
    int cc;
    const char* file;  // a fatbin with PTX in it, of the images, or PTX in the build folder
    int shapes;        // that together reach both epilogues, all edges, and more tiles than CTAs
    Setup (*arrange)(emu::Machine& machine, const std::string& name, int shape);
};

const std::vector<Kernel>& kernels();

// ---- For the arrangements ----------------------------------------------------------------------------
// Random f16 or bf16 numbers, small ones.
uint16_t* random_halves(emu::Machine& machine, size_t count, bool bf16);
// Results, filled with a pattern that no kernel writes.
void* empty_result(emu::Machine& machine, Setup& setup, size_t bytes);

// A tensor map of 16-bit or 32-bit floats; sizes and boxes in elements, strides in bytes from dimension 1
// on.
struct MapRequest {
    const void* base;
    bool f32, bf16;
    std::vector<uint64_t> size, stride;
    std::vector<uint32_t> box;
    uint32_t span_bytes = 128;  // of the swizzle; or 64
};
void make_map(const MapRequest& request, void* map);

template <typename Params>
void set_parameters(Setup& setup, const Params& params)
{
    const auto* bytes = reinterpret_cast<const uint8_t*>(&params);
    setup.launch.parameters.assign(bytes, bytes + sizeof params);
}

// One for each kind of parameters.
Setup arrange_sm80(emu::Machine& machine, const std::string& name, int shape);
Setup arrange_sm80_triangle(emu::Machine& machine, const std::string& name, int shape);
Setup arrange_sm80_route(emu::Machine& machine, const std::string& name, int shape);
Setup arrange_sm90(emu::Machine& machine, const std::string& name, int shape);
Setup arrange_sm90_triangle(emu::Machine& machine, const std::string& name, int shape);
Setup arrange_sm90_tree(emu::Machine& machine, const std::string& name, int shape);
Setup arrange_sm90_gated(emu::Machine& machine, const std::string& name, int shape);
Setup arrange_sm90_few_rows(emu::Machine& machine, const std::string& name, int shape);
Setup arrange_sm90_direct(emu::Machine& machine, const std::string& name, int shape);
Setup arrange_sm100(emu::Machine& machine, const std::string& name, int shape);
Setup arrange_pair(emu::Machine& machine, const std::string& name, int shape);
Setup arrange_sm120(emu::Machine& machine, const std::string& name, int shape);

}  // namespace mutation
