#include "kernels/cpu/product.h"

#include <stdlib.h>

#include "kernels/alloc.h"

static void destroy(ck_cpu_kernel *kernel)
{
	ck_product_kernel *k = (ck_product_kernel *)kernel;
	ck__prim_free(k->forward);
	for (int i = 0; i < 4; i++)
		ck__prim_free(k->gradient[i / 2][i % 2]);
	free(k);
}

ck_status ck__product_new(ck_device *device, const ck_op_desc *desc, ck_product_kernel **kernel, ck_err *err)
{
	if (desc->real != CK_F32)
		return ck_fail(err, CK_USAGE, "device cpu computes in f32 only, not in %s", ck_dtype_name(desc->real));
	ck_product_kernel *k = ck_alloc(1, sizeof(*k));
	k->base = (ck_cpu_kernel){.destroy = destroy, .device = device, .desc = *desc};
	*kernel = k;
	return CK_OK;
}

ck_status ck__product_finish(ck_product_kernel *k, ck_status status, ck_kernel **kernel)
{
	if (status != CK_OK) {
		destroy(&k->base);
		return status;
	}
	size_t most = 0;
	for (int i = 0; i < 4; i++) {
		size_t bytes = k->ahead[i / 2] + ck__prim_workspace(k->gradient[i / 2][i % 2]);
		most = bytes > most ? bytes : most;
	}
	k->base.base.workspace_forward = ck__prim_workspace(k->forward);
	k->base.base.workspace_backward = most;
	*kernel = &k->base.base;
	return CK_OK;
}

void ck__product_gradient(const ck_product_kernel *k, int which, bool added, const void *const at[CK_PLACES], void *workspace)
{
	ck__prim_run(k->gradient[which][added], at, workspace ? (char *)workspace + k->ahead[which] : NULL);
}

ck_status ck__product_matmul(ck_product_kernel *k, int which, bool wanted, ck_matmul m, ck_err *err)
{
	ck_status status = CK_OK;
	for (int added = 0; wanted && status == CK_OK && added < 2; added++) {
		m.accumulate = added;
		status = ck__prim_matmul(k->base.device->dnnl, &m, &k->gradient[which][added], err);
	}
	return status;
}
