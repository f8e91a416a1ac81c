/* oneDNN's memory descriptors and primitive descriptors under one set of names, for its API versions 2 and 3. In version 2 a
 * memory descriptor is a struct that the caller keeps, and an operation has a descriptor of its own before the primitive
 * descriptor; in version 3 memory descriptors are handles, and the operation's descriptor is gone. Included by dnnl.c only. */
#ifndef CK_DNNL_API_H
#define CK_DNNL_API_H

#include <stdlib.h>

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_debug.h>

#include "kernels/alloc.h"

#if DNNL_VERSION_MAJOR == 2

typedef dnnl_memory_desc_t *api_md;             /* malloc'd */
typedef const dnnl_memory_desc_t *api_const_md; /* NULL: there is none */

static void md_free(api_md md)
{
	free(md);
}

static dnnl_status_t md_strides(api_md *md, int nd, const dnnl_dims_t dims, dnnl_data_type_t type, const dnnl_dims_t strides)
{
	*md = ck_alloc(1, sizeof(**md));
	return dnnl_memory_desc_init_by_strides(*md, nd, dims, type, strides);
}

static dnnl_status_t md_any(api_md *md, int nd, const dnnl_dims_t dims, dnnl_data_type_t type)
{
	*md = ck_alloc(1, sizeof(**md));
	return dnnl_memory_desc_init_by_tag(*md, nd, dims, type, dnnl_format_tag_any);
}

static dnnl_status_t api_append_sum(dnnl_post_ops_t ops, float scale)
{
	return dnnl_post_ops_append_sum(ops, scale);
}

static dnnl_status_t api_append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t kind, float alpha)
{
	return dnnl_post_ops_append_eltwise(ops, 1.f, kind, alpha, 0.f);
}

static dnnl_status_t api_matmul(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, api_const_md a, api_const_md b,
				api_const_md bias, api_const_md c, const_dnnl_primitive_attr_t attr)
{
	dnnl_matmul_desc_t op;
	dnnl_status_t s = dnnl_matmul_desc_init(&op, a, b, bias, c);
	return s == dnnl_success ? dnnl_primitive_desc_create(pd, &op, attr, engine, NULL) : s;
}

static dnnl_status_t api_conv_forward(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, api_const_md a, api_const_md b,
				      api_const_md bias, api_const_md c, const dnnl_dims_t stride, const dnnl_dims_t pad_low,
				      const dnnl_dims_t pad_high, const_dnnl_primitive_attr_t attr)
{
	dnnl_convolution_desc_t op;
	dnnl_status_t s = dnnl_convolution_forward_desc_init(&op, dnnl_forward_training, dnnl_convolution_direct, a, b, bias, c,
							     stride, pad_low, pad_high);
	return s == dnnl_success ? dnnl_primitive_desc_create(pd, &op, attr, engine, NULL) : s;
}

static dnnl_status_t api_conv_data(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, api_const_md da, api_const_md b,
				   api_const_md dc, const dnnl_dims_t stride, const dnnl_dims_t pad_low,
				   const dnnl_dims_t pad_high, const_dnnl_primitive_desc_t hint,
				   const_dnnl_primitive_attr_t attr)
{
	dnnl_convolution_desc_t op;
	dnnl_status_t s =
	    dnnl_convolution_backward_data_desc_init(&op, dnnl_convolution_direct, da, b, dc, stride, pad_low, pad_high);
	return s == dnnl_success ? dnnl_primitive_desc_create(pd, &op, attr, engine, hint) : s;
}

static dnnl_status_t api_conv_weights(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, api_const_md a, api_const_md db,
				      api_const_md dc, const dnnl_dims_t stride, const dnnl_dims_t pad_low,
				      const dnnl_dims_t pad_high, const_dnnl_primitive_desc_t hint,
				      const_dnnl_primitive_attr_t attr)
{
	dnnl_convolution_desc_t op;
	dnnl_status_t s = dnnl_convolution_backward_weights_desc_init(&op, dnnl_convolution_direct, a, db, NULL, dc, stride,
								      pad_low, pad_high);
	return s == dnnl_success ? dnnl_primitive_desc_create(pd, &op, attr, engine, hint) : s;
}

#else

typedef dnnl_memory_desc_t api_md;
typedef const_dnnl_memory_desc_t api_const_md;

static void md_free(api_md md)
{
	if (md)
		dnnl_memory_desc_destroy(md);
}

static dnnl_status_t md_strides(api_md *md, int nd, const dnnl_dims_t dims, dnnl_data_type_t type, const dnnl_dims_t strides)
{
	return dnnl_memory_desc_create_with_strides(md, nd, dims, type, strides);
}

static dnnl_status_t md_any(api_md *md, int nd, const dnnl_dims_t dims, dnnl_data_type_t type)
{
	return dnnl_memory_desc_create_with_tag(md, nd, dims, type, dnnl_format_tag_any);
}

static dnnl_status_t api_append_sum(dnnl_post_ops_t ops, float scale)
{
	return dnnl_post_ops_append_sum(ops, scale, 0, dnnl_data_type_undef);
}

static dnnl_status_t api_append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t kind, float alpha)
{
	return dnnl_post_ops_append_eltwise(ops, kind, alpha, 0.f);
}

static dnnl_status_t api_matmul(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, api_const_md a, api_const_md b,
				api_const_md bias, api_const_md c, const_dnnl_primitive_attr_t attr)
{
	return dnnl_matmul_primitive_desc_create(pd, engine, a, b, bias, c, attr);
}

static const dnnl_dims_t no_dilation; /* all 0 */

static dnnl_status_t api_conv_forward(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, api_const_md a, api_const_md b,
				      api_const_md bias, api_const_md c, const dnnl_dims_t stride, const dnnl_dims_t pad_low,
				      const dnnl_dims_t pad_high, const_dnnl_primitive_attr_t attr)
{
	return dnnl_convolution_forward_primitive_desc_create(pd, engine, dnnl_forward_training, dnnl_convolution_direct, a, b,
							      bias, c, stride, no_dilation, pad_low, pad_high, attr);
}

static dnnl_status_t api_conv_data(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, api_const_md da, api_const_md b,
				   api_const_md dc, const dnnl_dims_t stride, const dnnl_dims_t pad_low,
				   const dnnl_dims_t pad_high, const_dnnl_primitive_desc_t hint,
				   const_dnnl_primitive_attr_t attr)
{
	return dnnl_convolution_backward_data_primitive_desc_create(pd, engine, dnnl_convolution_direct, da, b, dc, stride,
								    no_dilation, pad_low, pad_high, hint, attr);
}

static dnnl_status_t api_conv_weights(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, api_const_md a, api_const_md db,
				      api_const_md dc, const dnnl_dims_t stride, const dnnl_dims_t pad_low,
				      const dnnl_dims_t pad_high, const_dnnl_primitive_desc_t hint,
				      const_dnnl_primitive_attr_t attr)
{
	return dnnl_convolution_backward_weights_primitive_desc_create(pd, engine, dnnl_convolution_direct, a, db, NULL, dc,
								       stride, no_dilation, pad_low, pad_high, hint, attr);
}

#endif

#endif
