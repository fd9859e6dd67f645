// What messages call the arguments of Level 3.
#include "src/check/request.hpp"

namespace hg {
namespace {

struct Name {
    const char* plain;
    const char* member;
};

Name names_of(Arg arg)
{
    switch (arg) {
    case Arg::Handle: return {"handle", "handle"};
    case Arg::Args: return {"args", "args"};
    case Arg::Size: return {"size", "args->size"};
    case Arg::Layout: return {"layout", "args->layout"};
    case Arg::Uplo: return {"uplo", "args->uplo"};
    case Arg::Trans: return {"trans", "trans"};
    case Arg::TransA: return {"transa", "args->transa"};
    case Arg::TransB: return {"transb", "args->transb"};
    case Arg::TypeAb: return {"type_ab", "args->type_ab"};
    case Arg::TypeC: return {"type_c", "args->type_c"};
    case Arg::TypeD: return {"type_d", "args->type_d"};
    case Arg::M: return {"m", "args->m"};
    case Arg::N: return {"n", "args->n"};
    case Arg::K: return {"k", "args->k"};
    case Arg::Alpha: return {"alpha", "args->alpha_device"};
    case Arg::Beta: return {"beta", "args->beta_device"};
    case Arg::A: return {"A", "args->a"};
    case Arg::Lda: return {"lda", "args->lda"};
    case Arg::StrideA: return {"stride_a", "args->stride_a"};
    case Arg::B: return {"B", "args->b"};
    case Arg::Ldb: return {"ldb", "args->ldb"};
    case Arg::StrideB: return {"stride_b", "args->stride_b"};
    case Arg::C: return {"C", "args->c"};
    case Arg::Ldc: return {"ldc", "args->ldc"};
    case Arg::StrideC: return {"stride_c", "args->stride_c"};
    case Arg::D: return {"D", "args->d"};
    case Arg::Ldd: return {"ldd", "args->ldd"};
    case Arg::StrideD: return {"stride_d", "args->stride_d"};
    case Arg::Count: return {"batch_count", "args->batch_count"};
    case Arg::InOut: return {"C", "C"};
    case Arg::LdInOut: return {"ldc", "ldc"};
    case Arg::StrideInOut: return {"stride_c", "stride_c"};
    case Arg::BiasMode: return {"bias_mode", "args->bias_mode"};
    case Arg::BiasType: return {"bias_type", "args->bias_type"};
    case Arg::Bias: return {"bias", "args->bias"};
    case Arg::Activation: return {"activation", "args->activation"};
    case Arg::Aux: return {"aux", "args->aux"};
    case Arg::Ldaux: return {"ldaux", "args->ldaux"};
    case Arg::StrideAux: return {"stride_aux", "args->stride_aux"};
    case Arg::Flags: return {"flags", "args->flags"};
    case Arg::Gate: return {"gate", "args->gate"};
    }
    return {"?", "?"};
}

// Their names in a batch of pointer arrays.
Name array_names_of(Arg arg)
{
    switch (arg) {
    case Arg::A: return {"A", "args->a_array"};
    case Arg::B: return {"B", "args->b_array"};
    case Arg::C: return {"C", "args->c_array"};
    case Arg::D: return {"D", "args->d_array"};
    default: return names_of(arg);
    }
}

}  // namespace

const char* name_of(Arg arg, bool in_struct, bool in_arrays)
{
    const Name names = in_arrays ? array_names_of(arg) : names_of(arg);
    return in_struct ? names.member : names.plain;
}

}  // namespace hg
