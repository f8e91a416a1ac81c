/* One build's table of vector kernels. */
#include "kernels/cpu/vec_impl.h"

const struct ck_vec VEC(ck__vec) = {
    .act = &VEC(ck__vec_act),
    .drop = &VEC(ck__vec_drop),
    .norm = &VEC(ck__vec_norm),
    .pool = &VEC(ck__vec_pool),
    .update = &VEC(ck__vec_update),
    .rows = &VEC(ck__vec_rows),
};
