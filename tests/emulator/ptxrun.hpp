// Kernel arguments as ptxrun's command line describes them.
#pragma once

#include "emulator.hpp"

#include <map>
#include <string>

namespace emu {

struct Buffer {
    uint64_t address = 0;
    size_t bytes = 0;
};

class Arguments {
public:
    explicit Arguments(Machine& machine) : machine_(machine) {}

    void add_buffer(const std::string& description);  // "NAME:BYTES[:FILLING]"

    // The parameter block of a kernel from one description per parameter; throws std::runtime_error.
    std::vector<uint8_t> parameters(const ptx::Kernel& kernel,
                                    const std::vector<std::string>& descriptions);
    const std::map<std::string, Buffer>& buffers() const { return buffers_; }

    static const char* help();

private:
    size_t put(std::vector<uint8_t>& block, size_t at, size_t room, const std::string& description);
    std::vector<uint8_t> value(const std::string& description);
    std::vector<uint8_t> buffer(const std::vector<std::string>& fields);
    std::vector<uint8_t> tensor_map(const std::vector<std::string>& fields);
    uint64_t pointer(const std::string& name) const;
    void fill(const Buffer& buffer, const std::string& how);

    Machine& machine_;
    std::map<std::string, Buffer> buffers_;
    std::mt19937 random_{12345};
};

}  // namespace emu
