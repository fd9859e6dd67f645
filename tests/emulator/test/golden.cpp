#include "test/golden.hpp"

#include "numerics/tensor_core.hpp"

#include <bit>
#include <cmath>

namespace emu::golden {

namespace {

uint16_t to_half(float value, bool bf16)
{
    auto bits = std::bit_cast<uint32_t>(value);
    if (bf16)
        return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    return std::isnan(value) ? 0x7e00 : double_to_f16(value);
}

uint32_t pack(uint16_t low, uint16_t high) { return low | uint32_t{high} << 16; }

}  // namespace

uint64_t hash(const void* data, size_t bytes)
{
    uint64_t value = 1469598103934665603ull;
    for (size_t i = 0; i < bytes; i++)
        value = (value ^ static_cast<const uint8_t*>(data)[i]) * 1099511628211ull;
    return value;
}

float Inputs::normal() { return std::normal_distribution<float>(0, 1)(random_); }

uint16_t Inputs::element(bool bf16, int kind)
{
    // Random sign and fraction with one of `count` exponents from `first` on.
    auto spread = [&](uint32_t first, uint32_t count) {
        uint32_t sign = random_() & 1, exponent = first + random_() % count;
        uint32_t fraction = random_() & (bf16 ? 127 : 1023);
        return static_cast<uint16_t>(sign << 15 | exponent << (bf16 ? 7 : 10) | fraction);
    };
    switch (kind) {
    case 0:
    case 3: return to_half(normal(), bf16);
    case 1: return bf16 ? spread(107, 41) : spread(0, 31);
    case 4: return bf16 ? spread(55, 20) : spread(0, 6);
    case 5: return bf16 ? spread(185, 7) : spread(24, 7);
    case 6: {
        uint32_t choice = random_() % 40;
        if (choice < 3) {
            constexpr uint16_t special[2][3] = {{0x7c00, 0xfc00, 0x7e01}, {0x7f80, 0xff80, 0x7fc1}};
            return special[bf16][choice];
        }
        return choice < 6 ? 0x8000 : choice < 9 ? 0 : to_half(normal(), bf16);
    }
    default: return to_half(static_cast<float>(static_cast<int>(random_() % 9) - 4), bf16);
    }
}

float Inputs::accumulator(int kind)
{
    switch (kind) {
    case 0: return normal() * 4;
    case 1: {
        int exponent = static_cast<int>(random_() % 61) - 30;
        return std::ldexp(normal(), exponent);
    }
    case 2: {
        float value = normal();
        return value * std::ldexp(1.0f, -10 - static_cast<int>(random_() % 15));
    }
    case 3: return std::ldexp(normal(), 20);
    case 4: {
        if (random_() % 2)
            return 0;
        int exponent = -130 - static_cast<int>(random_() % 15);
        return std::ldexp(normal(), exponent);
    }
    case 5: return std::ldexp(normal(), 120);
    case 6: {
        uint32_t choice = random_() % 60;
        constexpr float special[] = {INFINITY, -INFINITY, NAN};
        return choice < 3 ? special[choice] : choice < 8 ? -0.0f : normal();
    }
    default: return static_cast<float>(static_cast<int>(random_() % 9) - 4);
    }
}

uint32_t Inputs::two_accumulators(int kind)
{
    uint16_t high = to_half(accumulator(kind == 3 ? 0 : kind), false);
    return pack(to_half(accumulator(kind == 3 ? 0 : kind), false), high);
}

std::vector<uint32_t> Inputs::mma(Form form)
{
    std::vector<uint32_t> registers(mma_cases * 32 * 10);
    for (int index = 0; index < mma_cases; index++) {
        int kind = index % 8;
        uint16_t a[16][16], b[8][16];
        for (auto& row : a)
            for (auto& value : row)
                value = element(form == bf16, kind == 2 ? 0 : kind);
        for (auto& row : b)
            for (auto& value : row)
                value = element(form == bf16, kind == 2 ? 0 : kind);
        for (int k = 0; kind == 2 && k < 16; k += 2) {
            for (auto& row : a)
                row[k + 1] = row[k];
            for (auto& row : b)
                row[k + 1] = row[k] ^ 0x8000 ^ (random_() % 8 == 0);
        }
        for (int lane = 0; lane < 32; lane++) {
            int g = lane / 4, t = 2 * (lane % 4);
            uint32_t* to = registers.data() + (index * 32 + lane) * 10;
            for (int i = 0; i < 4; i++)
                to[i] =
                    pack(a[g + 8 * (i & 1)][t + 8 * (i >> 1)], a[g + 8 * (i & 1)][t + 8 * (i >> 1) + 1]);
            for (int i = 0; i < 2; i++)
                to[4 + i] = pack(b[g][t + 8 * i], b[g][t + 8 * i + 1]);
            for (int i = 0; i < (form == f16_result ? 2 : 4); i++)
                to[6 + i] = form == f16_result ? two_accumulators(kind)
                                               : std::bit_cast<uint32_t>(accumulator(kind));
        }
    }
    return registers;
}

// A descriptor without its address, and how far the operand starts behind its place. Swizzles go round:
// none, 128, 64 and 32 bytes; strides are varied with the case.
static void descriptor(bool mn_major, int rows, int limit, int index, uint64_t* out)
{
    int swizzle = index / 4 % 4, span = swizzle == 0 ? 16 : 256 >> swizzle, leading, stride, offset = 0;
    int atom = 8 * span;
    if (!mn_major && swizzle == 0) {
        leading = index & 1 ? 128 : rows * 16;
        stride = index & 1 ? 256 : 128;
    } else if (!mn_major) {
        leading = 16;
        offset = span > 32 ? 32 * (index % (span / 32)) : 0;
        stride = index >= 16 && index & 2 && atom * 2 * (rows / 8) <= limit ? 2 * atom : atom;
    } else if (swizzle == 0) {
        leading = index & 1 ? 128 : 256;
        stride = index & 1 ? rows / 8 * 128 : 128;
    } else {
        int atoms = rows / (span / 2);
        leading = index & 1 ? atom * 2 : atom;
        stride = index & 1 ? atom : atom * std::max(atoms, 1);
    }
    out[0] = static_cast<uint64_t>(leading >> 4 & 0x3fff) << 16 |
             static_cast<uint64_t>(stride >> 4 & 0x3fff) << 32 | static_cast<uint64_t>(swizzle) << 62;
    out[1] = static_cast<uint64_t>(offset);
}

Inputs::Wgmma Inputs::wgmma(Form form, bool a_transposed, bool b_transposed)
{
    Wgmma inputs;
    constexpr int threads = 128, values = 64, elements = wgmma_shared / 2;
    inputs.memory.resize(wgmma_cases * (wgmma_shared + threads * values * 4));
    inputs.descriptors.resize(wgmma_cases * 4);
    auto* halves = reinterpret_cast<uint16_t*>(inputs.memory.data());
    auto* accumulators = reinterpret_cast<uint32_t*>(inputs.memory.data() + wgmma_cases * wgmma_shared);
    for (int index = 0; index < wgmma_cases; index++) {
        int kind = (index * 3 + index / 8) % 8;
        for (int i = 0; i < elements; i++)
            halves[index * elements + i] = element(form == bf16, kind);
        for (int i = 0; i < threads * values; i++) {
            uint32_t& to = accumulators[index * threads * values + i];
            if (form == f16_result) {
                uint16_t low = to_half(accumulator(kind == 3 ? 0 : kind), false);
                to = pack(low, to_half(accumulator(kind == 3 ? 0 : kind), false));
            } else {
                to = std::bit_cast<uint32_t>(accumulator(kind));
            }
        }
        descriptor(a_transposed, 64, 16384, index, &inputs.descriptors[index * 4]);
        descriptor(b_transposed, 128, 32768, index, &inputs.descriptors[index * 4 + 2]);
    }
    return inputs;
}

const Hashes mma_hashes[2][3] = {
    {{0x7eb0dea1382fded7, 0xc954dad58f4a6ca5},
     {0x336f48429356c25b, 0x0fbfc83d79a7c939},
     {0xbc10074e35d86d0b, 0x09d66f4c54bb08b2}},
    {{0xd2b88d29ced7e044, 0xe2d84ccbf215b678},
     {0x7f3a8b6c9ef71409, 0x65abedc95700eca4},
     {0xe6a57aee582c485a, 0xe21adf27225ada02}},
};

const Hashes wgmma_hashes[2][3][4] = {
    {{{0x91eaaf5a0a4b70bb, 0xe0983accc336bb97},
      {0xa4fc68af2527e00a, 0xc33d95d2078ad32c},
      {0xebce5ac0b60a8446, 0x1ad39e7978ebd300},
      {0x52a9f195bf6c993d, 0x8f58c8be2148159d}},
     {{0xfafea2a2d07bf987, 0xd7588364b29dae9c},
      {0x05a0f4c80e3de7d3, 0x518648276fcd1ab0},
      {0xd1bf9983867ebfae, 0x51fa0a829d6c8597},
      {0x6f40090947119e5b, 0xc6984a15e06ae9a3}},
     {{0xc887b8831d9e30bb, 0x38f4365675ce8210},
      {0x8a5bff28858734ef, 0x18803287380cc7e4},
      {0x9074c22bd5f84103, 0xcb775e53c0f28a0d},
      {0xb1302b442b7c1b92, 0x5534c020827621ec}}},
    {{{0xb2dfc3842f9c6b8a, 0x640d4ad9cc577d80},
      {0xe3d7ccf43d92b2c1, 0x5dc75fb9f21fdc2f},
      {0x126ff3b1596d20b2, 0xa7795fd30d04ad2c},
      {0x90da90767428ef97, 0xb62b9d956c3ec933}},
     {{0xaa98dce25e4621ac, 0xeb719892f7174ad5},
      {0x2b7afbea8cf836f3, 0x16a192139539cfe9},
      {0xc94c154af816135e, 0x5c5b70a4f447f8a1},
      {0x508b1a6603a0caaf, 0x59f6115fa7777e5e}},
     {{0x80fed25fbc27a467, 0x2412281b3d7dfd2b},
      {0x84c6263421bcc8f0, 0x4e719bce5e89cd0d},
      {0xc5dbd064f6339f37, 0x69907fc0b8deb7e4},
      {0x934f20ab4a4d731d, 0x5979cb12dff28b95}}},
};

const uint64_t tma_hashes[2][4][2] = {
    {{0x93fad8199fd22963, 0x905a703c23e76683},
     {0x006f8d835bdcec9b, 0x71c9a85aab809f4b},
     {0xe6dbda4c6294c3c3, 0x38f86a189b8f7393},
     {0xa36082206f3b6b63, 0x80dde7c74f874083}},
    {{0x524e3644c9092efb, 0x55c326addea266d3},
     {0xc7316b766cbb7b23, 0x88bfc8ea04c96bab},
     {0x70bc5145feea2e7b, 0x5a0c872f993bce53},
     {0x2d4f4d1d6ded88fb, 0xc03df13bb3cb9b9b}},
};

}  // namespace emu::golden
