#include "test/run_ptx.hpp"

#include <gtest/gtest.h>

namespace emu {

namespace {

Config config_of(int cc, uint64_t seed)
{
    Config config;
    config.cc = cc;
    config.seed = seed;
    config.check = 2;
    return config;
}

}  // namespace

Device::Device(int cc, uint64_t seed) : machine_(config_of(cc, seed)) {}

uint64_t Device::put_bytes(const void* bytes, size_t count)
{
    void* memory = machine_.memory.allocate(count);
    std::memcpy(memory, bytes, count);
    return reinterpret_cast<uint64_t>(memory);
}

std::string Device::run(const std::string& module, const Launch& shape,
                        const std::vector<uint64_t>& parameters)
{
    machine_.reports.clear();
    message_.clear();
    Launch launch = shape;
    launch.parameters.resize(parameters.size() * 8);
    if (!parameters.empty())
        std::memcpy(launch.parameters.data(), parameters.data(), launch.parameters.size());
    std::string kinds;
    try {
        LoadedModule loaded(machine_, module, "test.ptx");
        const Program* program = loaded.find("k");
        if (!program)
            return "no kernel";
        machine_.run(*program, launch);
    } catch (const Fault& fault) {
        message_ = fault.what();
        return fault.kind;
    } catch (const ptx::Error& error) {
        message_ = error.what();
        return "refused";
    }
    for (const Report& report : machine_.reports.all()) {
        message_ += report.print() + "\n";
        if ((" " + kinds + " ").find(" " + report.kind + " ") == std::string::npos)
            kinds += (kinds.empty() ? "" : " ") + report.kind;
    }
    return kinds;
}

std::string ptx_kernel(const std::string& target, int parameters, const std::string& body)
{
    std::string text = ".version 9.0\n.target " + target + "\n.address_size 64\n" +
                       ".extern .shared .align 1024 .b8 dynamic[];\n.visible .entry k(";
    for (int i = 0; i < parameters; i++)
        text += std::string(i ? ", " : "") + ".param .u64 p" + std::to_string(i);
    text += ")\n{\n.reg .b32 %r<64>;\n.reg .b64 %rd<64>;\n.reg .f32 %f<64>;\n";
    text += ".reg .b16 %h<64>;\n.reg .pred %p<16>;\n";
    for (int i = 0; i < parameters; i++)
        text += "ld.param.u64 %rd" + std::to_string(i) + ", [p" + std::to_string(i) + "];\n";
    return text + "mov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\n" + body + "\nret;\n}\n";
}

Launch shape_of(uint32_t ctas, uint32_t threads, uint32_t cluster, uint32_t shared)
{
    Launch launch;
    launch.grid.x = ctas;
    launch.block.x = threads;
    launch.cluster.x = cluster;
    launch.dynamic_shared = shared;
    return launch;
}

}  // namespace emu
