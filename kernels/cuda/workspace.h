/* The libraries' part of an op's workspace. It begins where the op lets it, on a boundary of 64 bytes like any tensor, and the libraries want
 * one of 256, as cudaMalloc gives it. */
#ifndef CK_CUDA_WORKSPACE_H
#define CK_CUDA_WORKSPACE_H

#include <stddef.h>
#include <stdint.h>

enum { CK_WORKSPACE_ALIGN = 256, CK_TENSOR_ALIGN = 64 };

/* The bytes, rounded up to where another tensor may begin. */
static inline size_t ck__aligned(size_t bytes)
{
	return (bytes + CK_TENSOR_ALIGN - 1) / CK_TENSOR_ALIGN * CK_TENSOR_ALIGN;
}

/* Bytes to plan for a library that asks for so many. */
static inline size_t ck__library_bytes(size_t asked)
{
	return asked ? ck__aligned(asked) + CK_WORKSPACE_ALIGN - CK_TENSOR_ALIGN : 0;
}

/* Where the library's begins in what was planned at `from`; NULL when it asked for none. */
static inline void *ck__library_workspace(void *from, size_t asked)
{
	return asked ? (char *)from + (CK_WORKSPACE_ALIGN - (uintptr_t)from % CK_WORKSPACE_ALIGN) % CK_WORKSPACE_ALIGN : NULL;
}

#endif
