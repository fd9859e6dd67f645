#include "command/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

namespace emu::command {
namespace {

std::string find(const std::string& name)
{
    std::error_code unknown;
    if (name.find('/') != name.npos)
        return std::filesystem::exists(name, unknown) ? name : "";
    const char* path = std::getenv("PATH");
    std::istringstream folders(path ? path : "");
    for (std::string folder; std::getline(folders, folder, ':');)
        if (const std::string file = (folder.empty() ? "." : folder) + "/" + name;
            std::filesystem::is_regular_file(file, unknown) && access(file.c_str(), X_OK) == 0)
            return file;
    return "";
}

// The file's bytes as structures; nothing where it ends before.
class Image {
public:
    explicit Image(std::string bytes) : bytes_(std::move(bytes)) {}
    template <typename T>
    bool read(uint64_t at, T& value) const
    {
        if (at > bytes_.size() || bytes_.size() - at < sizeof(T))
            return false;
        std::memcpy(&value, bytes_.data() + at, sizeof(T));
        return true;
    }
    std::string text(uint64_t at) const
    {
        return at < bytes_.size() ? bytes_.substr(at, bytes_.find('\0', at) - at) : "";
    }
    bool contains(const char* what) const { return bytes_.find(what) != bytes_.npos; }

private:
    std::string bytes_;
};

std::vector<Elf64_Phdr> segments(const Image& image, const Elf64_Ehdr& header)
{
    std::vector<Elf64_Phdr> all;
    Elf64_Phdr segment;
    for (int i = 0; i < header.e_phnum && image.read(header.e_phoff + i * sizeof segment, segment); ++i)
        all.push_back(segment);
    return all;
}

void read_dynamic(const Image& image, const std::vector<Elf64_Phdr>& all, const Elf64_Phdr& dynamic,
                  Program& program)
{
    uint64_t strings = 0;
    std::vector<Elf64_Dyn> entries;
    Elf64_Dyn entry;
    for (uint64_t at = 0; at < dynamic.p_filesz && image.read(dynamic.p_offset + at, entry);
         at += sizeof entry)
        entries.push_back(entry);
    for (const Elf64_Dyn& known : entries)
        for (const Elf64_Phdr& segment : all)
            if (known.d_tag == DT_STRTAB && segment.p_type == PT_LOAD &&
                known.d_un.d_ptr >= segment.p_vaddr &&
                known.d_un.d_ptr - segment.p_vaddr < segment.p_filesz)
                strings = known.d_un.d_ptr - segment.p_vaddr + segment.p_offset;
    for (const Elf64_Dyn& known : entries)
        if (known.d_tag == DT_NEEDED)
            program.needed.push_back(image.text(strings + known.d_un.d_val));
        else if (known.d_tag == DT_RPATH)
            program.rpath = image.text(strings + known.d_un.d_val);
}

}  // namespace

Program inspect(const std::string& name)
{
    Program program;
    program.path = find(name);
    if (program.path.empty())
        return program;
    struct stat status;
    if (stat(program.path.c_str(), &status) == 0)
        program.is_privileged = ((status.st_mode & S_ISUID) && status.st_uid != geteuid()) ||
                                ((status.st_mode & S_ISGID) && status.st_gid != getegid());
    std::ifstream file(program.path, std::ios::binary);
    const Image image(std::string(std::istreambuf_iterator<char>(file), {}));
    Elf64_Ehdr header;
    program.is_elf = image.read(0, header) && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
                     header.e_ident[EI_CLASS] == ELFCLASS64;
    if (!program.is_elf)
        return program;
    const auto all = segments(image, header);
    for (const Elf64_Phdr& segment : all)
        if (segment.p_type == PT_DYNAMIC) {
            program.is_dynamic = true;
            read_dynamic(image, all, segment, program);
        }
    // The name of the shared memory that NVIDIA's static runtime makes for a profiler.
    program.has_static_runtime = image.contains("cudart.shm.");
    return program;
}

std::vector<std::string> obstacles(const Program& program, const std::string& libraries)
{
    std::vector<std::string> found;
    const std::string& name = program.path;
    if (program.is_privileged)
        found.push_back(
            fmt::format("{} runs with rights of its own (setuid or setgid), and then the system ignores "
                        "LD_LIBRARY_PATH, by which it would find the emulator",
                        name));
    if (program.is_elf && !program.is_dynamic)
        found.push_back(fmt::format("{} is linked statically and loads no libcuda.so.1", name));
    if (program.has_static_runtime)
        found.push_back(
            fmt::format("{} contains NVIDIA's static CUDA runtime, which nvcc links by default and which "
                        "works with NVIDIA's driver alone: link with 'nvcc -cudart shared', or in CMake "
                        "with CMAKE_CUDA_RUNTIME_LIBRARY=Shared",
                        name));
    for (const std::string& library : program.needed)
        if (library.rfind("libcudart.so.", 0) == 0 && !std::filesystem::exists(libraries + "/" + library))
            found.push_back(
                fmt::format("{} needs {}, which this installation does not have in {}: build the program "
                            "with the toolkit that it has a runtime for, or the emulator with the headers "
                            "of the program's (PTXRACE_CUDA12_INCLUDE)",
                            name, library, libraries));
    return found;
}

}  // namespace emu::command
