/* Marks a function that kernels for a GPU call as well. */
#ifndef CK_BOTH_H
#define CK_BOTH_H

#ifdef __CUDACC__
#define CK_BOTH __host__ __device__
#else
#define CK_BOTH
#endif

#endif
