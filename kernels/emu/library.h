/* What the doubles of cuBLASLt and cuDNN share.
 *
 * A double is as strict as its library. What the library refuses is refused with its status, and the reason, in words, is kept for
 * tests and people (ck_emu_refusal; CKBENCH_EMU_LOG=1 prints each to stderr). What the library leaves undefined, and what the double
 * does not model, ends the program (ck_emu_fail). All checks are made by the call; the work is queued on the call's stream and takes
 * everything by value.
 *
 * Where the rules come from: the libraries' documentation and headers; the conditions that cuDNN 9.19 and cuBLASLt 13.1 print when
 * they refuse a call; and, for all that works on descriptors alone, calls of the real libraries. What is a guess says so.
 *
 * Arithmetic: operands are widened exactly to float; products of two floats are exact in double, sums are in double and rounded once
 * to float; what follows is in float, and the result is rounded once to the stored type. */
#ifndef CK_EMU_LIBRARY_H
#define CK_EMU_LIBRARY_H

#include <map>
#include <memory>
#include <vector>

#include "kernels/emu/emu.h"

/* Why the last refused call was refused. */
extern "C" const char *ck_emu_refusal(void);
/* Keeps the reason. */
void ck_emu_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define CK_REFUSE(status, ...)                                                                                                 \
	do {                                                                                                                   \
		ck_emu_refuse(__VA_ARGS__);                                                                                    \
		return (status);                                                                                               \
	} while (0)
#define CK_REFUSE_IF(condition, status, ...)                                                                                   \
	do {                                                                                                                   \
		if (condition)                                                                                                 \
			CK_REFUSE(status, __VA_ARGS__);                                                                        \
	} while (0)

/* The live objects of one kind that a library has given out. */
template <class T> struct ck_emu_live {
	const char *what;
	std::map<const void *, std::unique_ptr<T>> all;

	T *make()
	{
		auto made = std::make_unique<T>();
		T *object = made.get();
		all[object] = std::move(made);
		return object;
	}
	/* NULL gives NULL; one that was destroyed or never created ends the program. */
	T *find(const void *object)
	{
		if (!object)
			return nullptr;
		auto found = all.find(object);
		if (found != all.end())
			return found->second.get();
		ck_emu_fail("%s %p was destroyed or never created", what, object);
	}
	/* False: there was none to destroy. */
	bool erase(const void *object)
	{
		if (!object)
			ck_emu_refuse("%s: none to destroy", what);
		return object && all.erase(find(object));
	}
};

/* The types of stored elements. */
enum class stored { none, f32, f16, bf16 };

size_t ck_emu_size(stored t); /* bytes */
const char *ck_emu_name(stored t);
float ck_emu_get(stored t, const void *x, int64_t i);
void ck_emu_put(stored t, void *x, int64_t i, float v);
/* n elements from element `first` on. */
void ck_emu_widen(stored t, const void *x, int64_t first, int64_t n, float *to);

/* How a library may round the operands of a product before it multiplies. */
enum class operands { exact, tf32, f16, bf16 };
void ck_emu_round(operands how, int64_t n, float *x);

/* s[j][i] += sum over l of a[l][i] b[l][j]: a (k,m), b (k,n), s (n,m), the sum in double. */
void ck_emu_product(int64_t m, int64_t n, int64_t k, const float *a, const float *b, double *s);
/* The same as float atomics would do it: the sum falls into parts, drawn anew, that are added in float in an order drawn anew. */
void ck_emu_product_any_order(int64_t m, int64_t n, int64_t k, const float *a, const float *b, double *s);

/* Bytes that a call reads or writes. */
struct extent {
	const void *at;
	size_t bytes;
	const char *what;
	size_t align = 1; /* bytes */
};
bool ck_emu_overlap(const extent &a, const extent &b);
/* Fails where any of them is not device memory or not aligned, or where what is written overlaps another. inplace: the extent that it may lie
 * exactly upon, or NULL. */
void ck_emu_check_extents(const char *call, const std::vector<extent> &read, const std::vector<extent> &written,
			  const void *inplace = nullptr);
bool ck_emu_aligned(const void *p, size_t bytes);

/* The largest power of two that divides the address, 256 at most; 256 for NULL. */
uint32_t ck_emu_alignment(const void *p);

#endif
