#include "driver/image.hpp"

#include "driver/decompress.hpp"
#include "driver/driver.hpp"

#include <cctype>
#include <cstdlib>
#include <cstring>

namespace emu::driver {
namespace {

constexpr uint32_t fatbin_magic = 0xba55ed50, wrapper_magic = 0x466243b1, elf_magic = 0x464c457f;
constexpr uint16_t kind_ptx = 1, kind_cubin = 2;

// What __cudaFatCubin holds in a program that nvcc linked.
struct Wrapper {
    uint32_t magic, version;
    const void* data;
    void* file;
};

struct FatbinHeader {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes;  // of all entries
};

struct EntryHeader {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t bytes;  // of the payload, with padding
    uint32_t compressed_bytes, options;
    uint16_t minor, major;  // of the PTX language
    uint32_t architecture;
    uint32_t name_offset, name_bytes;
    uint64_t flags, unused, uncompressed_bytes;
};
static_assert(sizeof(EntryHeader) == 64);

std::string target_of(std::string_view text)
{
    for (size_t at = text.find(".target"); at != std::string::npos; at = text.find(".target", at + 1)) {
        const size_t line = text.rfind('\n', at) + 1;  // npos + 1 = 0
        if (text.find_first_not_of(" \t", line) != at)
            continue;  // in a comment
        const size_t begin = text.find_first_not_of(" \t", at + 7);
        const size_t end = text.find_first_of(", \t\r\n;", begin);
        if (begin != std::string::npos)
            return std::string(text.substr(begin, end - begin));
    }
    throw Failure{CUDA_ERROR_INVALID_PTX, "PTX without a .target line"};
}

bool looks_like_text(const char* bytes)
{
    for (int i = 0; i < 16 && bytes[i]; ++i)
        if (!std::isprint(static_cast<unsigned char>(bytes[i])) &&
            !std::isspace(static_cast<unsigned char>(bytes[i])))
            return false;
    return bytes[0] != '\0';
}

struct Contents {
    std::vector<Ptx> texts;
    std::string cubins, compressed;  // architectures, for messages
    bool has_fitting_cubin = false;
};

// Machine code runs on devices of the same major version that are not older, a family's on its later
// members, 'a' code on that one alone. None goes from desktop to Tegra devices, from those to desktops or
// from one to another (CUDA C++ Programming Guide, Binary Compatibility).
bool cubin_fits(const EntryHeader& entry, int cc)
{
    constexpr uint64_t exact = 0x100000, family = 0x200000;
    const int own = static_cast<int>(entry.architecture);
    const auto is_tegra = [](int number) {
        return number == 53 || number == 62 || number == 72 || number == 87 || number == 88 ||
               number == 110;
    };
    if (own == cc)
        return true;
    if (entry.flags & exact && !(entry.flags & family))
        return false;
    return own / 10 == cc / 10 && own < cc && !is_tegra(own) && !is_tegra(cc);
}

Contents read_fatbin(const char* image, int cc)
{
    FatbinHeader header;
    std::memcpy(&header, image, sizeof header);
    Contents contents;
    const char* end = image + header.header_bytes + header.bytes;
    EntryHeader entry;
    for (const char* at = image + header.header_bytes; at < end; at += entry.header_bytes + entry.bytes) {
        std::memcpy(&entry, at, sizeof entry);
        if (entry.header_bytes < sizeof entry || entry.bytes > static_cast<size_t>(end - at))
            throw Failure{CUDA_ERROR_INVALID_IMAGE, "broken fatbin"};
        const std::string architecture = " sm_" + std::to_string(entry.architecture);
        if (entry.kind == kind_cubin) {
            contents.cubins += architecture;
            contents.has_fitting_cubin |= cubin_fits(entry, cc);
        }
        if (entry.kind != kind_ptx)
            continue;
        const char* text = at + entry.header_bytes;
        Ptx ptx;
        if (entry.flags & (flag_lz4 | flag_zstd)) {
            std::string unpacked(entry.uncompressed_bytes, '\0');
            if (entry.compressed_bytes > entry.bytes ||
                !decompress(entry.flags, text, entry.compressed_bytes, unpacked)) {
                contents.compressed += architecture;
                continue;
            }
            unpacked.resize(strnlen(unpacked.data(), unpacked.size()));
            ptx.unpacked = std::make_shared<const std::string>(std::move(unpacked));
            ptx.text = *ptx.unpacked;
        } else {
            const std::string_view padded(text, entry.bytes);
            ptx.text = padded.substr(0, padded.find_last_not_of('\0') + 1);
        }
        ptx.target = target_of(ptx.text);
        contents.texts.push_back(std::move(ptx));
    }
    return contents;
}

[[noreturn]] void refuse(const Contents& contents, int cc)
{
    std::string text = "no PTX that fits sm_" + std::to_string(cc);
    if (!contents.compressed.empty())
        text +=
            "; compressed PTX cannot be unpacked (" + contents.compressed.substr(1) +
            "): it is broken, or libzstd.so.1 or liblz4.so.1 is missing; compile with nvcc --no-compress";
    if (!contents.cubins.empty())
        text += "; machine code cannot be run (" + contents.cubins.substr(1) +
                "): embed PTX, which libhgemm does when built with -DHGEMM_EMBED_PTX=ON";
    for (const Ptx& ptx : contents.texts)
        text += "; there is PTX for " + ptx.target;
    throw Failure{CUDA_ERROR_NO_BINARY_FOR_GPU, text};
}

// The images of a library have PTX beside the machine code for the emulator's sake: without it, would the
// device have code to run?
void require_machine_code(const Contents& contents, int cc)
{
    const char* setting = std::getenv("EMU_MACHINE_CODE");
    if (setting && *setting == '1' && !contents.cubins.empty() && !contents.has_fitting_cubin)
        throw Failure{CUDA_ERROR_NO_BINARY_FOR_GPU, "no machine code that runs on sm_" +
                                                        std::to_string(cc) + ", but for" + contents.cubins +
                                                        " (EMU_MACHINE_CODE=1)"};
}

}  // namespace

int suitability(const std::string& target, int cc)
{
    if (target.rfind("sm_", 0) != 0)
        return 0;
    char* suffix = nullptr;
    const int number = static_cast<int>(std::strtol(target.c_str() + 3, &suffix, 10));
    if (number < 10 || std::strlen(suffix) > 1)
        return 0;
    switch (*suffix) {
    case 'a': return number == cc ? 3000 : 0;
    // A family is the later members of the same major version.
    case 'f': return number / 10 == cc / 10 && number <= cc ? 2000 + number : 0;
    case '\0': return number <= cc ? 1000 + number : 0;
    default: return 0;
    }
}

Ptx choose_ptx(const void* image, int cc)
{
    require(image != nullptr, CUDA_ERROR_INVALID_VALUE);
    uint32_t magic;
    std::memcpy(&magic, image, sizeof magic);
    if (magic == wrapper_magic) {
        image = static_cast<const Wrapper*>(image)->data;
        std::memcpy(&magic, image, sizeof magic);
    }
    const char* bytes = static_cast<const char*>(image);
    Contents contents;
    if (magic == fatbin_magic) {
        contents = read_fatbin(bytes, cc);
    } else if (magic == elf_magic) {
        contents.cubins = " a cubin";
    } else if (looks_like_text(bytes)) {
        contents.texts.push_back({bytes, target_of(bytes), nullptr});
    } else {
        throw Failure{CUDA_ERROR_INVALID_IMAGE, "neither fatbin, cubin nor PTX"};
    }
    require_machine_code(contents, cc);
    Ptx* best = nullptr;
    for (Ptx& ptx : contents.texts)
        if (suitability(ptx.target, cc) > (best ? suitability(best->target, cc) : 0))
            best = &ptx;
    if (!best)
        refuse(contents, cc);
    return std::move(*best);
}

}  // namespace emu::driver
