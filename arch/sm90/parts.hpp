// The parts of the kernels, each of which is compiled by itself for each type and gives an image: KERNEL
// lines of kernels.def by schedule and tile_m; all other lines and sm90_repack are in the last one. Each
// takes about a minute.
#pragma once

namespace hg::sm90 {

#define SM90_PARTS(X) X(persistent) X(splitk_192) X(splitk_128) X(splitk_64) X(other)

#define NAMED(part) part,
enum class ImagePart { SM90_PARTS(NAMED) };
#undef NAMED

#define PART_OF_Cooperative_128  persistent
#define PART_OF_PingPong_64      persistent
#define PART_OF_PingPong_128     persistent
#define PART_OF_SplitK_192       splitk_192
#define PART_OF_SplitK_128       splitk_128
#define PART_OF_SplitK_64        splitk_64
#define PART_OF_SplitKGlobal_192 other
#define PART_OF_SplitKGlobal_128 other
#define PART_OF_SplitKGlobal_64  other

}  // namespace hg::sm90
