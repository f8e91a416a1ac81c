/* One build's table of vector kernels. */
#include "kernels/cpu/vec_impl.h"

#define VEC_QUOTE(suffix) #suffix
#define VEC_STRING(suffix) VEC_QUOTE(suffix)

const struct ck_vec VEC(ck__vec) = {
    .name = VEC_STRING(CK_VEC_SUFFIX),
    .act = &VEC(ck__vec_act),
    .drop = &VEC(ck__vec_drop),
    .norm = &VEC(ck__vec_norm),
    .pool = &VEC(ck__vec_pool),
    .update = &VEC(ck__vec_update),
    .rows = &VEC(ck__vec_rows),
};
